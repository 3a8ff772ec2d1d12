package operator

import (
	"context"
	"log/slog"
)

// quiet passes warnings and errors of the libraries, whose other messages are about themselves.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

func (q quiet) WithAttrs(attributes []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attributes)}
}

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }

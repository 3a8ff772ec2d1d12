package apiserver

import (
	"context"
	"io"
	"log/slog"
	"sync"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// The Kubernetes libraries have gRPC log each connection that could not be made, to the standard error of every process that has them in
// it, whatever that connects with. Who connects tells what became of it.
func init() { grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard)) }

// quietHandler passes on what is at least a warning.
type quietHandler struct{ slog.Handler }

func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

func (h quietHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attributes)}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}

var processLogger sync.Once

// setProcessLogger takes the log of the Kubernetes libraries, once, as it cannot be changed while they run.
func setProcessLogger(logger *slog.Logger) {
	processLogger.Do(func() { klog.SetSlogLogger(slog.New(quietHandler{logger.Handler()})) })
}

// slogCore hands what etcd logs to a slog handler, from the level on that is set.
type slogCore struct {
	zap.AtomicLevel
	handler slog.Handler
	fields  []zapcore.Field
}

// The levels of the log of etcd. It warns at every start that it runs as it should not with several members, and calls
// it an error when its sockets are closed at the end.
const (
	whileStarting = zapcore.ErrorLevel
	whileRunning  = zapcore.WarnLevel
	whileEnding   = zapcore.InvalidLevel
)

func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{AtomicLevel: c.AtomicLevel, handler: c.handler, fields: append(c.fields[:len(c.fields):len(c.fields)], fields...)}
}

func (c *slogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(entry.Level) || !c.handler.Enabled(context.Background(), slogLevel(entry.Level)) {
		return checked
	}
	return checked.AddCore(entry, c)
}

func (c *slogCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	encoder := zapcore.NewMapObjectEncoder()
	for _, field := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		field.AddTo(encoder)
	}
	record := slog.NewRecord(entry.Time, slogLevel(entry.Level), "etcd: "+entry.Message, 0)
	for name, value := range encoder.Fields {
		record.AddAttrs(slog.Any(name, value))
	}
	return c.handler.Handle(context.Background(), record)
}

func (c *slogCore) Sync() error { return nil }

// memberLog is the log of one etcd.
func memberLog(logger *slog.Logger) (*zap.Logger, zap.AtomicLevel) {
	level := zap.NewAtomicLevelAt(whileStarting)
	core := &slogCore{AtomicLevel: level, handler: logger.Handler()}
	// What is fatal for etcd is not for it to end the process with.
	return zap.New(core, zap.WithFatalHook(zapcore.WriteThenPanic)), level
}

func slogLevel(level zapcore.Level) slog.Level {
	switch {
	case level >= zapcore.ErrorLevel:
		return slog.LevelError
	case level == zapcore.WarnLevel:
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

package serve

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// How often one message is logged: so often at once, and then once in an interval.
const (
	logBurst    = 20
	logInterval = time.Second
)

// LimitLog returns a handler that passes on what is logged, but of each message only so much that one that comes again and again
// fills no disk. The next of it that is passed on says how many were left out.
func LimitLog(next slog.Handler) slog.Handler {
	return &limitedLog{Handler: next, messages: &messages{counts: map[string]*messageCount{}}}
}

type limitedLog struct {
	slog.Handler
	messages *messages
}

// messages are those that were logged, of which a program has as many as its sources name.
type messages struct {
	mutex  sync.Mutex
	counts map[string]*messageCount
}

type messageCount struct {
	limit   *rate.Limiter
	leftOut int64
}

// take reports whether a message may be passed on, and how many of it were left out before.
func (m *messages) take(text string, now time.Time) (pass bool, leftOut int64) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	count := m.counts[text]
	if count == nil {
		count = &messageCount{limit: rate.NewLimiter(rate.Every(logInterval), logBurst)}
		m.counts[text] = count
	}
	if !count.limit.AllowN(now, 1) {
		count.leftOut++
		return false, 0
	}
	leftOut, count.leftOut = count.leftOut, 0
	return true, leftOut
}

// Handle implements slog.Handler.
func (l *limitedLog) Handle(ctx context.Context, record slog.Record) error {
	pass, leftOut := l.messages.take(record.Message, record.Time)
	if !pass {
		return nil
	}
	if leftOut > 0 {
		record = record.Clone()
		record.AddAttrs(slog.Int64("leftOutBefore", leftOut))
	}
	return l.Handler.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (l *limitedLog) WithAttrs(attributes []slog.Attr) slog.Handler {
	return &limitedLog{Handler: l.Handler.WithAttrs(attributes), messages: l.messages}
}

// WithGroup implements slog.Handler.
func (l *limitedLog) WithGroup(name string) slog.Handler {
	return &limitedLog{Handler: l.Handler.WithGroup(name), messages: l.messages}
}

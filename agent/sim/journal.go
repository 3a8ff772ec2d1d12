package sim

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// journal is the log of one run: what happened, to whom, when on the simulated clock. Equal seeds give equal journals.
type journal struct {
	mutex   sync.Mutex
	out     io.Writer
	began   time.Time
	lines   int
	moved   int     // compactions that moved objects
	spliced int     // and left some of them on their nodes
	first   string  // the first violation
	broke   Promise // what it broke
}

func (j *journal) write(who, format string, values ...any) {
	text := fmt.Sprintf(format, values...)
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.lines++
	// A journal that cannot be written stops nothing: the host, which reads it, ends with the run.
	_, _ = fmt.Fprintf(j.out, "%12.6f %-8s %s\n", time.Since(j.began).Seconds(), who, strings.ReplaceAll(text, "\n", "; "))
}

// violate notes that a promise was broken.
func (j *journal) violate(promise Promise, format string, values ...any) {
	text := strings.ReplaceAll(fmt.Sprintf(format, values...), "\n", "; ")
	j.write("CHECK", "VIOLATION of %q: %s", promise, text)
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.first == "" {
		j.first, j.broke = text, promise
	}
}

func (j *journal) violation() string {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return j.first
}

// compacted notes that a compaction moved objects, and how many of them stayed on their nodes.
func (j *journal) compacted(spliced int64) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.moved++
	if spliced > 0 {
		j.spliced++
	}
}

// result is what the journal knows of what a run came to.
func (j *journal) result(seed uint64) Result {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	return Result{
		Seed: seed, Violation: j.first, Promise: j.broke, Lines: j.lines,
		Compactions: j.moved, Splices: j.spliced, Simulated: time.Since(j.began),
	}
}

// logger is a slog.Handler that writes into the journal for one process.
type logger struct {
	journal *journal
	who     string
	fields  string
}

func (l logger) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (l logger) Handle(_ context.Context, record slog.Record) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s%s", strings.ToLower(record.Level.String()), record.Message, l.fields)
	var spliced int64
	record.Attrs(func(attribute slog.Attr) bool {
		if attribute.Key == "spliced" {
			spliced = attribute.Value.Int64()
		}
		fmt.Fprintf(&text, " %s=%v", attribute.Key, attribute.Value)
		return true
	})
	if record.Message == "compacted" {
		l.journal.compacted(spliced)
	}
	l.journal.write(l.who, "%s", text.String())
	return nil
}

func (l logger) WithAttrs([]slog.Attr) slog.Handler { return l } // the process is named already
func (l logger) WithGroup(string) slog.Handler      { return l }

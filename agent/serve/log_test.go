package serve_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/serve"
)

// What is said again and again is said now and then, with how often it was not; other messages are not held up by it.
func TestALogIsNotFilledByOneMessage(t *testing.T) {
	var out bytes.Buffer
	handler := serve.LimitLog(slog.NewTextHandler(&out, nil)).WithAttrs([]slog.Attr{slog.String("gateway", "gw1")})
	now := time.Now()
	say := func(text string, number int) {
		record := slog.NewRecord(now, slog.LevelWarn, text, 0)
		record.AddAttrs(slog.Int("number", number))
		if err := handler.WithAttrs(nil).Handle(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 1000 {
		say("again", i)
	}
	say("once", 0)
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 21 || !strings.Contains(lines[20], "msg=once gateway=gw1") {
		t.Errorf("%d lines, the last: %s", len(lines), lines[len(lines)-1])
	}
	out.Reset()
	now = now.Add(time.Second)
	say("again", 1000)
	say("again", 1001)
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "number=1000 leftOutBefore=980") {
		t.Errorf("a second later: %s", text)
	}
}

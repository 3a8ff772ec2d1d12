package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestMeterOnATerminal: one line is drawn over and over, and goes before anything else is said.
func TestMeterOnATerminal(t *testing.T) {
	var out bytes.Buffer
	m := &meter{out: &out, terminal: true, every: redrawEvery}
	text := func(words string) func() string { return func() string { return words } }
	begin := time.Unix(1000, 0)
	m.show(begin, text("one"))
	m.show(begin.Add(redrawEvery-1), text("too early"))
	m.show(begin.Add(redrawEvery), text("two"))
	m.say("%d of %d", 1, 2)
	m.say("more")
	m.show(begin.Add(2*redrawEvery), text("three"))
	m.clear()
	m.clear()
	want := eraseLine + "one" + eraseLine + "two" + eraseLine + "1 of 2\nmore\n" + eraseLine + "three" + eraseLine
	if out.String() != want {
		t.Errorf("drawn: %q, want %q", out.String(), want)
	}
}

// TestMeterInALog: whole lines, seldom, without anything that only a terminal understands.
func TestMeterInALog(t *testing.T) {
	var out bytes.Buffer
	m := newMeter(&out)
	if m.terminal || m.every != printEvery {
		t.Fatalf("a buffer is a terminal: %+v", m)
	}
	begin, asked := time.Unix(1000, 0), 0
	line := func() string { asked++; return "line" }
	for after := time.Duration(0); after <= 2*printEvery; after += time.Second {
		m.show(begin.Add(after), line)
	}
	m.say("done")
	m.clear()
	if want := "line\nline\nline\ndone\n"; out.String() != want || asked != 3 {
		t.Errorf("written: %q after %d lines were made, want %q", out.String(), asked, want)
	}
}

func TestFilesAreNoTerminals(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	if isTerminal(file) {
		t.Error("a file is a terminal")
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if isTerminal(file) {
		t.Error("a closed file is a terminal")
	}
}

// TestWatchOfAMeter: what is watched is shown while it goes on, and nothing once stop has returned.
func TestWatchOfAMeter(t *testing.T) {
	drawn := make(chan string, 100)
	m := &meter{out: channelWriter(drawn), terminal: true, every: 0}
	stop := m.watch(func() string { return "going on" })
	if first := <-drawn; first != eraseLine+"going on" {
		t.Errorf("drawn first: %q", first)
	}
	stop()
	close(drawn) // what is drawn after stop panics
	last := ""
	for text := range drawn {
		last = text
	}
	if last != eraseLine {
		t.Errorf("drawn last: %q", last)
	}
}

type channelWriter chan string

func (c channelWriter) Write(text []byte) (int, error) {
	c <- string(text)
	return len(text), nil
}

// TestBarsKeepTheirWidth: part may be more than the whole, which is an estimate.
func TestBarsKeepTheirWidth(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		whole := rapid.Int64Range(0, 1<<50).Draw(r, "whole")
		part := rapid.Int64Range(0, 2*whole+1).Draw(r, "part")
		bar := barText(part, whole)
		if len(bar) != barWidth+2 {
			r.Fatalf("%q is %d wide", bar, len(bar))
		}
		full := strings.Count(bar, "#")
		if whole > 0 && part >= whole && full != barWidth || part < whole && full == barWidth || part == 0 && full > 0 {
			r.Fatalf("%d of %d is %q", part, whole, bar)
		}
	})
}

func TestProgressOfATree(t *testing.T) {
	files := tree{files: []treeFile{{size: 3 << 20}, {size: 1 << 20}}, bytes: 4 << 20}
	var done progress
	if line := files.line(&done, 0); !strings.HasSuffix(line, "0 of 2 objects  0 B/s  unknown left") || !strings.Contains(line, "]   0 %  0 B of 4.0 MiB") {
		t.Errorf("at the beginning: %q", line)
	}
	done.objects.Store(1)
	done.bytes.Store(1 << 20)
	want := "[#####---------------]  25 %  1.0 MiB of 4.0 MiB  1 of 2 objects  512 KiB/s  about 6 s left"
	if line := files.line(&done, 2*time.Second); line != want {
		t.Errorf("after a quarter: %q, want %q", line, want)
	}
}

// TestEveryStepIsTaken: the first at once, then one a tick, until one ends it.
func TestEveryStepIsTaken(t *testing.T) {
	steps := 0
	err := every(t.Context(), time.Millisecond, func() (bool, error) { steps++; return steps == 3, nil })
	if err != nil || steps != 3 {
		t.Errorf("%d steps, %v", steps, err)
	}
	broken := errors.New("broken")
	if err := every(t.Context(), time.Hour, func() (bool, error) { return false, broken }); !errors.Is(err, broken) {
		t.Errorf("a step that fails: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = every(ctx, time.Hour, func() (bool, error) { cancel(); return false, nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted wait: %v", err)
	}
}

// TestWatchesEndWell: who watches ends it by interrupting, which is no failure; but what fails before is one.
func TestWatchesEndWell(t *testing.T) {
	shown := 0
	if err := watched(t.Context(), false, time.Hour, func() error { shown++; return nil }); err != nil || shown != 1 {
		t.Errorf("shown %d times without a watch: %v", shown, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	shown = 0
	err := watched(ctx, true, time.Millisecond, func() error {
		if shown++; shown == 3 {
			cancel()
			return ctx.Err() // as a request does that is under way
		}
		return nil
	})
	if err != nil || shown != 3 {
		t.Errorf("shown %d times until interrupted: %v", shown, err)
	}
	broken := errors.New("broken")
	if err := watched(t.Context(), true, time.Hour, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a watch that fails: %v", err)
	}
	if err := watched(ctx, false, time.Hour, func() error { return ctx.Err() }); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted answer that is not watched: %v", err)
	}
}

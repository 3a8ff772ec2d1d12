package progress

import (
	"bytes"
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
	m := &Meter{out: &out, terminal: true, every: redrawEvery}
	text := func(words string) func() string { return func() string { return words } }
	begin := time.Unix(1000, 0)
	m.Show(begin, text("one"))
	m.Show(begin.Add(redrawEvery-1), text("too early"))
	m.Show(begin.Add(redrawEvery), text("two"))
	m.Say("%d of %d", 1, 2)
	m.Say("more")
	m.Show(begin.Add(2*redrawEvery), text("three"))
	m.Clear()
	m.Clear()
	want := eraseLine + "one" + eraseLine + "two" + eraseLine + "1 of 2\nmore\n" + eraseLine + "three" + eraseLine
	if out.String() != want {
		t.Errorf("drawn: %q, want %q", out.String(), want)
	}
}

// TestMeterInALog: whole lines, seldom, without anything that only a terminal understands.
func TestMeterInALog(t *testing.T) {
	var out bytes.Buffer
	m := New(&out)
	if m.terminal || m.every != printEvery {
		t.Fatalf("a buffer is a terminal: %+v", m)
	}
	begin, asked := time.Unix(1000, 0), 0
	line := func() string { asked++; return "line" }
	for after := time.Duration(0); after <= 2*printEvery; after += time.Second {
		m.Show(begin.Add(after), line)
	}
	m.Say("done")
	m.Clear()
	if want := "line\nline\nline\ndone\n"; out.String() != want || asked != 3 {
		t.Errorf("written: %q after %d lines were made, want %q", out.String(), asked, want)
	}
}

func TestFilesAreNoTerminals(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	if IsTerminal(file) {
		t.Error("a file is a terminal")
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if IsTerminal(file) {
		t.Error("a closed file is a terminal")
	}
}

// TestWatchOfAMeter: what is watched is shown while it goes on, and nothing once stop has returned.
func TestWatchOfAMeter(t *testing.T) {
	drawn := make(chan string, 100)
	m := &Meter{out: channelWriter(drawn), terminal: true, every: 0}
	stop := m.Watch(func() string { return "going on" })
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
		bar := Bar(part, whole)
		if len(bar) != barWidth+2 {
			r.Fatalf("%q is %d wide", bar, len(bar))
		}
		full := strings.Count(bar, "#")
		if whole > 0 && part >= whole && full != barWidth || part < whole && full == barWidth || part == 0 && full > 0 {
			r.Fatalf("%d of %d is %q", part, whole, bar)
		}
	})
}

package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// meter shows the progress of a long job on a terminal as one line that is drawn again and again, and elsewhere as a
// line from time to time.
type meter struct {
	out      io.Writer
	terminal bool
	every    time.Duration

	mutex sync.Mutex
	last  time.Time // of the last line
	drawn bool      // a line without its end stands on the terminal
}

// Intervals between two lines of a meter.
const (
	redrawEvery = 200 * time.Millisecond
	printEvery  = 5 * time.Second
)

func newMeter(out io.Writer) *meter {
	m := &meter{out: out, terminal: isTerminal(out), every: printEvery}
	if m.terminal {
		m.every = redrawEvery
	}
	return m
}

func isTerminal(out io.Writer) bool {
	file, is := out.(*os.File)
	if !is {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// eraseLine moves to the start of a terminal's line and clears it.
const eraseLine = "\r\x1b[K"

// show shows the line that text makes, if it is time for one.
func (m *meter) show(now time.Time, text func() string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if now.Sub(m.last) < m.every {
		return
	}
	m.last = now
	if m.terminal {
		fmt.Fprint(m.out, eraseLine+text())
		m.drawn = true
		return
	}
	fmt.Fprintln(m.out, text())
}

// say prints a line of its own, past whatever is drawn.
func (m *meter) say(format string, values ...any) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.drawn {
		fmt.Fprint(m.out, eraseLine)
		m.drawn = false
	}
	fmt.Fprintf(m.out, format+"\n", values...)
}

// clear takes a drawn line away.
func (m *meter) clear() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.drawn {
		fmt.Fprint(m.out, eraseLine)
		m.drawn = false
	}
}

// barWidth is the number of cells of a progress bar.
const barWidth = 20

// barText draws part of whole: [#####---------------].
func barText(part, whole int64) string {
	full := 0
	if whole > 0 {
		full = int(min(part, whole) * barWidth / whole)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", barWidth-full) + "]"
}

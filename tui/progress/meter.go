// Package progress shows how far a long job is, on a terminal or in a file.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Meter shows the progress of a long job on a terminal as one line that is drawn again and again, and elsewhere as a
// line from time to time.
type Meter struct {
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

// New returns a meter that writes to out.
func New(out io.Writer) *Meter {
	m := &Meter{out: out, terminal: IsTerminal(out), every: printEvery}
	if m.terminal {
		m.every = redrawEvery
	}
	return m
}

// IsTerminal reports whether what is written to out is seen on a terminal.
func IsTerminal(out io.Writer) bool {
	file, is := out.(*os.File)
	if !is {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// eraseLine moves to the start of a terminal's line and clears it.
const eraseLine = "\r\x1b[K"

// Show shows the line that text makes, if it is time for one.
func (m *Meter) Show(now time.Time, text func() string) {
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

// Say prints a line of its own, past whatever is drawn.
func (m *Meter) Say(format string, values ...any) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.drawn {
		fmt.Fprint(m.out, eraseLine)
		m.drawn = false
	}
	fmt.Fprintf(m.out, format+"\n", values...)
}

// Write says a line of a log.
func (m *Meter) Write(line []byte) (int, error) {
	m.Say("%s", strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}

// Clear takes a drawn line away.
func (m *Meter) Clear() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.drawn {
		fmt.Fprint(m.out, eraseLine)
		m.drawn = false
	}
}

// barWidth is the number of cells of a progress bar.
const barWidth = 20

// Bar draws part of whole: [#####---------------].
func Bar(part, whole int64) string {
	full := 0
	if whole > 0 {
		full = int(min(part, whole) * barWidth / whole)
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", barWidth-full) + "]"
}

// Watch shows line at every tick until stop is called.
func (m *Meter) Watch(line func() string) (stop func()) {
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(redrawEvery)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				m.Show(now, line)
			case <-quit:
				m.Clear()
				return
			}
		}
	}()
	return func() { close(quit); <-ended }
}

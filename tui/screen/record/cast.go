package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// cast is a recording in asciicast v2: a line with the size of the terminal, and then a line for everything that was
// written to it, with its time. https://docs.asciinema.org/manual/asciicast/v2/
type cast struct {
	out   io.Writer
	begun time.Time
	rest  []byte // the beginning of a character of which the rest is yet to come
}

// castHead is the first line.
type castHead struct {
	Version   int               `json:"version"`
	Width     int               `json:"width"`
	Height    int               `json:"height"`
	Timestamp int64             `json:"timestamp"`
	Title     string            `json:"title"`
	Env       map[string]string `json:"env"`
}

func newCast(out io.Writer, width, height int, now time.Time) (*cast, error) {
	c := &cast{out: out, begun: now}
	return c, c.line(castHead{2, width, height, now.Unix(), "restripe tui", map[string]string{"TERM": "xterm-256color"}})
}

// Write adds what was written. Characters are kept whole: JSON has no halves.
func (c *cast) Write(data []byte) (int, error) {
	text := append(c.rest, data...)
	whole := wholeCharacters(text)
	c.rest = append([]byte(nil), text[whole:]...)
	if whole == 0 {
		return len(data), nil
	}
	seconds := float64(time.Since(c.begun).Microseconds()) / 1e6
	if err := c.line([]any{seconds, "o", string(text[:whole])}); err != nil {
		return 0, err
	}
	return len(data), nil
}

// wholeCharacters is how many bytes of a text are characters to the end.
func wholeCharacters(text []byte) int {
	for back := 1; back <= min(3, len(text)); back++ {
		last := text[len(text)-back]
		if last < 0x80 {
			break
		}
		if last >= 0xc0 { // a character begins here
			length := 2
			if last >= 0xf0 {
				length = 4
			} else if last >= 0xe0 {
				length = 3
			}
			if length > back {
				return len(text) - back
			}
			break
		}
	}
	return len(text)
}

func (c *cast) line(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding the recording: %w", err)
	}
	if _, err := c.out.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("writing the recording: %w", err)
	}
	return nil
}

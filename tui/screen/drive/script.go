package drive

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Script is what is done to a screen, a line each:
//
//	# what follows is said to who reads it
//	keys :transitions<enter>
//	wait Running
//	gone Paused
//	for 2s
//	shot transitions
//
// `for` lets time pass, so that a recording shows what moves; tests wait for what they wait for instead.
type Script struct {
	Patience time.Duration // with each line
	// Shot is called for every `shot` line, with its name.
	Shot func(s *Screen, name string) error
}

// Run does what a script says, line by line.
func (r *Script) Run(ctx context.Context, s *Screen, text string) error {
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		within, stop := context.WithTimeout(ctx, r.Patience)
		err := r.line(within, s, line)
		stop()
		if err != nil {
			return fmt.Errorf("line %d, %q: %w", i+1, line, err)
		}
	}
	return nil
}

func (r *Script) line(ctx context.Context, s *Screen, line string) error {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "keys":
		return s.Type(ctx, rest)
	case "wait":
		return s.Wait(ctx, rest)
	case "gone":
		return s.WaitGone(ctx, rest)
	case "for":
		return pass(ctx, rest)
	case "shot":
		return r.Shot(s, rest)
	}
	return fmt.Errorf("there is no %q; there are keys, wait, gone, for and shot", verb)
}

// pass lets time pass.
func pass(ctx context.Context, text string) error {
	length, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

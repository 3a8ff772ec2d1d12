//go:build linux && ceph

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The ways that are compared.
const (
	wayNative   = "Ceph: new pool, copy"
	wayRestripe = "Restripe"
)

// step is one change of code, made one way.
type step struct {
	way      string
	change   string
	elapsed  time.Duration
	osds     []usage // what each OSD did
	loopback int64   // bytes that anybody sent
	extra    int64   // the most that was allocated beyond what was before
	agents   int64   // Restripe: bytes that agents sent to other agents
	clients  int64   // Ceph: bytes that the copying client read, and wrote again
}

// measure carries a change out between two moments of rest.
func measure(ctx context.Context, c *counters, way, change string, work func(*step) error) (step, error) {
	s := step{way: way, change: change}
	before, err := c.settled(ctx)
	if err != nil {
		return s, err
	}
	sent, err := loopback()
	if err != nil {
		return s, err
	}
	watched, began := c.watch(), time.Now()
	err = work(&s)
	if s.elapsed == 0 {
		s.elapsed = time.Since(began)
	}
	if err != nil {
		_, failed := watched.stop()
		return s, fmt.Errorf("%s, %s: %w", way, change, errors.Join(err, failed))
	}
	after, err := c.settled(ctx)
	if err != nil {
		return s, err
	}
	most, err := watched.stop()
	if err != nil {
		return s, err
	}
	now, err := loopback()
	if err != nil {
		return s, err
	}
	s.loopback, s.extra = now-sent, max(most, total(after).allocated)-total(before).allocated
	for id := range after {
		s.osds = append(s.osds, after[id].minus(before[id]))
	}
	return s, nil
}

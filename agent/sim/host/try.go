package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/sim"
)

// failure is a seed that broke a promise, or the guest.
type failure struct {
	outcome
	size sim.Size
	err  error
}

func (f failure) String() string {
	if f.err != nil {
		return f.err.Error()
	}
	return fmt.Sprintf("seed %d %s: %q is broken: %s", f.Seed, f.size, f.Promise, f.Violation)
}

// tally sums up many seeds.
type tally struct {
	size                        sim.Size
	first, seeds                uint64
	operations, commits, faults int
	compactions, splices        int
	dissolved, returned         int
	simulated, took             time.Duration
	memory                      int64 // bytes of the guest that had most
	failures                    []failure
}

func (t *tally) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d %s seeds from %d in %s (%.1f a second): %d operations, %d commits of groups, %d compactions (%d spliced), %d groups dissolved into others (%d got their columns back), %d faults, %s of simulated time, %d MiB of memory at most; %d failed",
		t.seeds, t.size, t.first, t.took.Round(time.Second), float64(t.seeds)/t.took.Seconds(),
		t.operations, t.commits, t.compactions, t.splices, t.dissolved, t.returned, t.faults,
		t.simulated.Round(time.Second), t.memory>>20, len(t.failures))
	for _, f := range t.failures {
		fmt.Fprintf(&text, "\n  seed %d", f.Seed)
	}
	return text.String()
}

func (t *tally) add(o outcome) {
	t.seeds++
	t.operations += o.Operations
	t.commits += o.Commits
	t.faults += o.Faults
	t.compactions += o.Compactions
	t.splices += o.Splices
	t.dissolved += o.Dissolved
	t.returned += o.Returned
	t.simulated += o.Simulated
	t.memory = max(t.memory, o.Memory)
}

// watch is told of what happens while seeds are tried; calls do not overlap.
type watch struct {
	failed   func(failure)
	progress func(*tally) // about once a minute; may be nil
}

const progressEvery = time.Minute

// mostFailures is how many seeds may fail before no more are tried.
const mostFailures = 20

// try runs seeds one after the other, several at a time, until the count or the time of the options is over.
func (m *machine) try(ctx context.Context, o options, w watch) *tally {
	began := time.Now()
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	t := &tally{size: o.size, first: o.from}
	var mutex sync.Mutex
	next, told := o.from, began
	take := func() (seed uint64, more bool) {
		mutex.Lock()
		defer mutex.Unlock()
		if ctx.Err() != nil || o.count > 0 && next >= o.from+o.count || len(t.failures) >= mostFailures {
			return 0, false
		}
		next++
		return next - 1, true
	}
	var workers sync.WaitGroup
	for range o.workers {
		workers.Go(func() {
			for seed, more := take(); more; seed, more = take() {
				// A seed that has begun is finished: the guest cannot be stopped in between.
				done, err := m.run(context.WithoutCancel(ctx), seed, o.size, nil)
				mutex.Lock()
				t.add(done)
				if err != nil || done.Violation != "" {
					f := failure{outcome: done, size: o.size, err: err}
					t.failures = append(t.failures, f)
					w.failed(f)
				}
				t.took = time.Since(began)
				if w.progress != nil && time.Since(told) > progressEvery {
					told = time.Now()
					w.progress(t)
				}
				mutex.Unlock()
			}
		})
	}
	workers.Wait()
	t.took = time.Since(began)
	slices.SortFunc(t.failures, func(a, b failure) int { return int(int64(a.Seed) - int64(b.Seed)) })
	return t
}

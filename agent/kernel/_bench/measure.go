package main

import (
	"fmt"
	"runtime"
	"slices"
	"time"
)

// contender is one way to do the work of a row.
type contender struct {
	name string
	peer string // whose it is: empty for ours
	// run makes so many calls. first is the number of the first one, for those that take another stripe each time.
	run func(first, calls int)
	// check runs a call and says what is wrong with its result.
	check func() error
	// goroutines: it works on goroutines of its own, and is measured by what the whole process used.
	goroutines bool
}

// bench measures rows.
type bench struct {
	rounds      int
	span        time.Duration // of one measurement, about
	meter       *cycleMeter
	arena       *arena
	affine      float64 // bytes per cycle the machine can multiply, or 0
	quick       bool
	frequencies sample // of all rounds of all rows
}

// results are what the contenders of one row took.
type results struct {
	contenders  []contender
	nanoseconds map[string]sample // per call
	gigahertz   sample
}

// measure checks the contenders, and then lets them take turns for all rounds.
func (b *bench) measure(row string, contenders ...contender) (*results, error) {
	for _, c := range contenders {
		if c.check == nil {
			continue
		}
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("checking %s, %s: %w", row, c.name, err)
		}
	}
	runtime.GC()
	r := &results{contenders: contenders, nanoseconds: map[string]sample{}}
	next := 0 // the call number goes on, so that every measurement from memory finds its stripes cold
	calls := make([]int, len(contenders))
	for i, c := range contenders {
		calls[i] = b.calibrate(c, &next)
	}
	for round := range b.rounds {
		b.meter.begin()
		for turn := range contenders {
			i := (round + turn) % len(contenders)
			if round%2 == 1 { // the other way round, so that nobody always follows the same one
				i = len(contenders) - 1 - i
			}
			c := contenders[i]
			warm := calls[i] / 8
			c.run(next, warm)
			next += warm
			elapsed := c.time(&next, calls[i])
			r.nanoseconds[c.name] = append(r.nanoseconds[c.name], float64(elapsed)/float64(calls[i]))
		}
		r.gigahertz = append(r.gigahertz, b.meter.end())
	}
	b.frequencies = append(b.frequencies, r.gigahertz...)
	return r, nil
}

// time makes the calls and returns the nanoseconds of processor time they took.
func (c contender) time(next *int, calls int) int64 {
	used := threadClock
	if c.goroutines {
		runtime.UnlockOSThread()
		defer runtime.LockOSThread()
		used = processClock
	}
	start := used.now()
	c.run(*next, calls)
	elapsed := used.now() - start
	*next += calls
	return elapsed
}

// calibrate returns how many calls take about the span of a measurement.
func (b *bench) calibrate(c contender, next *int) int {
	calls := 1
	for {
		elapsed := max(c.time(next, calls), 1)
		if elapsed >= int64(b.span)/2 {
			return max(1, int(float64(calls)*float64(b.span)/float64(elapsed)))
		}
		calls = max(calls*2, int(float64(calls)*float64(b.span)/float64(elapsed)*0.75))
	}
}

// best returns the name of the fastest contender of the peers given, or of all peers.
func (r *results) best(peers ...string) string {
	best := ""
	for _, c := range r.contenders {
		if c.peer == "" || len(peers) > 0 && !slices.Contains(peers, c.peer) {
			continue
		}
		if best == "" || r.nanoseconds[c.name].median() < r.nanoseconds[best].median() {
			best = c.name
		}
	}
	return best
}

// faster is how many times as fast as the other a contender is.
func (r *results) faster(name, other string) sample {
	return r.nanoseconds[other].over(r.nanoseconds[name])
}

// share is what part of its cycles a contender could not have done without.
func (r *results) share(name string, cycles float64) sample {
	shares := make(sample, len(r.gigahertz))
	for i, gigahertz := range r.gigahertz {
		shares[i] = cycles / gigahertz / r.nanoseconds[name][i]
	}
	return shares
}

// affineShare is share for so many products of blocks; empty on machines without the instruction.
func (b *bench) affineShare(r *results, name string, products, blockBytes int) sample {
	if b.affine == 0 || products == 0 {
		return nil
	}
	return r.share(name, affineCycles(products, blockBytes))
}

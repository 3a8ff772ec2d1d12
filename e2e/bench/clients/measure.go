package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/e2e/bench/gauge"
)

// timing says how long operations of one kind took, in milliseconds.
type timing struct {
	count          int
	mean, p50, p99 float64
}

func timingOf(latencies []time.Duration) timing {
	if len(latencies) == 0 {
		return timing{}
	}
	slices.Sort(latencies)
	sum := time.Duration(0)
	for _, one := range latencies {
		sum += one
	}
	at := func(share float64) float64 {
		return milliseconds(latencies[min(len(latencies)-1, int(share*float64(len(latencies))))])
	}
	return timing{count: len(latencies), mean: milliseconds(sum) / float64(len(latencies)), p50: at(0.5), p99: at(0.99)}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// outcome is what a load came to.
type outcome struct {
	operations int // all, also those before measuring began
	perSecond  float64
	all        timing
	reads      timing // of loads that do both, and
	writes     timing
	losses     *losses // of loads that lose blocks
}

// target is something that is loaded.
type target struct {
	name      string
	memory    int   // process whose memory is told
	processes []int // whose processor time is
	run       func(ctx context.Context, round int) (outcome, error)
}

// round is one load of a target.
type round struct {
	outcome
	processor time.Duration // of its processes
	peak      int64         // memory, bytes
}

// processorEach is the processor time of an operation.
func (r *round) processorEach() time.Duration {
	return r.processor / time.Duration(max(1, r.operations))
}

// row is what one kind of load came to, by the names of targets.
type row struct {
	what   string
	names  []string
	rounds map[string][]round
}

// values are those of all rounds of a target.
func (r *row) values(name string, of func(*round) float64) (list []float64) {
	for i := range r.rounds[name] {
		list = append(list, of(&r.rounds[name][i]))
	}
	return list
}

// median is that of the rounds of a target.
func (r *row) median(name string, of func(*round) float64) float64 { return median(r.values(name, of)) }

// ratio is the median of what a target came to, to what its peer did in the same round; NaN where there is no such thing.
func (r *row) ratio(name, peer string, of func(*round) float64) float64 {
	ours, theirs := r.values(name, of), r.values(peer, of)
	if len(ours) == 0 || len(ours) != len(theirs) {
		return math.NaN()
	}
	for i := range ours {
		ours[i] /= theirs[i]
	}
	return median(ours)
}

// What a round came to, for median and ratio.
func perSecond(r *round) float64 { return r.perSecond }
func p50(r *round) float64       { return r.all.p50 }
func writesMean(r *round) float64 {
	return r.writes.mean
}

// median is the middle one, the upper of two; NaN of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// compare loads targets one after the other, in every round in another order.
func (b *bench) compare(ctx context.Context, what string, targets []target) (row, error) {
	r := row{what: what, rounds: map[string][]round{}}
	for _, t := range targets {
		r.names = append(r.names, t.name)
	}
	for number := range b.rounds {
		for turn := range targets {
			t := &targets[(turn+number)%len(targets)]
			one, err := measured(ctx, t, number)
			if err != nil {
				return r, fmt.Errorf("%s, %s: %w", what, t.name, err)
			}
			r.rounds[t.name] = append(r.rounds[t.name], one)
			b.progress("%s: %s %.0f a second, p50 %.2f ms, p99 %.2f ms", what, t.name, one.perSecond, one.all.p50, one.all.p99)
		}
	}
	return r, nil
}

// measured loads a target once.
func measured(ctx context.Context, t *target, number int) (r round, err error) {
	if err := ctx.Err(); err != nil {
		return r, err
	}
	if err := gauge.ResetPeak(t.memory); err != nil {
		return r, err
	}
	before, err := processorTime(t.processes)
	if err != nil {
		return r, err
	}
	if r.outcome, err = t.run(ctx, number); err != nil {
		return r, err
	}
	after, err := processorTime(t.processes)
	if err != nil {
		return r, err
	}
	r.processor = after - before
	r.peak, err = gauge.Peak(t.memory)
	return r, err
}

// forSeconds has clients ask one after the other, each as fast as it is answered. do says whether it wrote. What is answered after the time
// counts among operations and latencies, but not for the rate: where many clients wait long, the last of them end late.
func forSeconds(ctx context.Context, clients int, seconds float64, connect connector,
	do func(s session, client, i int) (took time.Duration, wrote bool, err error),
) (o outcome, err error) {
	ctx, stop := context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
	defer stop()
	sessions := make([]session, clients)
	defer func() {
		for _, s := range sessions {
			if s != nil {
				err = errors.Join(err, s.Close())
			}
		}
	}()
	for i := range sessions {
		if sessions[i], err = connect(); err != nil {
			return o, err
		}
	}
	reads, writes := make([][]time.Duration, clients), make([][]time.Duration, clients)
	inTime := make([]int, clients)
	work, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for c, s := range sessions {
		work.Go(func() error {
			for i := 0; ctx.Err() == nil; i++ {
				took, wrote, err := do(s, c, i)
				if err != nil {
					return err
				}
				if ctx.Err() == nil {
					inTime[c]++
				}
				if wrote {
					writes[c] = append(writes[c], took)
				} else {
					reads[c] = append(reads[c], took)
				}
			}
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		return o, err
	}
	elapsed := min(time.Since(began).Seconds(), seconds)
	read, written := slices.Concat(reads...), slices.Concat(writes...)
	o.reads, o.writes, o.all = timingOf(read), timingOf(written), timingOf(slices.Concat(read, written))
	o.operations = o.all.count
	for _, count := range inTime {
		o.perSecond += float64(count) / elapsed
	}
	return o, nil
}

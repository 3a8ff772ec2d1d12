package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/gateway/api"
)

const putBytes = 1 << 10 // of an object of the parts lone and many

var (
	loneSchemes = []string{"rep(1)", "rep(3)", "rs(3,2)"}
	loneModes   = []api.PackMode{api.PackBatch, api.PackAuto}
	manyModes   = []api.PackMode{api.PackBatch, api.PackAuto, api.PackAtOnce}
)

// pass is puts of one kind, one round.
type pass struct {
	scheme    string
	mode      api.PackMode
	round     int // -1 warms up
	elapsed   time.Duration
	latencies []time.Duration
	groups    float64 // that the objects were written in
	blocks    float64 // of these groups, with parities
	waited    float64 // objects of groups whose first waited for others
}

// putResults are what a part of puts measured.
type putResults struct {
	clients int
	passes  []pass
	peak    int64 // memory of the gateway
}

func prefixOf(scheme string, mode api.PackMode) string { return scheme + "/" + string(mode) + "/" }

// putClasses are one for each scheme and mode. Nothing in them is compacted, so that puts alone are measured.
func putClasses(ladders []string, modes []api.PackMode) (classes []api.ClassSpec) {
	never := api.NeverCompact
	for _, ladder := range ladders {
		for _, mode := range modes {
			classes = append(classes, api.ClassSpec{
				Name: strings.NewReplacer("(", "", ")", "", ",", "-").Replace(ladder) + "-" + string(mode), Ladder: ladder,
				Prefixes: []string{prefixOf(ladder, mode)}, PackMode: mode, DeadAtMost: &never,
			})
		}
	}
	return classes
}

// turns is the order in which modes take turns in a round: each is first in its turn.
func turns(modes []api.PackMode, round int) []api.PackMode {
	first := max(0, round) % len(modes)
	return slices.Concat(modes[first:], modes[:first])
}

// lone has one client put objects one after the other.
func (b *bench) lone(ctx context.Context) (results putResults, err error) {
	c, err := b.start(ctx, "lone", putClasses(loneSchemes, loneModes))
	if err != nil {
		return results, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	results.clients = 1
	for round := -1; round < b.rounds; round++ {
		for _, scheme := range loneSchemes {
			for _, mode := range turns(loneModes, round) {
				one := pass{scheme: scheme, mode: mode, round: round}
				err := c.measure(ctx, &one, func(ctx context.Context) error {
					for i := range b.puts {
						if err := one.put(ctx, c, 0, i, &one.latencies); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					return results, err
				}
				b.note(&results, &one)
			}
		}
	}
	results.peak, err = c.peak()
	return results, err
}

// many has many clients put objects at the same time.
func (b *bench) many(ctx context.Context) (results putResults, err error) {
	c, err := b.start(ctx, "many", putClasses([]string{deadScheme}, manyModes))
	if err != nil {
		return results, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	results.clients = clientsAtOnce
	for round := -1; round < b.rounds; round++ {
		for _, mode := range turns(manyModes, round) {
			one := pass{scheme: deadScheme, mode: mode, round: round}
			err := c.measure(ctx, &one, func(ctx context.Context) error {
				return one.flood(ctx, c, time.Now().Add(time.Duration(b.second)*time.Second))
			})
			if err != nil {
				return results, err
			}
			b.note(&results, &one)
		}
	}
	results.peak, err = c.peak()
	return results, err
}

// flood has clients put until the end.
func (p *pass) flood(ctx context.Context, c *cluster, end time.Time) error {
	latencies := make([][]time.Duration, clientsAtOnce)
	clients, ctx := errgroup.WithContext(ctx)
	for one := range latencies {
		clients.Go(func() error {
			for i := 0; time.Now().Before(end); i++ {
				if err := p.put(ctx, c, one, i, &latencies[one]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := clients.Wait()
	p.latencies = slices.Concat(latencies...)
	return err
}

// put is one put of a client, timed.
func (p *pass) put(ctx context.Context, c *cluster, client, i int, latencies *[]time.Duration) error {
	data := bytesOf(i, client, putBytes)
	began := time.Now()
	if err := c.put(ctx, fmt.Sprintf("%s%d/%02d/%06d", prefixOf(p.scheme, p.mode), p.round+1, client, i), data); err != nil {
		return err
	}
	*latencies = append(*latencies, time.Since(began))
	return nil
}

// measure runs a pass and asks the gateway how its objects were packed.
func (c *cluster) measure(ctx context.Context, one *pass, do func(context.Context) error) error {
	before, err := c.metrics(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := do(ctx); err != nil {
		return err
	}
	one.elapsed = time.Since(began)
	after, err := c.metrics(ctx)
	if err != nil {
		return err
	}
	change := func(name string) float64 { return after[name] - before[name] }
	one.groups = change("restripe_packing_wait_seconds_count")
	one.blocks = change("restripe_packing_blocks_total")
	one.waited = change(`restripe_packing_objects_total{mode="batch"}`)
	if packed := change("restripe_packing_objects_total"); int(packed) != len(one.latencies) || one.groups <= 0 {
		return fmt.Errorf("of %d objects put the gateway packed %.0f, into %.0f groups", len(one.latencies), packed, one.groups)
	}
	return nil
}

// note keeps a pass, unless it warmed up, and says how it went.
func (b *bench) note(results *putResults, one *pass) {
	b.say("%s, %d clients, round %d  %-8s %6.0f puts/s, p50 %s, p99 %s, %.1f objects a group", one.scheme, results.clients, one.round+1,
		one.mode, one.rate(), milliseconds(quantile(one.latencies, 0.5)), milliseconds(quantile(one.latencies, 0.99)),
		float64(len(one.latencies))/one.groups)
	if one.round >= 0 {
		results.passes = append(results.passes, *one)
	}
}

// rate is puts in a second.
func (p *pass) rate() float64 { return float64(len(p.latencies)) / p.elapsed.Seconds() }

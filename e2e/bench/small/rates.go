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

// The part rates steps through rates at which puts are offered, and counts what is sent by mode: Figure 10 of BCStore.
const rateScheme = "rs(5,4)"

var (
	rateModes = []api.PackMode{api.PackAtOnce, api.PackAuto, api.PackBatch}
	rateSteps = []int{25, 100, 400, 800, 1600, 2400} // puts a second
)

// step is one rate in one mode.
type step struct {
	pass
	offered int // puts a second
	bytes   float64
	wire    float64
}

// rates offers each rate in each mode for a while.
func (b *bench) rates(ctx context.Context) ([]step, error) { return b.ratesOf(ctx, rateSteps) }

func (b *bench) ratesOf(ctx context.Context, offers []int) (steps []step, err error) {
	c, err := b.start(ctx, "rates", putClasses([]string{rateScheme}, rateModes))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	for round, offered := range offers {
		for _, mode := range turns(rateModes, round) {
			one := step{pass: pass{scheme: rateScheme, mode: mode, round: round}, offered: offered}
			if one.wire, err = c.counted(ctx, func(ctx context.Context) error {
				return c.measure(ctx, &one.pass, func(ctx context.Context) error { return b.offer(ctx, c, &one) })
			}); err != nil {
				return nil, err
			}
			one.bytes = float64(len(one.latencies) * trafficSize)
			b.say("rates: %d offered, %.0f put in mode %s, %.2f sent for 1 byte, %.0f %% waited", offered, one.rate(), mode, one.wire/one.bytes,
				100*one.waited/float64(len(one.latencies)))
			steps = append(steps, one)
		}
	}
	return steps, nil
}

// offer has puts begin at even distances.
func (b *bench) offer(ctx context.Context, c *cluster, s *step) error {
	latencies := make([][]time.Duration, clientsAtOnce)
	err := evenly(ctx, s.offered, s.offered*b.second, func(ctx context.Context, client, i int) error {
		data := bytesOf(i, s.round, trafficSize)
		began := time.Now()
		if err := c.put(ctx, fmt.Sprintf("%s%d/%06d", prefixOf(s.scheme, s.mode), s.round, i), data); err != nil {
			return err
		}
		latencies[client] = append(latencies[client], time.Since(began))
		return nil
	})
	s.latencies = slices.Concat(latencies...)
	return err
}

// evenly has clients begin so many a second of what is to be done. Where all of them are at work the next has to wait for one.
func evenly(ctx context.Context, perSecond, count int, do func(ctx context.Context, client, i int) error) error {
	due := make(chan int)
	clients, ctx := errgroup.WithContext(ctx)
	for one := range clientsAtOnce {
		clients.Go(func() error {
			for i := range due {
				if err := do(ctx, one, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	clients.Go(func() error {
		defer close(due)
		ticker := time.NewTicker(time.Second / time.Duration(perSecond))
		defer ticker.Stop()
		for i := range count {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return ctx.Err()
			}
			select {
			case due <- i:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return clients.Wait()
}

// reportRates is the section of the part rates.
func reportRates(steps []step) string {
	var text strings.Builder
	say := func(format string, values ...any) { fmt.Fprintf(&text, format+"\n", values...) }
	at := map[int]map[api.PackMode]*step{}
	var offers []int
	for i := range steps {
		if at[steps[i].offered] == nil {
			at[steps[i].offered] = map[api.PackMode]*step{}
			offers = append(offers, steps[i].offered)
		}
		at[steps[i].offered][steps[i].mode] = &steps[i]
	}
	say("## Sent by rate\n")
	say("BCStore, Figure 10. Puts of 4 KiB under %s are offered at a rate, for about as long in each mode; the delay of the classes is %s.",
		rateScheme, api.DefaultPackDelay)
	say("In mode auto an object waits where a row of %s, 5 columns, is full within the delay: from 1,000 a second on. Sent is counted as",
		rateScheme)
	say("above, for one byte put, and MiB a second is that times what was put. In place is 1 + m = 5, batches 1 + m/k = 1.8, without any")
	say("overhead. What is achieved of a rate, and p99, depend on what else the machine did.\n")
	say("| offered a second | put a second, auto | sent, at-once | auto | batch | auto to at-once | auto to batch " +
		"| MiB a second, at-once | auto | waited, auto | p99 at-once | auto | batch |")
	say("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, offered := range offers {
		modes := at[offered]
		sent := func(mode api.PackMode) float64 { return modes[mode].wire / modes[mode].bytes }
		flow := func(mode api.PackMode) string {
			return fmt.Sprintf("%.2f", modes[mode].wire/modes[mode].elapsed.Seconds()/(1<<20))
		}
		slow := func(mode api.PackMode) string { return milliseconds(quantile(modes[mode].latencies, 0.99)) }
		auto := modes[api.PackAuto]
		say("| %d | %.0f | %.2f | %.2f | %.2f | %.2f | %.2f | %s | %s | %.0f %% | %s | %s | %s |", offered, auto.rate(), sent(api.PackAtOnce),
			sent(api.PackAuto), sent(api.PackBatch), sent(api.PackAuto)/sent(api.PackAtOnce), sent(api.PackAuto)/sent(api.PackBatch),
			flow(api.PackAtOnce), flow(api.PackAuto), 100*auto.waited/float64(len(auto.latencies)), slow(api.PackAtOnce), slow(api.PackAuto),
			slow(api.PackBatch))
	}
	say("\nAs in the paper little is sent at low rates whatever the mode, and what is saved grows with the rate. The paper goes from in place")
	say("to batches by one switch; here at-once shares groups among objects that come while others are written, so that it nears batches by")
	say("itself, and auto saves what is left. In mode batch a put waits for the delay also where nobody else comes, and sends as much.")
	return text.String()
}

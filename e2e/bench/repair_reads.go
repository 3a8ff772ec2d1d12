//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/stripe"
)

// readsUnderRepair is how long clients wait with nothing lost, with a node lost and not repaired, and under its repair.
type readsUnderRepair struct {
	scheme                  stripe.Scheme
	rate                    int
	limit                   int64 // bytes a second at any one node, the default
	objects                 int
	quiet, degraded, repair []time.Duration
	rebuilt                 int64         // bytes, all rounds
	took                    time.Duration // all rounds
	calm                    disturbance
}

// readRound is one turn of the three cases.
type readRound struct {
	quiet, degraded, repair []time.Duration
	result                  api.RepairResult
}

// readUnderRepair reads at a steady rate while a node loses what it holds and is repaired within the default limits.
func (b *bench) readUnderRepair(ctx context.Context, n *network) (results readsUnderRepair, err error) {
	load := b.options.reading
	results.scheme, results.rate, results.objects = stripe.RS(6, 3), b.options.rates[len(b.options.rates)-1], b.options.objects*2
	nodes := results.scheme.K + results.scheme.M
	b.say("reads under repair of %s: starting %d agents, a proxy and a gateway", results.scheme, nodes)
	c, err := b.startCluster(ctx, n, nodes, repairClass(results.scheme, load.objectBytes))
	if err != nil {
		return results, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	status, err := c.client.PauseRepair(ctx)
	if err != nil {
		return results, err
	}
	results.limit = status.NodeBytesPerSecond
	objects, err := newCorpus(results.objects, load.objectBytes)
	if err != nil {
		return results, err
	}
	if err := objects.put(ctx, c.client, ""); err != nil {
		return results, err
	}
	members := []string{gatewayName}
	for i := range nodes {
		members = append(members, nodeName(i))
	}
	if err := n.shape(ctx, members, results.rate); err != nil {
		return results, err
	}
	r := &reader{client: c.client, objects: objects, every: time.Second / time.Duration(load.perSecond)}
	part := load.quiet / time.Duration(load.rounds)
	if _, err := r.during(ctx, waiting(4*part)); err != nil { // what was put settles, connections are made
		return results, err
	}
	var rounds []readRound
	rounds, results.calm, err = calm(load.rounds, forCalm(), readProcessorTicks, func(round int) (one readRound, err error) {
		if one.quiet, err = r.during(ctx, waiting(part)); err != nil {
			return one, err
		}
		if err := b.empty(ctx, c, nodeName(round%nodes)); err != nil {
			return one, err
		}
		if one.degraded, err = r.during(ctx, waiting(part)); err != nil {
			return one, err
		}
		one.repair, err = r.during(ctx, func(ctx context.Context) (err error) {
			one.result, err = c.client.RepairAs(ctx, api.RepairRequest{})
			return err
		})
		if err == nil && (len(one.result.Failed) > 0 || one.result.SlotsRebuilt == 0) {
			err = fmt.Errorf("%d slots were rebuilt; failures: %v", one.result.SlotsRebuilt, one.result.Failed)
		}
		return one, err
	})
	if err != nil {
		return results, err
	}
	for _, one := range rounds {
		results.quiet, results.degraded = append(results.quiet, one.quiet...), append(results.degraded, one.degraded...)
		results.repair = append(results.repair, one.repair...)
		results.rebuilt += one.result.BytesRebuilt
		results.took += time.Duration(one.result.ElapsedSeconds * float64(time.Second))
	}
	b.say("reads under repair: p99 %s ms quiet, %s ms degraded, %s ms under repair", milliseconds(quantile(results.quiet, 0.99)),
		milliseconds(quantile(results.degraded, 0.99)), milliseconds(quantile(results.repair, 0.99)))
	return results, n.free(ctx, members)
}

// waiting is work that takes a while.
func waiting(while time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(while):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reader reads one object after the other, each at its time, whether or not those before are there.
type reader struct {
	client  *client.Client
	objects corpus
	every   time.Duration
	next    int
}

// during reads for as long as the work takes and returns how long each read took from the time it was due.
func (r *reader) during(ctx context.Context, work func(context.Context) error) (latencies []time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- work(ctx) }()
	var readers sync.WaitGroup
	var mutex sync.Mutex
	var failures []error
	ticker := time.NewTicker(r.every)
	defer ticker.Stop()
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case due := <-ticker.C:
			i := r.next % len(r.objects)
			r.next += 7 // spreads over all nodes soon: no neighbours one after the other
			readers.Go(func() {
				failed := r.read(ctx, i)
				mutex.Lock()
				defer mutex.Unlock()
				if failed != nil {
					failures = append(failures, failed)
					cancel()
				}
				latencies = append(latencies, time.Since(due))
			})
		}
	}
	readers.Wait()
	if len(latencies) == 0 {
		failures = append(failures, errors.New("no read ended"))
	}
	return latencies, errors.Join(append(failures, err)...)
}

func (r *reader) read(ctx context.Context, i int) (err error) {
	key := keyOf("", i)
	content, err := r.client.Get(ctx, key, client.Range{})
	if err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	if err := sameBytes(content, bytes.NewReader(r.objects[i]), int64(len(r.objects[i]))); err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	return nil
}

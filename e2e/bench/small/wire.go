package main

import (
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/gateway/api"
)

// blockCalls are the calls by which blocks are written, read, moved and verified. What else is asked of nodes, whether they live and what
// they hold, and that dead blocks be deleted, depends on how long something takes.
var blockCalls = []string{"write", "read", "run", "inspect", "header"}

// wire is what the gateway has sent agents and got from them by these calls, what it read straight from their stores, and what agents
// sent each other for compaction. The messages' own overhead is in the first, TLS in none.
func wire(metrics map[string]float64) (total float64, err error) {
	for _, call := range blockCalls {
		for _, kind := range []string{"sent", "received"} {
			series := fmt.Sprintf("restripe_node_call_bytes_total{call=%q,kind=%q}", call, kind)
			bytes, found := metrics[series]
			if !found {
				return 0, fmt.Errorf("the gateway's metrics have no %s", series)
			}
			total += bytes
		}
	}
	return total + metrics["restripe_gateway_direct_read_bytes_total"] + metrics["restripe_compaction_splice_sent_bytes_total"], nil
}

// counted says what was sent for blocks while something was done.
func (c *cluster) counted(ctx context.Context, do func(context.Context) error) (float64, error) {
	before, err := c.metrics(ctx)
	if err != nil {
		return 0, err
	}
	if err := do(ctx); err != nil {
		return 0, err
	}
	after, err := c.metrics(ctx)
	if err != nil {
		return 0, err
	}
	was, err := wire(before)
	if err != nil {
		return 0, err
	}
	is, err := wire(after)
	return is - was, err
}

// compactAll moves all that can be given back, whatever the classes allow to be dead, and waits for that. A class that is never compacted
// stays as it is.
func (c *cluster) compactAll(ctx context.Context) (done api.Compaction, err error) {
	begun, err := c.gateway.StartCompaction(ctx, api.CompactionRequest{Everything: true})
	if err != nil {
		return done, err
	}
	err = patiently(ctx, func() (bool, error) {
		done, err = c.gateway.Compaction(ctx)
		return done.Pass > begun.Pass || done.Pass == begun.Pass && done.Finished != nil, err
	})
	switch {
	case err != nil:
		return done, err
	case done.Pass != begun.Pass || done.Failed > 0:
		return done, fmt.Errorf("pass %d of a compaction was begun, and pass %d left %d groups: %s", begun.Pass, done.Pass, done.Failed,
			done.Error)
	}
	return done, nil
}

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/e2e/bench/gauge"
)

// floodScheme is the cheapest scheme of the built-in ladder, and the one that takes the most nodes at once.
const floodScheme = "rs(12,2)"

// gatewayLimit is the most memory, bytes, that the gateway may have resident however many clients there are.
const gatewayLimit = 256 << 20

// floodResult is large objects put or read all at once.
type floodResult struct {
	operation string
	elapsed   time.Duration
	peak      memory
}

// flood puts large objects, all at the same time, then reads them all at the same time and compares every byte.
func (b *bench) flood(ctx context.Context) (results []floodResult, err error) {
	load := b.options.flood
	b.say("%d objects of %s MiB at once: starting %d agents over directories in memory", load.objects, mebibytes(load.objectBytes), dataPathAgents)
	l, err := b.startLocal(ctx, launch.StoreFile)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.stop()) }()
	for _, operation := range []string{"put", "get"} {
		for name, pid := range l.Pids() {
			if err := gauge.ResetPeak(pid); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		began := time.Now()
		workers, workCtx := errgroup.WithContext(ctx)
		for i := range load.objects {
			workers.Go(func() error {
				if operation == "put" {
					return floodPut(workCtx, l.gateway, i, load.objectBytes)
				}
				return floodGet(workCtx, l.gateway, i, load.objectBytes)
			})
		}
		if err := workers.Wait(); err != nil {
			return nil, err
		}
		result := floodResult{operation: operation, elapsed: time.Since(began)}
		if result.peak, err = l.memory(); err != nil {
			return nil, err
		}
		results = append(results, result)
		b.say("%s of %d objects of %s MiB: %.1fs, gateway peak %s MiB", operation, load.objects, mebibytes(load.objectBytes),
			result.elapsed.Seconds(), mebibytes(result.peak.gateway))
	}
	return results, nil
}

func floodPut(ctx context.Context, gateway *client.Client, i int, length int64) error {
	key := keyOf("flood/", i)
	_, err := gateway.Put(ctx, key, io.LimitReader(bytesOf(i), length), client.PutOptions{Scheme: floodScheme, Size: length, SizeKnown: true})
	if err != nil {
		return fmt.Errorf("putting %s: %w", key, err)
	}
	return nil
}

func floodGet(ctx context.Context, gateway *client.Client, i int, length int64) (err error) {
	key := keyOf("flood/", i)
	content, err := gateway.Get(ctx, key, client.Range{})
	if err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	if err := sameBytes(content, bytesOf(i), length); err != nil {
		return fmt.Errorf("reading %s: %w", key, err)
	}
	return nil
}

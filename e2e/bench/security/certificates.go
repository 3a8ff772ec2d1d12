package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
)

const (
	objectBytes = 1 << 20
	workers     = 4
)

// kinds of work, in the order of a round.
var kinds = []string{"put", "get", "transition", "repair"}

// certificates compares clusters with and without them, in turns.
func (b *bench) certificates(ctx context.Context) (_ string, err error) {
	if b.rounds == 0 {
		return "", nil
	}
	names := []string{"plain", "tls"}
	clusters := map[string]*cluster{}
	for _, name := range names {
		c, err := b.start(ctx, name, name == "plain")
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, c.stop()) }()
		clusters[name] = c
	}
	rates := map[string]map[string][]float64{} // MiB a second by cluster and kind
	for round := range b.rounds {
		slices.Reverse(names)
		for _, name := range names {
			measured, err := b.round(ctx, clusters[name], round)
			if err != nil {
				return "", fmt.Errorf("%s, round %d: %w", name, round, err)
			}
			for kind, rate := range measured {
				if rates[name] == nil {
					rates[name] = map[string][]float64{}
				}
				rates[name][kind] = append(rates[name][kind], rate)
			}
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "## Certificates\n\nObjects of 1 MiB, %d clients: put under rs(4,2), read, taken to rs(12,2), and one node of "+
		"fifteen rebuilt after it lost all. MiB a second of objects (of what was rebuilt, for repair), median and slowest of "+
		"%d rounds.\n\n", workers, b.rounds)
	text.WriteString("| | without | slowest | with | slowest | with / without |\n|---|---|---|---|---|---|\n")
	for _, kind := range kinds {
		plain, tls := rates["plain"][kind], rates["tls"][kind]
		fmt.Fprintf(&text, "| %s | %.0f | %.0f | %.0f | %.0f | %.2f |\n", kind,
			median(plain), slices.Min(plain), median(tls), slices.Min(tls), median(tls)/median(plain))
	}
	text.WriteString("\n")
	return text.String(), nil
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// round does each kind of work once, and returns MiB a second.
func (b *bench) round(ctx context.Context, c *cluster, round int) (map[string]float64, error) {
	prefix := fmt.Sprintf("round%d/", round)
	rates := map[string]float64{}
	size := float64(b.objects * objectBytes >> 20)
	timed := func(kind string, work func() error) error {
		began := time.Now()
		err := work()
		rates[kind] = size / time.Since(began).Seconds()
		return err
	}
	data := make([]byte, objectBytes)
	rand.NewChaCha8([32]byte{1}).Read(data) //nolint:errcheck // never fails
	each := func(do func(key string) error) func() error {
		return func() error {
			var group errgroup.Group
			group.SetLimit(workers)
			for i := range b.objects {
				group.Go(func() error { return do(fmt.Sprint(prefix, i)) })
			}
			return group.Wait()
		}
	}
	if err := timed("put", each(func(key string) error {
		_, err := c.client.Put(ctx, key, bytes.NewReader(data), client.PutOptions{Scheme: "rs(4,2)", Size: objectBytes, SizeKnown: true})
		return err
	})); err != nil {
		return nil, err
	}
	if err := timed("get", each(func(key string) error {
		content, err := c.client.Get(ctx, key, client.Range{})
		if err != nil {
			return err
		}
		n, err := io.Copy(io.Discard, content)
		if err == nil && n != objectBytes {
			err = fmt.Errorf("%s: %d bytes", key, n)
		}
		return errors.Join(err, content.Close())
	})); err != nil {
		return nil, err
	}
	if err := timed("transition", func() error {
		selected := api.EncodeKey(prefix)
		started, err := c.client.StartTransition(ctx, api.TransitionRequest{Selector: api.Selector{Prefix64: &selected}, To: "rs(12,2)"})
		if err != nil {
			return err
		}
		last, err := c.client.Watch(ctx, started.ID, func(api.Transition) error { return nil })
		if err == nil && last.State != api.TransitionDone {
			err = fmt.Errorf("the transition is %s: %s", last.State, last.Error)
		}
		return err
	}); err != nil {
		return nil, err
	}
	rate, err := c.rebuild(ctx, fmt.Sprint("n", 1+round%15))
	rates["repair"] = rate
	return rates, err
}

// rebuild has a node lose all and returns at how many MiB a second it was rebuilt.
func (c *cluster) rebuild(ctx context.Context, node string) (rate float64, err error) {
	if _, err := c.client.PauseRepair(ctx); err != nil {
		return 0, err
	}
	if err := c.Halt(node); err != nil {
		return 0, err
	}
	for _, member := range c.Members() {
		if directory, isFile := strings.CutPrefix(member.Store, "file:"); isFile && member.ID == node {
			if err := empty(directory); err != nil {
				return 0, err
			}
		}
	}
	if err := c.Restart(ctx, node); err != nil {
		return 0, err
	}
	var rebuilt int64
	var took float64
	for {
		result, err := c.client.Repair(ctx)
		if err != nil {
			return 0, err
		}
		rebuilt, took = rebuilt+result.BytesRebuilt, took+result.ElapsedSeconds
		if rebuilt > 0 && result.GroupsRepaired == 0 && len(result.Failed) == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(100 * time.Millisecond): // until the gateway has seen that the node lost all
		}
	}
	_, err = c.client.ResumeRepair(ctx)
	return float64(rebuilt) / (1 << 20) / took, err
}

// empty removes what is in a directory.
func empty(directory string) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(directory, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

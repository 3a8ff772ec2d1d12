//go:build linux && ceph

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/store/ceph/pools"
)

// The classes of the comparison, one for each chain of changes.
const classes = `classes:
- name: chain0
  ladder: rs(4,2),rs(6,2),rs(12,2)
  prefixes: [chain0/]
- name: chain1
  ladder: rs(4,2),rs(12,2)
  prefixes: [chain1/]
- name: chain2
  ladder: rep(3),rs(12,2)
  prefixes: [chain2/]
`

// scheme is a code in Restripe's words.
func (c code) scheme() string {
	if c.k == 0 {
		return fmt.Sprintf("rep(%d)", c.copies)
	}
	return fmt.Sprintf("rs(%d,%d)", c.k, c.m)
}

// restripe measures Restripe's way: one agent beside each OSD, over a pool of size 1.
func (b *bench) restripe(ctx context.Context) (steps []step, err error) {
	err = b.withCeph(ctx, func(g *ground) error {
		cluster, err := b.startAgents(ctx, g)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cluster.Stop()) }()
		c, err := client.New(cluster.Gateway())
		if err != nil {
			return err
		}
		defer c.Close()
		for i, chain := range chains {
			measured, err := b.restripeChain(ctx, g, c, fmt.Sprintf("chain%d", i), chain)
			if err != nil {
				return err
			}
			steps = append(steps, measured...)
		}
		return nil
	})
	return steps, err
}

// startAgents makes the pools and starts an agent for each, and a gateway.
func (b *bench) startAgents(ctx context.Context, g *ground) (*launch.Cluster, error) {
	connection, err := pools.Connect(ctx, pools.Access{Config: g.Config(), Keyring: g.Keyring()})
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	state, err := pools.Observe(ctx, connection)
	if err != nil {
		return nil, err
	}
	plan, err := pools.Prepare(state, pools.Options{})
	if err != nil {
		return nil, err
	}
	if err := plan.Apply(ctx, connection, func(pools.Step) {}); err != nil {
		return nil, err
	}
	if err := g.AwaitServing(); err != nil {
		return nil, err
	}
	ceph := &launch.Ceph{Config: g.Config(), Keyring: g.Keyring(), User: "admin"}
	for _, n := range plan.Nodes {
		ceph.Pools = append(ceph.Pools, launch.CephPool{Name: n.Pool})
	}
	file := filepath.Join(b.base, "classes.yaml")
	if err := os.WriteFile(file, []byte(classes), 0o644); err != nil {
		return nil, err
	}
	b.say("starting %d agents and a gateway", len(ceph.Pools))
	return launch.Start(ctx, launch.Options{
		Directory: filepath.Join(b.base, "state"), Binary: filepath.Join(b.base, "restripe"), Store: launch.StoreCeph, Ceph: ceph, ClassFile: file,
		GatewayArguments: []string{"--cache", "0"},
	})
}

func (b *bench) restripeChain(ctx context.Context, g *ground, c *client.Client, class string, codes []code) (steps []step, err error) {
	b.say("Restripe: writing %d objects under %s", len(b.objects), codes[0].name)
	if err := b.objects.put(ctx, c, class+"/"); err != nil {
		return nil, err
	}
	for i, to := range codes[1:] {
		if err := buried(ctx, c); err != nil {
			return nil, err
		}
		s, err := measure(ctx, g.counters, wayRestripe, codes[i].name+" -> "+to.name, func(s *step) error {
			return transition(ctx, c, class, to.scheme(), len(b.objects), s)
		})
		if err != nil {
			return nil, err
		}
		b.say("Restripe: %s in %.1f s", s.change, s.elapsed.Seconds())
		steps = append(steps, s)
		if err := b.objects.verify(ctx, c, class+"/"); err != nil {
			return nil, err
		}
	}
	return steps, b.objects.each(ctx, func(ctx context.Context, name string, _ []byte) error { return c.Delete(ctx, class+"/"+name) })
}

// How long it may take until superseded blocks are deleted: they are kept for a while, for readers that began before.
const (
	sweepEvery   = 2 * time.Second
	buryPatience = 5 * time.Minute
)

// buried waits until all blocks that are no longer needed are deleted, so that no step is credited with space that an
// earlier one gives free.
func buried(ctx context.Context, c *client.Client) error {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for deadline := time.Now().Add(buryPatience); ; {
		if _, err := c.Sweep(ctx, api.SweepRequest{}); err != nil {
			return err
		}
		status, err := c.Status(ctx)
		if err != nil || status.Graves == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d blocks that are no longer needed are still there after %s", status.Graves, buryPatience)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// transition takes a class to a scheme and waits for the end.
func transition(ctx context.Context, c *client.Client, class, to string, groups int, s *step) error {
	begun, err := c.StartTransition(ctx, api.TransitionRequest{Selector: api.Selector{Class: class}, To: to, Concurrency: atOnce})
	if err != nil {
		return err
	}
	ended, err := c.Watch(ctx, begun.ID, func(api.Transition) error { return nil })
	if err != nil {
		return err
	}
	if ended.State != api.TransitionDone || ended.GroupsDone != int64(groups) {
		return fmt.Errorf("the transition ended as %s after %d groups of %d: %s", ended.State, ended.GroupsDone, groups, ended.Error)
	}
	s.elapsed = time.Duration(ended.ElapsedSeconds * float64(time.Second))
	s.agents = ended.Measured.BytesSent
	return nil
}

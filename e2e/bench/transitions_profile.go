//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/file"
)

// profiledTime is how much CPU time of the transitions of a step is profiled in each direction.
func profiledTime(o options) time.Duration {
	if o.quick {
		return 200 * time.Millisecond
	}
	return 2 * time.Second
}

// kernelPackages are the kernel: its own package, and those that do products and sums where it has no assembly.
var kernelPackages = []string{"github.com/restripe/restripe/agent/kernel", "github.com/klauspost/reedsolomon", "crypto/internal/fips140/subtle"}

// transitionProfile is where the CPU time of all transitions in one direction goes.
type transitionProfile struct {
	change               step
	transitions          int
	all, gateway, agents []packageTime // all: also what has no role
}

// profileStep takes the objects there and back by planner restripe, in a cluster inside the bench, until each direction
// has used enough CPU time.
func (b *bench) profileStep(ctx context.Context, s step, objects corpus, enough time.Duration) (found []transitionProfile, err error) {
	b.say("%s: profiling a gateway and %d agents in one process", s, s.nodes())
	state, err := b.directory("profile")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	classes, err := api.ParseClasses([]byte(classesFor(s, []contender{restripePlanner}, b.options.objectBytes)))
	if err != nil {
		return nil, err
	}
	c, stop, err := startInside(ctx, state, s.nodes(), classes, func(ctx context.Context, id string) (store.Store, error) {
		return file.Open(ctx, filepath.Join(state, id))
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	defer c.Close()
	prefix := restripePlanner.class + "/"
	if err := objects.put(ctx, c, prefix); err != nil {
		return nil, err
	}
	changes := []step{s, {from: s.to, to: s.from}}
	used, paths := make([]time.Duration, len(changes)), make([][]string, len(changes))
	for slices.Min(used) < enough {
		for i, change := range changes {
			path := filepath.Join(state, fmt.Sprintf("%d-%d.pprof", i, len(paths[i])))
			taken, err := profileTransition(ctx, c, change, len(objects), path)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", change, err)
			}
			used[i], paths[i] = used[i]+taken, append(paths[i], path)
		}
	}
	if err := objects.verify(ctx, c, prefix); err != nil {
		return nil, fmt.Errorf("verifying afterwards: %w", err)
	}
	for i, change := range changes {
		one := transitionProfile{change: change, transitions: len(paths[i])}
		for role, packages := range map[string]*[]packageTime{"": &one.all, "gateway": &one.gateway, "agent": &one.agents} {
			if *packages, err = timeByPackage(ctx, role, paths[i]...); err != nil {
				return nil, fmt.Errorf("reading the profiles of %s: %w", change, err)
			}
		}
		found = append(found, one)
	}
	return found, nil
}

// profileTransition writes the CPU profile of one transition and returns the CPU time that it took.
func profileTransition(ctx context.Context, c *client.Client, change step, groups int, path string) (taken time.Duration, err error) {
	var ended api.Transition
	if err := profileInto(path, func() error {
		before, err := ownTime()
		if err != nil {
			return err
		}
		if ended, err = carryOut(ctx, c, restripePlanner, change, ""); err != nil {
			return err
		}
		after, err := ownTime()
		taken = after - before
		return err
	}); err != nil {
		return 0, err
	}
	return taken, checkDone(ended, groups)
}

// secondsOf sums up the time of packages: of those named, or of all.
func secondsOf(packages []packageTime, names ...string) (total float64) {
	for _, p := range packages {
		if len(names) == 0 || slices.Contains(names, p.name) {
			total += p.seconds
		}
	}
	return total
}

func kernelTable(profiles []transitionProfile) *table {
	t := &table{headings: []string{"transition", "CPU s", "gateway", "agents", "rest", "kernel", "kernel of agents", "next to it", "share"}}
	for _, p := range profiles {
		all, gateway, agents := secondsOf(p.all), secondsOf(p.gateway), secondsOf(p.agents)
		next := packageTime{name: "-"}
		for _, candidate := range p.all { // most first
			if !slices.Contains(kernelPackages, candidate.name) {
				next = candidate
				break
			}
		}
		t.add(p.change.String(), fmt.Sprintf("%.2f", all/float64(p.transitions)), share(gateway, all), share(agents, all), share(all-gateway-agents, all),
			share(secondsOf(p.all, kernelPackages...), all), share(secondsOf(p.agents, kernelPackages...), agents), next.name, share(next.seconds, all))
	}
	return t
}

// share shows a part of a whole, or nothing of nothing.
func share(part, whole float64) string {
	if whole <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*part/whole)
}

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/stripe"
)

// contender is one way to make a transition, on the layout that suits it.
type contender struct {
	planner string
	class   string // of the objects; classes are called after the mode of their layout
}

// The contenders. The papers' planners get the layouts of their papers.
var (
	restripePlanner = contender{stripe.PlannerRestripe, string(stripe.ModeFree)}
	ersPlanner      = contender{stripe.PlannerERS2, string(stripe.ModePair)}
	srsPlanner      = contender{stripe.PlannerSRS, string(stripe.ModeRow)}
	reencodePlanner = contender{stripe.PlannerReencode, string(stripe.ModeFree)}
)

// run is one transition of all objects of a class.
type run struct {
	change    step // in the direction taken
	merge     bool
	rate      int // megabits per second
	round     int
	contender contender
	elapsed   time.Duration // by the gateway's clock: from accepted to done, the records saved
	groups    int64
	retries   int64 // tries of groups that failed and were made again
	cell      int64 // bytes
	predicted api.Traffic
	measured  api.Traffic   // by the agents
	moved     transfer      // by the devices
	cpu       time.Duration // of gateway and agents
}

// transitionResults are all runs, the memory of the clusters they ran on, and where restripe's CPU time went.
type transitionResults struct {
	runs     []run
	memories []stepMemory
	profiles []transitionProfile
}

type stepMemory struct {
	step step
	peak memory
}

// transitions measures every step at every rate, and the merges at the first rate.
func (b *bench) transitions(ctx context.Context) (results transitionResults, err error) {
	widest := 0
	for _, s := range append(append([]step{}, b.options.steps...), b.options.merges...) {
		widest = max(widest, s.nodes())
	}
	n, err := newNetwork(ctx, widest)
	if err != nil {
		return results, err
	}
	defer func() { err = errors.Join(err, n.close(ctx)) }()
	objects, err := newCorpus(b.options.objects, b.options.objectBytes)
	if err != nil {
		return results, err
	}
	for _, s := range b.options.steps {
		contenders := []contender{restripePlanner, ersPlanner, srsPlanner, reencodePlanner}
		if err := b.compare(ctx, n, s, b.options.rates, b.options.rounds, false, contenders, objects, &results); err != nil {
			return results, fmt.Errorf("%s: %w", s, err)
		}
	}
	for _, s := range b.options.merges {
		contenders := []contender{restripePlanner, reencodePlanner}
		if err := b.compare(ctx, n, s, b.options.rates[:1], []int{1}, true, contenders, objects, &results); err != nil {
			return results, fmt.Errorf("%s: %w", s, err)
		}
	}
	for _, s := range append(append([]step{}, b.options.steps...), b.options.merges...) {
		profiles, err := b.profileStep(ctx, s, objects, profiledTime(b.options))
		if err != nil {
			return results, fmt.Errorf("profiling %s: %w", s, err)
		}
		results.profiles = append(results.profiles, profiles...)
	}
	return results, nil
}

// compare takes the objects there and back by every contender in turn, on a cluster of just the nodes the ladder needs
// and the proxy. The order of contenders rotates with the rounds. Re-encoding, which takes longest and is no one's aim,
// has one round.
func (b *bench) compare(ctx context.Context, n *network, s step, rates, rounds []int, merge bool, contenders []contender, objects corpus, results *transitionResults) (err error) {
	b.say("%s: starting %d agents, a proxy and a gateway", s, s.nodes())
	c, err := b.startCluster(ctx, n, s.nodes(), classesFor(s, contenders, b.options.objectBytes))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	loaded := map[string]bool{}
	for _, way := range contenders {
		if !loaded[way.class] {
			if err := objects.put(ctx, c.client, way.class+"/"); err != nil {
				return err
			}
			loaded[way.class] = true
		}
	}
	members := []string{proxyName}
	for i := range s.nodes() {
		members = append(members, nodeName(i))
	}
	for at, rate := range rates {
		if err := n.shape(ctx, members, rate); err != nil {
			return err
		}
		for round := range rounds[at] {
			for i := range contenders {
				way := contenders[(i+round)%len(contenders)]
				if way == reencodePlanner && round > 0 {
					continue
				}
				for _, change := range []step{s, {from: s.to, to: s.from}} {
					one := run{change: change, merge: merge, rate: rate, round: round, contender: way}
					if err := b.transition(ctx, c, &one, objects); err != nil {
						return fmt.Errorf("%s by %s at %d Mb/s: %w", change, way.planner, rate, err)
					}
					results.runs = append(results.runs, one)
				}
			}
		}
	}
	peak, err := c.memory()
	if err != nil {
		return err
	}
	results.memories = append(results.memories, stepMemory{step: s, peak: peak})
	return n.free(ctx, members)
}

// transition carries out one run, fills in what it cost, and verifies every object. The gateway's link is held to the
// rate for the transition and not for the verification, which is not measured.
func (b *bench) transition(ctx context.Context, c *cluster, one *run, objects corpus) error {
	if err := c.network.shape(ctx, []string{gatewayName}, one.rate); err != nil {
		return err
	}
	cpu, err := c.cpu()
	if err != nil {
		return err
	}
	before, err := countDevices()
	if err != nil {
		return err
	}
	ended, err := carryOut(ctx, c.client, one.contender, one.change, proxyName)
	if err != nil {
		return err
	}
	after, err := countDevices()
	if err != nil {
		return err
	}
	used, err := c.cpu()
	if err != nil {
		return err
	}
	if err := c.network.free(ctx, []string{gatewayName}); err != nil {
		return err
	}
	if err := checkDone(ended, len(objects)); err != nil {
		return err
	}
	one.elapsed = time.Duration(ended.ElapsedSeconds * float64(time.Second))
	one.groups, one.retries = ended.GroupsDone, ended.Attempts-ended.GroupsDone
	one.predicted, one.measured = ended.Predicted, ended.Measured
	one.moved, one.cpu = transferBetween(before, after), used-cpu
	prefix := one.contender.class + "/"
	stat, err := c.client.Stat(ctx, keyOf(prefix, 0))
	if err != nil {
		return err
	}
	one.cell = int64(stat.Groups[0].CellBytes)
	if err := objects.verify(ctx, c.client, prefix); err != nil {
		return fmt.Errorf("verifying afterwards: %w", err)
	}
	b.say("%4d Mb/s  round %d  %-20s %-10s %7.2fs  %8s MB between agents", one.rate, one.round+1, one.change, one.contender.planner,
		one.elapsed.Seconds(), megabytes(one.moved.delivered.bytes))
	return nil
}

// carryOut starts a transition of all objects of the contender's class and waits for its end; proxy is empty where there
// is none.
func carryOut(ctx context.Context, c *client.Client, way contender, change step, proxy string) (ended api.Transition, err error) {
	started, err := c.StartTransition(ctx, api.TransitionRequest{
		Selector: api.Selector{Class: way.class}, To: change.to.String(), Planner: way.planner, Proxy: proxy,
	})
	if err != nil {
		return ended, err
	}
	return c.Watch(ctx, started.ID, func(api.Transition) error { return nil })
}

// checkDone refuses a transition that did not take all groups.
func checkDone(ended api.Transition, groups int) error {
	if ended.State != api.TransitionDone || ended.GroupsDone != int64(groups) {
		return fmt.Errorf("the transition ended %s after %d tries of groups, with %d of %d groups done: %s",
			ended.State, ended.Attempts, ended.GroupsDone, groups, ended.Error)
	}
	return nil
}

// classesFor is the class file of a step: one class for every layout, of one group an object.
func classesFor(s step, contenders []contender, objectBytes int64) string {
	text, there := "classes:\n", map[string]bool{}
	for _, way := range contenders {
		if !there[way.class] {
			text += fmt.Sprintf("- {name: %[1]s, mode: %[1]s, prefixes: ['%[1]s/'], ladder: '%[2]s', packBelow: '0', groupBytes: '%[3]d'}\n",
				way.class, s.ladder(), objectBytes)
			there[way.class] = true
		}
	}
	return text
}

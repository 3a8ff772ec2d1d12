//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/e2e/bench/provenance"
)

// scrubSchemes are the codes whose scrub is measured.
var scrubSchemes = []stripe.Scheme{stripe.Replicas(3), stripe.RS(4, 2), stripe.RS(6, 3), stripe.RS(10, 4)}

// scrubCycles is how many cycles over all objects are measured together, so that their CPU time is many clock ticks.
const scrubCycles = 5

// scrubRun is the scrub of all objects of a code, so many cycles over.
type scrubRun struct {
	scheme  stripe.Scheme
	depth   api.ScrubDepth
	cell    int64 // bytes
	data    int64 // bytes of the objects, all cycles together
	read    int64 // bytes of the blocks the nodes hold, all cycles together
	control int64 // bytes between the gateway and the agents, headers of the network included
	between int64 // the same between agents
	elapsed time.Duration
	cpu     time.Duration // of gateway and agents
}

// scrubs measures cycles of each depth over the objects under each code.
func (b *bench) scrubs(ctx context.Context) (runs []scrubRun, err error) {
	widest := scrubSchemes[len(scrubSchemes)-1]
	n, err := newNetwork(ctx, widest.K+widest.M)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close(ctx)) }()
	objects, err := newCorpus(b.options.objects, b.options.objectBytes)
	if err != nil {
		return nil, err
	}
	for _, scheme := range scrubSchemes {
		measured, err := b.scrubScheme(ctx, n, scheme, objects)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", scheme, err)
		}
		runs = append(runs, measured...)
	}
	return runs, nil
}

func (b *bench) scrubScheme(ctx context.Context, n *network, scheme stripe.Scheme, objects corpus) (runs []scrubRun, err error) {
	classes := fmt.Sprintf("classes:\n- {name: default, ladder: '%s', prefixes: [''], packBelow: 0, groupBytes: %d}\n", scheme, b.options.objectBytes)
	b.say("scrub of %s: starting %d agents and a gateway", scheme, scheme.K+scheme.M)
	c, err := b.startCluster(ctx, n, scheme.K+scheme.M, classes)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	if err := objects.put(ctx, c.client, ""); err != nil {
		return nil, err
	}
	stat, err := c.client.Stat(ctx, keyOf("", 0))
	if err != nil {
		return nil, err
	}
	for _, depth := range []api.ScrubDepth{api.ScrubAudit, api.ScrubShallow} {
		one := scrubRun{scheme: scheme, depth: depth, cell: int64(stat.Groups[0].CellBytes)}
		if err := b.scrubDepth(ctx, c, &one, objects); err != nil {
			return nil, fmt.Errorf("%s scrub: %w", depth, err)
		}
		runs = append(runs, one)
	}
	return runs, nil
}

// scrubDepth runs the cycles and counts what they cost.
func (b *bench) scrubDepth(ctx context.Context, c *cluster, one *scrubRun, objects corpus) error {
	cpu, err := c.cpu()
	if err != nil {
		return err
	}
	before, err := countDevices()
	if err != nil {
		return err
	}
	for range scrubCycles {
		scrub, err := c.client.StartScrub(ctx, api.ScrubRequest{Depth: one.depth})
		if err != nil {
			return err
		}
		cycle := scrub.Cycle
		if err := c.await(ctx, "the scrub ends", func(ctx context.Context) (bool, error) {
			scrub, err = c.client.Scrub(ctx)
			return err == nil && scrub.Cycle == cycle && scrub.State == api.ScrubDone, err
		}); err != nil {
			return err
		}
		if scrub.Findings > 0 || scrub.GroupsIncomplete > 0 || scrub.GroupsDone != int64(len(objects)) {
			return fmt.Errorf("cycle %d of objects that are right: %+v", cycle, scrub)
		}
		one.elapsed += time.Duration(scrub.ElapsedSeconds * float64(time.Second))
		one.read += scrub.BytesDone
		for _, data := range objects {
			one.data += int64(len(data))
		}
	}
	after, err := countDevices()
	if err != nil {
		return err
	}
	used, err := c.cpu()
	if err != nil {
		return err
	}
	moved := transferBetween(before, after)
	one.control, one.between, one.cpu = moved.control.bytes, moved.delivered.bytes, used-cpu
	b.say("scrub of %s, %s: %.2f s, %d bytes on the network", one.scheme, one.depth, one.elapsed.Seconds(), one.control+one.between)
	return nil
}

// reportScrub is the page docs/benchmarks/scrub.md.
func reportScrub(source provenance.Facts, o options, runs []scrubRun) string {
	page := "# Scrubbing\n\n" +
		"Every block is read and checked at its node, and every parity equation by fingerprints at the gateway. Against it: what any check of parity without linear fingerprints must bring together, all blocks.\n\n" +
		source.List("times are then preliminary",
			fmt.Sprintf("objects: %d of %s MiB, one group each; %d cycles over them, counted together", o.objects, mebibytes(o.objectBytes), scrubCycles),
			"nodes: k + m, one gateway; one network namespace each; file stores in memory, no limit on the rate",
		) + "\n" + scrubTable(runs).String() +
		"\nBytes on the network are those of all devices, between the gateway and the agents and between agents, headers included, for each GiB of objects; asking every agent once a second whether it is there is in them. " +
		"Gathering: the bytes of all blocks of a GiB of objects, in MiB; the ratio divides it by what the scrub sent. GiB/s per core: bytes of blocks read by the CPU time of gateway and agents. A shallow scrub reads headers only, so it has no such rate.\n"
	return page
}

func scrubTable(runs []scrubRun) *table {
	t := &table{headings: []string{"scheme, depth", "cell KiB", "network KiB/GiB", "gathering MiB/GiB", "ratio", "GiB/s", "GiB/s per core"}}
	for _, one := range runs {
		gib := float64(one.data) / (1 << 30)
		sent, gathered := float64(one.control+one.between)/gib, float64(one.read)/gib
		rate, perCore := "-", "-"
		if one.depth == api.ScrubAudit {
			rate = fmt.Sprintf("%.2f", float64(one.read)/(1<<30)/one.elapsed.Seconds())
			perCore = fmt.Sprintf("%.2f", float64(one.read)/(1<<30)/max(one.cpu.Seconds(), clockTick.Seconds()))
		}
		t.add(fmt.Sprintf("%s, %s", one.scheme, one.depth), fmt.Sprint(one.cell>>10), fmt.Sprintf("%.1f", sent/(1<<10)), fmt.Sprintf("%.0f", gathered/(1<<20)),
			fmt.Sprintf("%.0f", gathered/sent), rate, perCore)
	}
	return t
}

//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/e2e/bench/provenance"
)

// The aims of repair.
const (
	inBandAim = 1.4 // times as fast as an initiator that gathers, decodes and writes back
	chainAim  = 1.5 // times a plain transfer of one block
	readsAim  = 1.5 // times the p99 of the quiet case
)

// repairKey names the repairs that repeat each other.
type repairKey struct {
	scheme stripe.Scheme
	rate   int
	way    repairWay
}

// reportRepair is the page docs/benchmarks/repair.md.
func reportRepair(source provenance.Facts, o options, results repairResults) string {
	var page strings.Builder
	page.WriteString("# Repair over shaped links\n\n" +
		"What a node lost is rebuilt by the others: by sums that survivors send on in pieces, and by its peers in the same run.\n\n")
	page.WriteString(source.List("times are then preliminary",
		fmt.Sprintf("objects: %d of %s MiB, one group each, read back and compared byte for byte after every round", o.objects, mebibytes(o.objectBytes)),
		"nodes: k + m, one proxy that holds no blocks, one gateway; one network namespace each; file stores in memory",
		"links: one pair of virtual devices per node to one bridge, `tbf` with burst 128 kB and latency 50 ms on both ends, the gateway's and the proxy's too",
		"rounds: "+roundsOf(o)+", the ways one after the other in rotating order",
	))
	page.WriteString("\n## A node that lost everything\n\nThe store of one node is emptied and rebuilt in place, without limits.\n\n" + nodeTable(results.nodes).String())
	page.WriteString("\nSeconds are the gateway's, from the pass begun to its last group committed, verified by fingerprints: median and slowest of the rounds. " +
		"Ratio: how many times as long the initiator with whole cells (BiEC: gather, decode, write back) takes, median and least of the rounds; " +
		fmt.Sprintf("the aim is %.1f. ", inBandAim) +
		"Blocks sent: for each block rebuilt, by the agents' own counts. Devices: what the nodes' devices delivered between agents, without headers. CPU is what gateway and agents used; where it nears cores times seconds, the processors set the time and not the links.\n")
	page.WriteString("\n## One lost block\n\n" + blockTable(results.blocks.runs).String())
	page.WriteString("\nOne stripe on agents alone; the time is from the programs sent to the block stored and acknowledged: median and slowest of " +
		fmt.Sprintf("%d rounds, the ways one after the other in rotating order; the first of a way makes the connections between the agents and their memory. ", o.lostRounds) +
		blockCalm(o.rates, results.blocks.calm) +
		"The plain transfer is one TCP connection between two of the same nodes, outside of the product, which stores nothing. Bare relays are outside of it, too, one process for each survivor: it reads its block, adds it to what comes and sends the sum on in pieces of the same size, and nothing is compared with checksums, acknowledged or stored. CPU is what all agents, or relays, used; where it nears cores times seconds, the processors set the time and not the links. " +
		fmt.Sprintf("The aim is a pipelined chain within %.1f of it, by the median round.\n", chainAim))
	page.WriteString("\n## Reads under repair\n\n" + readsTable(results.reads).String())
	r := results.reads
	page.WriteString(fmt.Sprintf("\n%s, %d objects of %s MiB, links of %d Mb/s, %d reads a second whether or not those before have ended; latencies are from the time a read was due. ",
		r.scheme, r.objects, mebibytes(o.reading.objectBytes), r.rate, o.reading.perSecond) +
		fmt.Sprintf("Under repair: the default limit of %s MiB/s at any one node; %s MB were rebuilt in %.1f s over %d rounds, each of another node. ",
			mebibytes(r.limit), megabytes(r.rebuilt), r.took.Seconds(), o.reading.rounds) +
		fmt.Sprintf("Degraded: the node's blocks are lost and nothing is repaired. The cases took turns, after a while that is not counted: %s. The aim is %.1f times the quiet p99.\n", r.calm, readsAim))
	return page.String()
}

// blockCalm says for each rate how calm its rounds were.
func blockCalm(rates []int, calm map[int]disturbance) (text string) {
	text = calmRule
	for _, rate := range rates {
		text += fmt.Sprintf("At %d Mb/s: %s. ", rate, calm[rate])
	}
	return text
}

func nodeTable(all []nodeRepair) *table {
	var keys []repairKey
	runs := map[repairKey][]nodeRepair{}
	for _, one := range all {
		key := repairKey{one.scheme, one.rate, one.way}
		runs[key] = append(runs[key], one)
	}
	for _, one := range all { // in the order of schemes, rates and ways
		for _, way := range repairWays {
			key := repairKey{one.scheme, one.rate, way}
			if len(runs[key]) > 0 && !containsKey(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	t := &table{headings: []string{"scheme, way", "Mb/s", "cell KiB", "rebuilt MB", "s", "ratio", "blocks sent", "devices MB", "CPU s", "aim"}}
	for _, key := range keys {
		t.add(nodeRow(key, runs[key], runs[repairKey{key.scheme, key.rate, repairInitiator}])...)
	}
	return t
}

func containsKey(keys []repairKey, key repairKey) bool {
	for _, other := range keys {
		if other == key {
			return true
		}
	}
	return false
}

func nodeRow(key repairKey, runs, peers []nodeRepair) []string {
	first := runs[0]
	var cpu, moved sample
	for _, one := range runs {
		cpu, moved = append(cpu, one.cpu.Seconds()), append(moved, float64(one.moved.delivered.payload()))
	}
	times := repairSeconds(runs)
	ratio := repairSeconds(peers).over(times)
	aim := "-"
	if key.way == repairInBand {
		aim = "met"
		if ratio.median() < inBandAim {
			aim = "missed"
		}
	}
	measured := first.result.Measured
	return []string{
		key.scheme.String() + ", " + key.way.name, fmt.Sprint(key.rate), fmt.Sprintf("%.1f", float64(first.cell)/1024), megabytes(first.result.BytesRebuilt),
		fmt.Sprintf("%.2f, %.2f", times.median(), times.most()), fmt.Sprintf("%.2f, %.2f", ratio.median(), ratio.least()),
		fmt.Sprintf("%.2f", float64(measured.BlocksSent)/float64(measured.BlocksWritten)), megabytes(int64(moved.median())),
		fmt.Sprintf("%.1f", cpu.median()), aim,
	}
}

// repairSeconds are the times of repairs, round by round.
func repairSeconds(runs []nodeRepair) sample {
	times := make(sample, len(runs))
	for _, one := range runs {
		times[one.round] = one.elapsed.Seconds()
	}
	return times
}

func blockTable(blocks []blockRepair) *table {
	t := &table{headings: []string{"way", "Mb/s", "cell MiB", "blocks sent", "s", "/ plain", "CPU s", "aim"}}
	type key struct {
		rate int
		way  blockWay
	}
	var rates []int
	runs := map[key][]blockRepair{}
	for _, one := range blocks {
		if !slices.Contains(rates, one.rate) {
			rates = append(rates, one.rate)
		}
		runs[key{one.rate, one.way}] = append(runs[key{one.rate, one.way}], one)
	}
	for _, rate := range rates {
		plain := blockSeconds(runs[key{rate, blockWay{}}])
		for _, way := range blockWays {
			same := runs[key{rate, way}]
			times, first := blockSeconds(same), same[0]
			ratio, aim := times.over(plain), "-"
			if way.shape == stripe.RepairChain && !way.whole {
				aim = "met"
				if ratio.median() > chainAim {
					aim = "missed"
				}
			}
			var cpu sample
			for _, one := range same {
				cpu = append(cpu, one.cpu.Seconds())
			}
			t.add(way.String(), fmt.Sprint(rate), mebibytes(int64(first.cell)), fmt.Sprint(first.sent), fmt.Sprintf("%.2f, %.2f", times.median(), times.most()),
				fmt.Sprintf("%.2f, %.2f", ratio.median(), ratio.most()), fmt.Sprintf("%.1f", cpu.median()), aim)
		}
	}
	return t
}

// blockSeconds are the times of repairs of a block, round by round.
func blockSeconds(runs []blockRepair) sample {
	times := make(sample, len(runs))
	for _, one := range runs {
		times[one.round] = one.elapsed.Seconds()
	}
	return times
}

func readsTable(r readsUnderRepair) *table {
	t := &table{headings: []string{"case", "reads", "p50 ms", "p99 ms", "p99 / quiet", "aim"}}
	quiet := quantile(r.quiet, 0.99)
	for _, one := range []struct {
		name      string
		latencies []time.Duration
	}{{"quiet", r.quiet}, {"degraded", r.degraded}, {"under repair", r.repair}} {
		p99, aim := quantile(one.latencies, 0.99), "-"
		ratio := float64(p99) / float64(quiet)
		if one.name == "under repair" {
			aim = "met"
			if ratio > readsAim {
				aim = "missed"
			}
		}
		t.add(one.name, fmt.Sprint(len(one.latencies)), milliseconds(quantile(one.latencies, 0.5)), milliseconds(p99), fmt.Sprintf("%.2f", ratio), aim)
	}
	return t
}

//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// The page of repair: a node whose second round is slow, a chain that misses its aim at one rate, and reads that keep theirs.
func TestReportRepair(t *testing.T) {
	o := options{objects: 8, objectBytes: 1 << 20, rates: []int{200, 1000}, rounds: []int{2, 2}, lostRounds: 2, reading: reading{perSecond: 40, objectBytes: 1 << 20, rounds: 2}}
	var results repairResults
	for round := range 2 {
		for i, way := range repairWays {
			blocks, sent := int64(8), int64(24)
			if way.shape == stripe.RepairInitiator {
				sent = 32
			}
			measured := api.Traffic{BlocksSent: sent, BlocksWritten: blocks, BytesWritten: blocks << 16}
			results.nodes = append(results.nodes, nodeRepair{
				scheme: stripe.RS(3, 2), rate: 200, round: round, way: way, cell: 1 << 16, cpu: time.Second,
				elapsed: time.Duration(1+i+i*round) * time.Second, result: api.RepairResult{Measured: measured, BytesRebuilt: blocks << 16},
				moved: transfer{delivered: counted{sent<<16 + 66*sent, sent}},
			})
		}
	}
	for _, rate := range []int{200, 1000} {
		for round := range 2 {
			for i, way := range blockWays {
				results.blocks.runs = append(results.blocks.runs, blockRepair{
					scheme: stripe.RS(10, 4), cell: 64 << 20, rate: rate, round: round, way: way,
					elapsed: time.Duration(10+round+i*rate/100) * time.Second / 10, sent: 10, cpu: time.Second,
				})
			}
		}
	}
	results.blocks.calm = map[int]disturbance{200: {2, 2, 0.003}, 1000: {2, 6, 0.25}}
	latencies := func(p99 time.Duration) (list []time.Duration) {
		for range 98 {
			list = append(list, 5*time.Millisecond)
		}
		return append(list, p99, p99)
	}
	results.reads = readsUnderRepair{
		scheme: stripe.RS(6, 3), rate: 1000, limit: 32 << 20, objects: 32, rebuilt: 5e6, took: time.Second, calm: disturbance{2, 3, 0.04},
		quiet: latencies(10 * time.Millisecond), degraded: latencies(30 * time.Millisecond), repair: latencies(14 * time.Millisecond),
	}
	golden(t, "repair.md", reportRepair(testedProvenance, o, results))
}

// checkRepairPage demands that every way has rebuilt nodes and a block by what its plan sends.
func checkRepairPage(t *testing.T, page string) {
	t.Helper()
	for scheme, k := range map[string]string{"rs(3,2)": "3.00", "rs(6,3)": "6.00", "rs(10,4)": "10.00"} {
		if !hasLine(page, "| "+scheme+", in-band, pipelined", " "+k+" |") {
			t.Errorf("no line says that %s sent %s blocks for each lost one:\n%s", scheme, k, page)
		}
	}
	for _, start := range []string{"| rs(10,4), initiator, whole cells", "| plain transfer of one block", "| chain of bare relays", "| chain, pipelined", "| under repair"} {
		if !hasLine(page, start, "|") {
			t.Errorf("no line begins with %q:\n%s", start, page)
		}
	}
}

// hasLine reports whether a line begins with start and has part in it.
func hasLine(page, start, part string) bool {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, start) && strings.Contains(line, part) {
			return true
		}
	}
	return false
}

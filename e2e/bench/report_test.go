//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/e2e/bench/provenance"
)

// golden compares text with a file; -update writes it.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs (write it anew with -update):\n%s", path, text)
	}
}

var testedProvenance = provenance.Facts{
	Date: "2026-01-02 03:04 UTC", Release: "go1", Processor: "A CPU (family 1, model 2)", Cores: 2, Memory: "3 GiB", Kernel: "Linux 6",
	Commit: "abc", Command: "go run ./e2e/bench", Load: "0.10",
}

// The page of transitions: two rounds, of which the second misses both aims, and a merge.
func TestReportTransitions(t *testing.T) {
	steps, err := parseSteps("rs(4,1)->rs(5,1);rs(4,2)->rs(12,2)")
	if err != nil {
		t.Fatal(err)
	}
	o := options{objects: 8, objectBytes: 1 << 20, rates: []int{200}, rounds: []int{2}}
	var results transitionResults
	add := func(s step, merge bool, way contender, round int, elapsed time.Duration, blocks, cell, extra int64) {
		moved := counted{blocks*cell + extra + 66*blocks, blocks}
		traffic := api.Traffic{BlocksSent: blocks, BytesSent: blocks * cell}
		results.runs = append(results.runs, run{
			change: s, merge: merge, rate: 200, round: round, contender: way, elapsed: elapsed, groups: 8, cell: cell, predicted: traffic, measured: traffic,
			moved: transfer{delivered: moved, sent: moved.plus(counted{int64(round) * moved.bytes / 10, 1}), control: counted{40000, 40}}, cpu: time.Second,
		})
	}
	for round := range 2 {
		slow := time.Duration(1 + 3*round)
		add(steps[0], false, restripePlanner, round, slow*time.Second, 24, 1<<16, 1000)
		add(steps[0], false, ersPlanner, round, 5*time.Second, 96, 1<<16, 1000)
		add(steps[0], false, srsPlanner, round, 10*time.Second, 192, 1<<16, 1<<20)
	}
	add(steps[0], false, reencodePlanner, 0, 11*time.Second, 192, 1<<15, 1<<20)
	add(steps[1], true, restripePlanner, 0, time.Second/10, 0, 1<<16, -70)
	results.memories = []stepMemory{{steps[0], memory{gateway: 40 << 20, agent: 20 << 20, proxy: 30 << 20}}}
	kernel, calls := packageTime{kernelPackages[0], 0.5}, packageTime{"internal/runtime/syscall/linux", 0.75}
	results.profiles = []transitionProfile{
		{
			change: steps[0], transitions: 4, gateway: []packageTime{calls},
			all:    []packageTime{{calls.name, 1}, kernel, {"runtime", 0.25}, {kernelPackages[1], 0.25}},
			agents: []packageTime{kernel, {calls.name, 0.25}, {kernelPackages[1], 0.25}},
		},
		{change: steps[1], transitions: 1},
	}
	golden(t, "transitions.md", reportTransitions(testedProvenance, o, results))
}

func TestReportDataPath(t *testing.T) {
	o := options{stores: []launch.StoreKind{launch.StoreRedis}, passes: 2, concurrency: 8, flood: flood{64, 64 << 20}}
	var results dataPathResults
	for round := range 2 {
		for i, way := range []string{plainWay, "rs(4,2)"} {
			for _, operation := range []string{"put", "get"} {
				results.passes = append(results.passes, pass{
					store: launch.StoreRedis, operation: operation, way: way, round: round, repeats: 1 + i,
					elapsed: time.Duration(1+i+round) * time.Second, latencies: []time.Duration{time.Millisecond, 9 * time.Millisecond},
					cpu:      cpuShares{client: 64 * time.Millisecond, gateway: 128 * time.Millisecond, agents: 32 * time.Millisecond, stores: 640 * time.Millisecond},
					loopback: 3 * dataPathObjects * dataPathBytes,
				})
			}
		}
	}
	results.memories = []storeMemory{{launch.StoreRedis, memory{gateway: 100 << 20, agent: 30 << 20}}}
	results.profiles = []profile{{"put", "agent", []packageTime{{"runtime", 0.75}, {"hash/crc32", 0.25}}}}
	results.flood = []floodResult{
		{"put", 16 * time.Second, memory{gateway: 200 << 20, agent: 40 << 20}},
		{"get", 8 * time.Second, memory{gateway: 300 << 20, agent: 40 << 20}},
	}
	golden(t, "data-path.md", reportDataPath(testedProvenance, o, results))
}

func TestTable(t *testing.T) {
	table := table{headings: []string{"a", "long"}}
	table.add("é|", "1")
	want := "| a   | long |\n| --- | ---: |\n| é\\| |    1 |\n"
	if got := table.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestMegabytes(t *testing.T) {
	for bytes, want := range map[int64]string{-70: "0.00", 0: "0.00", 1_234_567: "1.23", -2_000_000: "-2.00"} {
		if got := megabytes(bytes); got != want {
			t.Errorf("%d bytes are %s MB, want %s", bytes, got, want)
		}
	}
}

// The page of growth: the paper's Scale-RS would send 4 blocks a row, and 3.5 were sent.
func TestReportGrowth(t *testing.T) {
	steps, err := parseSteps("rs(4,2)->rs(6,2)")
	if err != nil {
		t.Fatal(err)
	}
	reads := []time.Duration{10 * time.Millisecond, 30 * time.Millisecond}
	results := growthResults{rate: 200, updates: map[step]filling{steps[0]: {offline: 40e6, online: 20e6, reads: reads}}}
	for i, way := range growthWays {
		one := grown{
			change: steps[0], way: way, objects: 12, bytes: 12 << 20, before: reads, after: reads[:1+i%2], even: 1.25, stored: 1.5,
			fill: filling{offline: 60e6, online: 30e6, reads: reads},
		}
		if way != growNothing {
			one.during, one.elapsed = reads, time.Duration(i)*time.Second
			one.predicted = api.Traffic{BlocksSent: 28, BytesSent: 7 << 20}
			one.moved = transfer{delivered: counted{7<<20 + 66*100 + 1000, 100}, control: counted{1 << 20, 10}}
		}
		if way == growColumns {
			one.back, one.backMoved, one.backPredicted = time.Second, one.moved, one.predicted
		}
		results.runs = append(results.runs, one)
	}
	golden(t, "growth.md", reportGrowth(testedProvenance, options{objects: 12, objectBytes: 1 << 20}, results))
}

package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/restripe/restripe/e2e/bench/provenance"
)

// usage is what the operator has used up so far.
type usage struct {
	at            time.Time
	processor     time.Duration
	writes, reads int64
	gateway       int64 // calls to the gateways
}

func (s *stage) usage() (usage, error) {
	var spent syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &spent); err != nil {
		return usage{}, fmt.Errorf("reading the processor time: %w", err)
	}
	u := usage{
		at: time.Now(), processor: time.Duration(spent.Utime.Nano() + spent.Stime.Nano()), writes: s.writes.Load(), reads: s.reads.Load(),
	}
	for _, g := range s.gateways {
		for _, n := range g.Calls() {
			u.gateway += int64(n)
		}
	}
	return u, nil
}

func (u usage) since(before usage) usage {
	return usage{
		processor: u.processor - before.processor, writes: u.writes - before.writes, reads: u.reads - before.reads, gateway: u.gateway - before.gateway,
	}
}

// memory is the resident memory of this process, and the part of it that is live on the heap.
func memory() (resident, heap int64, err error) {
	runtime.GC()
	var statistics runtime.MemStats
	runtime.ReadMemStats(&statistics)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, fmt.Errorf("reading the resident memory: %w", err)
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "VmHWM:" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0, 0, fmt.Errorf("reading the resident memory: %w", err)
			}
			resident = kilobytes << 10
		}
	}
	return resident, int64(statistics.HeapAlloc), nil
}

func median(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// head is the beginning of the page.
func head(size scale) (string, error) {
	source, err := provenance.Read("go run ./e2e/bench/control -write")
	if err != nil {
		return "", err
	}
	return "# What the operator costs\n\n" +
		"The operator against an API server of its own process (the embedded one, on a disk, with fsync) and gateways in memory that only " +
		"count. Processor time and memory are of one process that holds the operator and these gateways.\n\n" +
		source.List("times are then preliminary, counts of calls are not",
			fmt.Sprintf("%d policies with a ladder of three, temperature rules and a budget, on one backend of %d nodes; heat looked at "+
				"every 10 s, running transitions every 2 s", size.policies, size.nodes)) + "\n", nil
}

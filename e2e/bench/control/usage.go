package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
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

// provenance says where the numbers come from.
func provenance(size scale) (string, error) {
	commit, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		commit = []byte("unknown: not run in a checkout")
	}
	information, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", fmt.Errorf("reading the processor's name: %w", err)
	}
	processor := "unknown"
	for line := range strings.Lines(string(information)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			processor = strings.TrimSpace(value)
			break
		}
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "", fmt.Errorf("reading the load: %w", err)
	}
	first, _, _ := strings.Cut(string(load), " ")
	return strings.Join([]string{
		"# What the operator costs",
		"",
		"The operator against an API server of its own process (the embedded one, on a disk, with fsync) and gateways in memory that only count. Processor time and memory are of one process that holds the operator and these gateways.",
		"",
		"- date: " + time.Now().UTC().Format("2006-01-02 15:04 MST") + ", commit: " + strings.TrimSpace(string(commit)) + ", " + runtime.Version(),
		fmt.Sprintf("- machine: %s, %d cores; load average before the run: %s (with more than about 0.3 something else was running: times are then preliminary, counts of calls are not)", processor, runtime.NumCPU(), first),
		fmt.Sprintf("- command: `go run ./e2e/bench/control -write`; %d policies with a ladder of three, temperature rules and a budget, on one backend of %d nodes; heat looked at every 10 s, running transitions every 2 s", size.policies, size.nodes),
		"",
		"",
	}, "\n"), nil
}

//go:build linux

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/e2e/bench/provenance"
)

// passKey names the passes that repeat each other.
type passKey struct {
	store     launch.StoreKind
	operation string
	way       string
}

// reportDataPath is the page docs/benchmarks/data-path.md.
func reportDataPath(source provenance.Facts, o options, results dataPathResults) string {
	var page strings.Builder
	page.WriteString("# Puts and gets through the gateway\n\n" +
		"Against the same bytes written to and read from the same servers without any protection, by a plain client: one item an object, on one server.\n\n")
	kinds := make([]string, len(o.stores))
	for i, kind := range o.stores {
		kinds[i] = string(kind)
	}
	page.WriteString(source.List("times are then preliminary",
		fmt.Sprintf("objects: %d of %s MiB, read back and compared byte for byte; %d clients at once, all processes on loopback of one machine", dataPathObjects, mebibytes(dataPathBytes), o.concurrency),
		fmt.Sprintf("cluster: %d servers (%s), an agent each, one gateway, catalog in SQLite on a directory in memory, class as built in", dataPathAgents, strings.Join(kinds, ", ")),
		"Redis keeps its append-only file, fsynced each second, on a directory in memory",
		fmt.Sprintf("rounds: %d after one that is not counted, the ways one after the other in rotating order", o.passes),
	))
	keys, passes := results.series()
	page.WriteString("\n## Throughput\n\n" + throughputTable(keys, passes).String())
	page.WriteString("\nMedian and slowest round. Puts write new keys every round, in all ways, so that no server reuses memory. The ratio divides by the plain client's throughput of the same round: median and worst. Latencies are of single objects, all rounds together.\n")
	page.WriteString("\n## Where the time goes\n\nCPU milliseconds per MiB of user data, by process (the bench is the client), and bytes over the loopback device per user byte, headers included; medians.\n\n" + cpuTable(keys, passes).String())
	page.WriteString("\nBytes that must move: client to gateway 1, gateway to agents and agents to servers each the scheme's overhead on puts and 1 on gets.\n")
	fmt.Fprintf(&page, "\n## CPU by package\n\nA gateway and %d agents over stores in memory, in one process with goroutines labelled by role: %d MiB put as %s, then read. Time is counted where it was used, not in callers; system calls are all under the package that makes them.\n\n",
		dataPathAgents, profileRounds*dataPathObjects*dataPathBytes>>20, profileScheme)
	page.WriteString(profileTable(results.profiles).String())
	page.WriteString("\n## Memory\n\n" + dataPathMemoryTable(o, results).String())
	fmt.Fprintf(&page, "\nPeak resident memory, MiB. The gateway's limit is %s MiB.\n", mebibytes(gatewayLimit))
	return page.String()
}

func (r dataPathResults) series() (keys []passKey, passes map[passKey][]pass) {
	passes = map[passKey][]pass{}
	for _, one := range r.passes {
		key := passKey{one.store, one.operation, one.way}
		passes[key] = append(passes[key], one)
	}
	for _, store := range []launch.StoreKind{launch.StoreMemcached, launch.StoreRedis} {
		for _, operation := range []string{"put", "get"} {
			for _, way := range append([]string{plainWay}, protectedWays...) {
				if key := (passKey{store, operation, way}); passes[key] != nil {
					keys = append(keys, key)
				}
			}
		}
	}
	return keys, passes
}

// rates are the throughputs of passes in the order of their rounds.
func rates(passes []pass) sample {
	values := make(sample, len(passes))
	for _, one := range passes {
		values[one.round] = one.rate()
	}
	return values
}

func throughputTable(keys []passKey, passes map[passKey][]pass) *table {
	t := &table{headings: []string{"store", "operation", "kept as", "MB/s", "/ plain", "p50 ms", "p99 ms"}}
	for _, key := range keys {
		throughput := rates(passes[key])
		ratio := throughput.over(rates(passes[passKey{key.store, key.operation, plainWay}]))
		var latencies []time.Duration
		for _, one := range passes[key] {
			latencies = append(latencies, one.latencies...)
		}
		t.add(string(key.store), key.operation, key.way, fmt.Sprintf("%.0f, %.0f", throughput.median(), throughput.least()),
			fmt.Sprintf("%.3f, %.3f", ratio.median(), ratio.least()), milliseconds(quantile(latencies, 0.5)), milliseconds(quantile(latencies, 0.99)))
	}
	return t
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f", float64(d)/float64(time.Millisecond))
}

func cpuTable(keys []passKey, passes map[passKey][]pass) *table {
	t := &table{headings: []string{"store", "operation", "kept as", "client", "gateway", "agents", "servers", "all", "bytes moved"}}
	for _, key := range keys {
		var client, gateway, agents, stores, all, moved sample
		for _, one := range passes[key] {
			perMiB := func(d time.Duration) float64 {
				return float64(d) / float64(time.Millisecond) / float64(one.bytes()>>20)
			}
			client, gateway = append(client, perMiB(one.cpu.client)), append(gateway, perMiB(one.cpu.gateway))
			agents, stores = append(agents, perMiB(one.cpu.agents)), append(stores, perMiB(one.cpu.stores))
			all = append(all, perMiB(one.cpu.client+one.cpu.gateway+one.cpu.agents+one.cpu.stores))
			moved = append(moved, float64(one.loopback)/float64(one.bytes()))
		}
		row := []string{string(key.store), key.operation, key.way}
		for _, values := range []sample{client, gateway, agents, stores, all, moved} {
			row = append(row, fmt.Sprintf("%.2f", values.median()))
		}
		t.add(row...)
	}
	return t
}

func dataPathMemoryTable(o options, results dataPathResults) *table {
	t := &table{headings: []string{"load", "seconds", "MB/s", "gateway", "largest agent", "gateway's limit"}}
	for _, m := range results.memories {
		t.add(fmt.Sprintf("the rounds above over %s", m.store), "-", "-", mebibytes(m.peak.gateway), mebibytes(m.peak.agent), verdict(m.peak))
	}
	for _, f := range results.flood {
		bytes := float64(o.flood.objects) * float64(o.flood.objectBytes)
		t.add(fmt.Sprintf("%s of %d objects of %s MiB at once, %s over files in memory", f.operation, o.flood.objects, mebibytes(o.flood.objectBytes), floodScheme),
			fmt.Sprintf("%.1f", f.elapsed.Seconds()), fmt.Sprintf("%.0f", bytes/1e6/f.elapsed.Seconds()),
			mebibytes(f.peak.gateway), mebibytes(f.peak.agent), verdict(f.peak))
	}
	return t
}

func verdict(m memory) string {
	if m.gateway < gatewayLimit {
		return "kept"
	}
	return "broken"
}

// profiledPackages is how many packages of a profile are shown.
const profiledPackages = 8

func profileTable(profiles []profile) *table {
	t := &table{headings: []string{"operation", "role", "ms / MiB", "package", "share"}}
	for _, p := range profiles {
		total := 0.0
		for _, entry := range p.packages {
			total += entry.seconds
		}
		perMiB := fmt.Sprintf("%.2f", 1000*total/(profileRounds*dataPathObjects*dataPathBytes>>20))
		for i, entry := range p.packages[:min(profiledPackages, len(p.packages))] {
			operation, role, cost := p.operation, p.role, perMiB
			if i > 0 {
				operation, role, cost = "", "", ""
			}
			t.add(operation, role, cost, entry.name, fmt.Sprintf("%.0f %%", 100*entry.seconds/total))
		}
	}
	return t
}

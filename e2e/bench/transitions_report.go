//go:build linux

package main

import (
	"fmt"
	"strings"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/e2e/bench/provenance"
)

// The aims of a transition, as shares of a peer's time and of the bytes planned.
const (
	ersAim   = 0.5
	srsAim   = 0.25
	bytesAim = 0.03

	// bytesAimFrom is the size of blocks, bytes, from which bytesAim counts; smaller ones carry more words per byte.
	bytesAimFrom = 64 << 10
)

// seriesKey names the runs that repeat each other.
type seriesKey struct {
	change  step
	rate    int
	planner string
}

// series are the runs of one key, in the order of rounds.
func (r transitionResults) series() (keys []seriesKey, runs map[seriesKey][]run) {
	runs = map[seriesKey][]run{}
	for _, one := range r.runs {
		key := seriesKey{one.change, one.rate, one.contender.planner}
		if runs[key] == nil {
			keys = append(keys, key)
		}
		runs[key] = append(runs[key], one)
	}
	return keys, runs
}

// seconds are the times of runs.
func seconds(runs []run) sample {
	times := make(sample, len(runs))
	for i, one := range runs {
		times[i] = one.elapsed.Seconds()
	}
	return times
}

// reportTransitions is the page docs/benchmarks/transitions.md.
func reportTransitions(source provenance.Facts, o options, results transitionResults) string {
	var page strings.Builder
	page.WriteString("# Transitions over shaped links\n\n" +
		"Objects change their scheme in place, by planner restripe and by its peers in the same run, on the same bytes.\n\n")
	page.WriteString(source.List("times are then preliminary",
		fmt.Sprintf("objects: %d of %s MiB, one group each, read back and compared byte for byte after every transition", o.objects, mebibytes(o.objectBytes)),
		"nodes: as many as the ladder needs (k + m of its widest steps), and one proxy that holds no blocks; one network namespace each; file stores in memory",
		"links: one pair of virtual devices per node to one bridge, `tbf` with burst 128 kB and latency 50 ms on both ends",
		"rounds: "+roundsOf(o)+", the contenders one after the other in rotating order; reencode and merges 1 round",
		"layouts: restripe and reencode the default one (mode free), ers2-proxy mode pair, srs-proxy mode row",
	))
	keys, runs := results.series()
	page.WriteString("\n## Time\n\n" + aimsMet(keys, runs) + "\n" + timeTable(keys, runs).String())
	page.WriteString("\nTimes are the gateway's, from a transition accepted to its last group committed, verified by fingerprints: median and slowest of the rounds. " +
		"Ratios divide the times of the same round: median and worst. CPU is what gateway and agents used, for restripe and ers2-proxy, in seconds (median); where it nears cores times seconds, the processors set the time and not the links.\n")
	page.WriteString("\n## Bytes\n\n" + bytesTable(keys, runs).String())
	page.WriteString("\nPlan: blocks sent times cell bytes, all groups. Devices: what the nodes' devices delivered between agents, without headers; the deviation from the plan is the worst of all rounds and rates. " +
		"It holds what agents say around the blocks. Headers: Ethernet, IP and TCP at 66 bytes for every packet the devices saw, acknowledgements among them; virtual devices take packets of up to 64 KiB, on a wire of 1500 bytes MTU headers would be 4.6 % more. " +
		"Resent: bytes the shaped queues dropped, so that TCP sent them again, worst round. Control: everything between gateway and agents, headers included, median. " +
		fmt.Sprintf("The aim, within %.0f %%, is for blocks of %d KiB and more.\n", 100*bytesAim, bytesAimFrom>>10))
	page.WriteString("\n## Merges\n\nUnder restripe the parity nodes add what they hold; nothing crosses the network.\n\n" + mergeTable(keys, runs).String())
	page.WriteString("\nControl is what gateway and agents said to each other to announce, run, verify and commit.\n")
	page.WriteString("\n## The kernel's share of CPU time\n\n" + kernelTable(results.profiles).String())
	page.WriteString("\nOf planner restripe alone, in CPU profiles of their own: gateway and agents in one process, goroutines labelled by role, over file stores in memory and connections on loopback that nothing holds back. " +
		fmt.Sprintf("The objects went there and back until each direction had used %.1f s, with 100 samples a second; CPU is seconds a transition. ", profiledTime(o).Seconds()) +
		"Kernel: products, sums and fingerprints, which are package agent/kernel with its assembly, and the libraries that do them where it has none; as a share of all and of the agents' time. " +
		"Rest: what has no role, collecting garbage above all. Time is counted where it was used, not in callers; next to it is the package with most of the others.\n")
	page.WriteString("\n## Memory\n\nPeak resident memory of the processes of each cluster, MiB, all planners included.\n\n" + memoryTable(results).String())
	return page.String()
}

// roundsOf says how many rounds there are at each rate.
func roundsOf(o options) string {
	texts := make([]string, len(o.rates))
	for i, rate := range o.rates {
		texts[i] = fmt.Sprintf("%d at %d Mb/s", o.rounds[i], rate)
	}
	return strings.Join(texts, ", ")
}

// aimsMet counts the rows that reach the aims.
func aimsMet(keys []seriesKey, runs map[seriesKey][]run) string {
	var text strings.Builder
	for _, aim := range []struct {
		peer  string
		share float64
	}{{stripe.PlannerERS2, ersAim}, {stripe.PlannerSRS, srsAim}} {
		total, median, worst := 0, 0, 0
		var ratios sample
		for _, key := range keys {
			peer := runs[seriesKey{key.change, key.rate, aim.peer}]
			if key.planner != stripe.PlannerRestripe || peer == nil {
				continue
			}
			ratio := seconds(runs[key]).over(seconds(peer))
			ratios = append(ratios, ratio.median())
			total++
			if ratio.median() <= aim.share {
				median++
			}
			if ratio.most() <= aim.share {
				worst++
			}
		}
		if total > 0 {
			fmt.Fprintf(&text, "- at most %.2f of the time of %s: %d of %d by the median round, %d by the worst; the ratios run from %.3f to %.3f\n",
				aim.share, aim.peer, median, total, worst, ratios.least(), ratios.most())
		}
	}
	return text.String()
}

func timeTable(keys []seriesKey, runs map[seriesKey][]run) *table {
	t := &table{headings: []string{"transition", "Mb/s", "restripe s", "ers2-proxy s", "srs-proxy s", "reencode s", "/ ers2-proxy", "/ srs-proxy", "CPU s"}}
	for _, key := range keys {
		if key.planner != stripe.PlannerRestripe || runs[key][0].merge {
			continue
		}
		of := func(planner string) []run { return runs[seriesKey{key.change, key.rate, planner}] }
		row := []string{key.change.String(), fmt.Sprint(key.rate)}
		for _, planner := range []string{stripe.PlannerRestripe, stripe.PlannerERS2, stripe.PlannerSRS, stripe.PlannerReencode} {
			times := seconds(of(planner))
			row = append(row, fmt.Sprintf("%.2f, %.2f", times.median(), times.most()))
		}
		for _, planner := range []string{stripe.PlannerERS2, stripe.PlannerSRS} {
			ratio := seconds(runs[key]).over(seconds(of(planner)))
			row = append(row, fmt.Sprintf("%.3f, %.3f", ratio.median(), ratio.most()))
		}
		t.add(append(row, fmt.Sprintf("%.1f, %.1f", cpuSeconds(runs[key]).median(), cpuSeconds(of(stripe.PlannerERS2)).median()))...)
	}
	return t
}

func cpuSeconds(runs []run) sample {
	times := make(sample, len(runs))
	for i, one := range runs {
		times[i] = one.cpu.Seconds()
	}
	return times
}

// bytesTable has one row for every change and planner, over all rates and rounds.
func bytesTable(keys []seriesKey, runs map[seriesKey][]run) *table {
	t := &table{headings: []string{"transition", "planner", "cell KiB", "blocks sent", "plan MB", "devices MB", "deviation", "headers", "resent", "control MB", "retries", "aim"}}
	seen := map[seriesKey]bool{}
	for _, key := range keys {
		key.rate = 0
		if seen[key] {
			continue
		}
		seen[key] = true
		var all []run
		for _, other := range keys {
			if other.change == key.change && other.planner == key.planner {
				all = append(all, runs[other]...)
			}
		}
		if !all[0].merge {
			t.add(bytesRow(key, all)...)
		}
	}
	return t
}

func bytesRow(key seriesKey, all []run) []string {
	first := all[0]
	var delivered, control sample
	worst, resent, retries := 0.0, 0.0, int64(0)
	for _, one := range all {
		delivered = append(delivered, float64(one.moved.delivered.payload()))
		control = append(control, float64(one.moved.control.bytes))
		retries += one.retries
		if deviation := one.deviation(); abs(deviation) > abs(worst) {
			worst = deviation
		}
		resent = max(resent, float64(one.moved.sent.bytes)/float64(one.moved.delivered.bytes)-1)
	}
	aim := "-"
	if first.cell >= bytesAimFrom {
		aim = "met"
		if abs(worst) > bytesAim {
			aim = "missed"
		}
	}
	return []string{
		key.change.String(), key.planner, fmt.Sprintf("%.1f", float64(first.cell)/1024), fmt.Sprint(first.predicted.BlocksSent),
		megabytes(first.predicted.BytesSent), megabytes(int64(delivered.median())), fmt.Sprintf("%+.2f %%", 100*worst),
		percent(first.moved.delivered.headers(), first.predicted.BytesSent), fmt.Sprintf("%.2f %%", 100*resent),
		megabytes(int64(control.median())), fmt.Sprint(retries), aim,
	}
}

// deviation is by how much the devices delivered more than the plan says, as a share of the plan.
func (r *run) deviation() float64 {
	return float64(r.moved.delivered.payload()-r.predicted.BytesSent) / float64(r.predicted.BytesSent)
}

func abs(x float64) float64 { return max(x, -x) }

func mergeTable(keys []seriesKey, runs map[seriesKey][]run) *table {
	t := &table{headings: []string{"transition", "Mb/s", "planner", "s", "plan MB", "agents sent MB", "devices MB", "control MB"}}
	for _, key := range keys {
		for _, one := range runs[key] {
			if one.merge && one.change.to.K > one.change.from.K {
				t.add(key.change.String(), fmt.Sprint(key.rate), key.planner, fmt.Sprintf("%.2f", one.elapsed.Seconds()),
					megabytes(one.predicted.BytesSent), megabytes(one.measured.BytesSent),
					megabytes(one.moved.delivered.payload()), megabytes(one.moved.control.bytes))
			}
		}
	}
	return t
}

func memoryTable(results transitionResults) *table {
	t := &table{headings: []string{"ladder", "gateway", "largest agent", "proxy agent"}}
	for _, m := range results.memories {
		t.add(m.step.ladder().String(), mebibytes(m.peak.gateway), mebibytes(m.peak.agent), mebibytes(m.peak.proxy))
	}
	return t
}

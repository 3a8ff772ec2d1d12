package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/e2e/bench/provenance"
)

// sample is one quantity in each of several rounds.
type sample []float64

// median is the middle value, or the mean of the two in the middle. There must be some.
func (s sample) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// over divides round by round. The samples are equally long.
func (s sample) over(peer sample) sample {
	ratios := make(sample, len(s))
	for i := range s {
		ratios[i] = s[i] / peer[i]
	}
	return ratios
}

// text is the median, and the range in parentheses.
func (s sample) text(digits int) string {
	return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, s.median(), digits, slices.Min(s), digits, slices.Max(s))
}

// quantile is the duration at or below which a share q, 0 to 1, of them lies. There must be some.
func quantile(durations []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}

func mebibytes(bytes float64) string { return fmt.Sprintf("%.1f", bytes/(1<<20)) }

// head is the beginning of the page.
func head(source provenance.Facts) string {
	return strings.Join([]string{
		"# Small objects",
		"",
		fmt.Sprintf("Clusters of %d agents, each before a memcached, and a gateway with its catalog in SQLite, as `restripe up` runs", agents),
		"them, all on one machine and its loopback, with what measures them. Each part has a cluster of its own.",
		"",
		source.List("rates and times are then preliminary, ratios of room and of bytes sent are not"),
		"",
		"Sections that end with where they come from were measured by themselves.",
		"",
	}, "\n")
}

// from says where a section comes from that was measured by itself.
func from(source provenance.Facts) string {
	return fmt.Sprintf("\nMeasured by `%s` on %s, commit %s, with a load average of %s before on %d cores.\n", source.Command, source.Date,
		source.Commit, source.Load, source.Cores)
}

// thinned are the moments to show: the first, the last, the worst, and one about every so long, if something has changed.
func thinned(moments []moment, every time.Duration) (shown []moment) {
	worst := worstOf(moments)
	last := time.Duration(0)
	for i, m := range moments {
		if i == 0 || i == len(moments)-1 || i == worst || m.at-last >= every && !m.same(&shown[len(shown)-1]) {
			shown, last = append(shown, m), m.at
		}
	}
	return shown
}

// same reports whether two moments differ in nothing but their time.
func (m *moment) same(other *moment) bool {
	without := *other
	without.when, without.at = m.when, m.at
	return *m == without
}

// worstOf is the index of the moment with the greatest ratio; -1 without moments.
func worstOf(moments []moment) int {
	worst := -1
	for i := range moments {
		if worst < 0 || moments[i].ratio() > moments[worst].ratio() {
			worst = i
		}
	}
	return worst
}

// below says when a ratio came below a bound after the last change, to stay there.
func below(moments []moment, bound float64, ratio func(*moment) float64) string {
	since := len(moments)
	for since > 0 && ratio(&moments[since-1]) < bound {
		since--
	}
	switch {
	case since == len(moments):
		return "not in the time that was watched"
	case moments[since].at <= 0:
		return "before the last change"
	}
	return fmt.Sprintf("after %.0f s", moments[since].at.Seconds())
}

// reportDead is the section of the part dead.
func reportDead(r deadResults) string {
	var text strings.Builder
	say := func(format string, values ...any) { fmt.Fprintf(&text, format+"\n", values...) }
	worst, last := r.moments[worstOf(r.moments)], r.moments[len(r.moments)-1]
	say("## Room of what died\n")
	say("%d objects of %d to %d KiB were put under %s by %d clients (%.1f s); then three quarters, chosen at random, changed: %d",
		r.objects, leastSize>>10, mostSize>>10, deadScheme, clientsAtOnce, r.putting.Seconds(), r.overwritten)
	say("were overwritten with bytes of another size, %d deleted (%.1f s); then nothing was asked for. The ladder is %s, everything",
		r.deleted, r.changing.Seconds(), deadLadder)
	say("else as a class has it by default: compaction begins by itself, and leaves alone groups younger than 30 s. At the end all")
	say("%d objects were read back and compared, those deleted as absent.\n", r.readBack)
	say("The ratio of records is that of cells and parities of all groups, at full size, to the bytes of objects, as the gateway's status")
	say("has them; that of stores is the bytes of all items of memcached, with what is kept of blocks beside their bytes, to the same.")
	say("Both are sampled every second. The aim is %.2f, the bound (k+m)/k x 1.%d = %.3f.\n", deadAim, api.DefaultDeadAtMost, deadBound)
	say("| | records | stores |\n|---|---|---|")
	say("| after the puts | %.3f | %.3f |", r.put.ratio(), r.put.itemRatio())
	say("| at the worst of the records, at %.0f s | %.3f | %.3f |", worst.at.Seconds(), worst.ratio(), worst.itemRatio())
	say("| at the end, at %.0f s | %.3f | %.3f |", last.at.Seconds(), last.ratio(), last.itemRatio())
	say("| at the end, to the worst | %.2f | %.2f |", last.ratio()/worst.ratio(), last.itemRatio()/worst.itemRatio())
	say("| at the end, to three copies without any overhead (3.000, not run) | %.2f | %.2f |", last.ratio()/3, last.itemRatio()/3)
	for _, bound := range []float64{deadAim, deadBound} {
		records, stores := below(r.moments, bound, (*moment).ratio), below(r.moments, bound, (*moment).itemRatio)
		say("| below %.3f, to stay | %s | %s |", bound, records, stores)
	}
	say("\nCompaction moved %s MiB of objects and freed %s MiB of data columns, parities not counted, in %.1f s (passes that moved",
		mebibytes(r.moved), mebibytes(r.freed), r.worked.Seconds())
	say("something: %d). The gateway had %s MiB of memory at most.\n", r.passes, mebibytes(float64(r.peak)))
	say("| s after the last change | objects MiB | records MiB | ratio | stores MiB | ratio | groups | dead blocks | compaction |")
	say("|---|---|---|---|---|---|---|---|---|")
	for _, m := range thinned(r.moments, 10*time.Second) {
		compaction := "idle"
		if m.running {
			compaction = "running"
		}
		say("| %.0f | %s | %s | %.3f | %s | %.3f | %d | %d | %s |", m.at.Seconds(), mebibytes(float64(m.objects)),
			mebibytes(float64(m.stored)), m.ratio(), mebibytes(float64(m.items)), m.itemRatio(), m.groups, m.graves, compaction)
	}
	return text.String()
}

// of are the passes of a scheme and mode, in the order of rounds.
func (r *putResults) of(scheme string, mode api.PackMode) (passes []pass) {
	for i := range r.passes {
		if r.passes[i].scheme == scheme && r.passes[i].mode == mode {
			passes = append(passes, r.passes[i])
		}
	}
	return passes
}

// each is one figure of each pass.
func each(passes []pass, figure func(*pass) float64) (s sample) {
	for i := range passes {
		s = append(s, figure(&passes[i]))
	}
	return s
}

func quantileOf(q float64) func(*pass) float64 {
	return func(p *pass) float64 { return quantile(p.latencies, q).Seconds() }
}

// all are the latencies of all passes together.
func all(passes []pass) (latencies []time.Duration) {
	for i := range passes {
		latencies = append(latencies, passes[i].latencies...)
	}
	return latencies
}

// reportLone is the section of the part lone.
func reportLone(r putResults) string {
	var text strings.Builder
	say := func(format string, values ...any) { fmt.Fprintf(&text, format+"\n", values...) }
	first := r.passes[0]
	rounds := len(r.of(first.scheme, first.mode))
	say("## A client alone\n")
	say("One client puts objects of 1 KiB one after the other, %d in a pass, in %d rounds after one that warms up; the ladder of a class",
		len(first.latencies), rounds)
	say("is the scheme alone. Modes take turns. Percentiles and the slowest are of all rounds together. The peer is mode batch, in which")
	say("every object waits for company: the ratio to it is the median of the rounds, and their range.\n")
	say("| scheme | mode | p50 | p99 | slowest | p50 to batch | p99 to batch | blocks a put |\n|---|---|---|---|---|---|---|---|")
	for _, scheme := range loneSchemes {
		peer := r.of(scheme, api.PackBatch)
		for _, mode := range loneModes {
			passes := r.of(scheme, mode)
			latencies := all(passes)
			ratios := []string{"1", "1"}
			if mode != api.PackBatch {
				for i, q := range []float64{0.5, 0.99} {
					ratios[i] = each(passes, quantileOf(q)).over(each(peer, quantileOf(q))).text(2)
				}
			}
			blocks := each(passes, func(p *pass) float64 { return p.blocks / float64(len(p.latencies)) })
			say("| %s | %s | %s | %s | %s | %s | %s | %.1f |", scheme, mode, milliseconds(quantile(latencies, 0.5)),
				milliseconds(quantile(latencies, 0.99)), milliseconds(slices.Max(latencies)), ratios[0], ratios[1], blocks.median())
		}
	}
	say("\nThe gateway had %s MiB of memory at most.", mebibytes(float64(r.peak)))
	return text.String()
}

// reportMany is the section of the part many.
func reportMany(r putResults) string {
	var text strings.Builder
	say := func(format string, values ...any) { fmt.Fprintf(&text, format+"\n", values...) }
	peer := r.of(deadScheme, api.PackBatch)
	say("## Many clients\n")
	say("%d clients put objects of 1 KiB under keys of their own, for %.0f s in a pass, in %d rounds after one that warms up; classes",
		r.clients, peer[0].elapsed.Seconds(), len(peer))
	say("have the ladder %s. Modes take turns. Puts a second are the median of the rounds and their range, as are ratios to", deadScheme)
	say("mode batch of the same round; percentiles and the slowest are of all rounds together. Objects waited if the first of their")
	say("group did.\n")
	say("| mode | puts a second | to batch | p50 | p99 | slowest | p99 to batch | objects a group | waited |")
	say("|---|---|---|---|---|---|---|---|---|")
	for _, mode := range manyModes {
		passes := r.of(deadScheme, mode)
		latencies := all(passes)
		toBatch, slow := "1", "1"
		if mode != api.PackBatch {
			toBatch = each(passes, (*pass).rate).over(each(peer, (*pass).rate)).text(2)
			slow = each(passes, quantileOf(0.99)).over(each(peer, quantileOf(0.99))).text(2)
		}
		perGroup := each(passes, func(p *pass) float64 { return float64(len(p.latencies)) / p.groups })
		waited := each(passes, func(p *pass) float64 { return 100 * p.waited / float64(len(p.latencies)) })
		say("| %s | %s | %s | %s | %s | %s | %s | %.1f | %.0f %% |", mode, each(passes, (*pass).rate).text(0), toBatch,
			milliseconds(quantile(latencies, 0.5)), milliseconds(quantile(latencies, 0.99)), milliseconds(slices.Max(latencies)), slow,
			perGroup.median(), waited.median())
	}
	say("\nThe gateway, which is one for all modes, had %s MiB of memory at most.", mebibytes(float64(r.peak)))
	return text.String()
}

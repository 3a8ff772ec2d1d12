package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/restripe/restripe/e2e/bench/provenance"
)

// text is a section of the page.
type text struct{ strings.Builder }

func newText(heading string) *text {
	t := &text{}
	t.say("%s\n", heading)
	return t
}

func (t *text) say(format string, values ...any) { fmt.Fprintf(t, format+"\n", values...) }

// width is that of a line of prose.
const width = 140

// prose writes a paragraph in lines that are not too long.
func (t *text) prose(format string, values ...any) {
	column := 0
	for _, word := range strings.Fields(fmt.Sprintf(format, values...)) {
		length := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+length > width:
			t.WriteByte('\n')
			column = 0
		default:
			t.WriteByte(' ')
			column++
		}
		t.WriteString(word)
		column += length
	}
	t.WriteString("\n")
}

// number tells one, or that there is none.
func number(format string, value float64) string {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return "-"
	}
	return fmt.Sprintf(format, value)
}

// spread tells the median, and the lowest and the highest.
func spread(format string, values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	return fmt.Sprintf(format+" ("+format+" to "+format+")", median(values), slices.Min(values), slices.Max(values))
}

// isAny reports whether a row has a target.
func isAny(rows []row, name string) bool {
	return slices.ContainsFunc(rows, func(r row) bool { return slices.Contains(r.names, name) })
}

// table has a line for each target of each row, and a column for each peer that there is.
func (t *text) table(title string, rows []row, peers ...string) {
	peers = slices.DeleteFunc(slices.Clone(peers), func(name string) bool { return !isAny(rows, name) })
	mixed := slices.ContainsFunc(rows, func(r row) bool {
		return slices.ContainsFunc(r.names, func(name string) bool { return highest(r.values(name, readsAndWrites)) > 0 })
	})
	head := []string{title, "", "a second"}
	for _, peer := range peers {
		head = append(head, "to "+peer)
	}
	if mixed {
		head = append(head, "read p50 ms", "p99", "write p50 ms", "p99", "mean")
	} else {
		head = append(head, "p50 ms", "p99")
	}
	head = append(head, "processor µs", "memory MiB")
	t.say("\n| %s |\n|%s", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for i := range rows {
		r := &rows[i]
		for _, name := range r.names {
			line := []string{r.what, name, spread("%.0f", r.values(name, perSecond))}
			for _, peer := range peers {
				ratio := r.ratio(name, peer, perSecond)
				if name == peer {
					ratio = math.NaN()
				}
				line = append(line, number("%.2f", ratio))
			}
			told := func(format string, of func(*round) float64) { line = append(line, number(format, r.median(name, of))) }
			if mixed {
				told("%.2f", ifAny(func(r *round) timing { return r.reads }, func(t timing) float64 { return t.p50 }))
				told("%.2f", ifAny(func(r *round) timing { return r.reads }, func(t timing) float64 { return t.p99 }))
				told("%.2f", ifAny(func(r *round) timing { return r.writes }, func(t timing) float64 { return t.p50 }))
				told("%.2f", ifAny(func(r *round) timing { return r.writes }, func(t timing) float64 { return t.p99 }))
				told("%.2f", ifAny(func(r *round) timing { return r.writes }, func(t timing) float64 { return t.mean }))
			} else {
				told("%.2f", p50)
				told("%.2f", func(r *round) float64 { return r.all.p99 })
			}
			told("%.0f", func(r *round) float64 { return float64(r.processorEach().Nanoseconds()) / 1000 })
			line = append(line, mebibytes(highest(r.values(name, peakOf))))
			t.say("| %s |", strings.Join(line, " | "))
		}
	}
}

// ifAny is something of a timing, or no number where nothing was timed.
func ifAny(of func(*round) timing, value func(timing) float64) func(*round) float64 {
	return func(r *round) float64 {
		t := of(r)
		if t.count == 0 {
			return math.NaN()
		}
		return value(t)
	}
}

func peakOf(r *round) float64 { return float64(r.peak) }

// readsAndWrites is above 0 where a round had both.
func readsAndWrites(r *round) float64 { return float64(r.reads.count) * float64(r.writes.count) }

// highest is the highest of values, 0 of none.
func highest(values []float64) float64 { return slices.Max(append(values, 0)) }

func mebibytes(bytes float64) string { return fmt.Sprintf("%.0f", bytes/(1<<20)) }

// head is the page above its sections.
func head(source provenance.Facts) string {
	t := newText("# Clients of Redis, memcached and HTTP")
	t.prose("One gateway, as `restripe up` starts it over %d nodes with its catalog in SQLite, beside a plain Redis and a plain memcached, "+
		"which are one process each, keep one copy, and nothing on disk. All of it, and who loads it, is on one machine and its loopback, so "+
		"that the processors are shared: the plain servers are faster, and what a gateway costs beside them is what the tables are for.", agents)
	t.say("")
	t.prose("Targets take turns, in another order each round. A second and ratios are medians of the rounds, in brackets the slowest and " +
		"the fastest round; a ratio is to the peer in the same round. Latencies are medians of the rounds' percentiles. Processor is the " +
		"time of the gateway, or of the peer, for one operation; memory the most that it had resident in any round.")
	t.say("\n%s", source.List("rates and times are then preliminary, ratios less so"))
	t.say("Sections that end with where they come from were measured by themselves.")
	return t.String()
}

// from says where a section comes from that was measured by itself.
func from(source provenance.Facts) string {
	return fmt.Sprintf("\nMeasured by `%s` on %s, commit %s, with a load average of %s before on %d cores.\n", source.Command, source.Date,
		source.Commit, source.Load, source.Cores)
}

// withSection puts a section in the place of the one with the same heading, or at the end.
func withSection(page, section string) string {
	heading, _, _ := strings.Cut(section, "\n")
	before, rest, found := strings.Cut(page, heading+"\n")
	if !found {
		return page + "\n" + section
	}
	if at := strings.Index(rest, "\n## "); at >= 0 {
		return before + section + rest[at:]
	}
	return before + section
}

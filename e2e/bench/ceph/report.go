//go:build linux && ceph

package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/restripe/restripe/e2e/bench/provenance"
)

// cephRelease is the number of the release of Ceph that is here.
func cephRelease() (string, error) {
	version, err := exec.Command("ceph-osd", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking for the version of Ceph: %w", err)
	}
	if words := strings.Fields(string(version)); len(words) > 2 {
		return words[2], nil
	}
	return "", fmt.Errorf("asking for the version of Ceph: the answer %q has none", version)
}

// report writes the page.
func report(source provenance.Facts, release string, o options, steps []step) string {
	var page strings.Builder
	write := func(format string, values ...any) { fmt.Fprintf(&page, format, values...) }
	write("# Changing the code of data in Ceph\n\n")
	write("A pool of Ceph keeps its k and m for ever: to change them a new pool is made and every object copied. Restripe, over pools of size 1 on the same OSDs, changes them in place.\n\n")
	write("%s", source.List("times are then preliminary, counts of bytes are not",
		fmt.Sprintf("Ceph %s: %d hosts with one OSD each, bluestore over files on one disk, all daemons, agents and clients on loopback", release, hosts),
		fmt.Sprintf("objects: %d of %s, random bytes, %s in all, read back and compared after every step; %d are under way at once, whichever way", o.objects, mebibytes(int64(o.objectBytes)), mebibytes(o.userBytes()), atOnce),
		fmt.Sprintf("Ceph's way: jerasure reed_sol_van, %d placement groups for each pool; the client reads from the old pool and writes into the new one, as `rados cppool` does one at a time", placementGroups),
	))
	write("\n## In units of the user's bytes\n\n")
	write("%s", summaryTable(o, steps))
	write("\n%s", howCounted)
	write("\n## Each OSD\n\nMiB that every OSD, which is every host, read from disk, wrote as data and sent.\n\n")
	write("%s", osdTable(steps))
	return page.String()
}

const howCounted = "Seconds are those of one machine, on which the network costs next to nothing and the processors carry all hosts at once; they say little about " +
	"a cluster where disks or links are what is short. The bytes are what they would be there. Ceph's are from the first object copied to the last; Restripe's are the gateway's, from a transition " +
	"accepted to its last group committed, verified by fingerprints.\n\nRead is what the OSD processes read from their disks (/proc/PID/io; bluestore caches nothing it writes here). " +
	"Written is the data that bluestore wrote (bluestore_write_big_bytes and bluestore_write_small_bytes), without its log. " +
	"Sent and received are the OSDs' messengers, whoever is at the other end. Everything is on loopback, so hosts cannot be told apart by device. " +
	"Between hosts is therefore made up of what is known of both ends: on Ceph's way all that OSDs send, as each is a host of its own and the client " +
	"is on none, and the bytes that the client writes; on Restripe's the blocks and sums that agents sent to each other, by their own counters (what they and the gateway say about it is in the loopback column alone), as each agent is beside its OSD " +
	"and what those two say to each other stays on the host. Loopback is every byte that anybody sent on the device, headers, heartbeats and what stays on a host " +
	"included. Extra space is the most that all OSDs together had allocated beyond what was allocated before the step; on Ceph's way the old pool is deleted after the step.\n"

// mebibytes shows bytes.
func mebibytes(n int64) string { return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20)) }

func summaryTable(o options, steps []step) string {
	t := table{headings: []string{"change", "way", "s", "read", "written", "between hosts", "OSDs sent", "OSDs received", "loopback", "extra space"}}
	user := float64(o.userBytes())
	share := func(n int64) string { return fmt.Sprintf("%.2f", float64(n)/user) }
	for _, s := range inPairs(steps) {
		sum := total(s.osds)
		t.add(s.change, s.way, fmt.Sprintf("%.1f", s.elapsed.Seconds()), share(sum.read), share(sum.written), share(s.between()), share(sum.sent),
			share(sum.received), share(s.loopback), share(s.extra))
	}
	return t.String()
}

// between is what crossed from one host to another.
func (s step) between() int64 {
	if s.way == wayNative {
		return total(s.osds).sent + s.clients
	}
	return s.agents
}

// inPairs orders steps so that the ways of one change stand together.
func inPairs(steps []step) []step {
	var changes []string
	for _, s := range steps {
		if !slices.Contains(changes, s.change) {
			changes = append(changes, s.change)
		}
	}
	ordered := slices.Clone(steps)
	slices.SortStableFunc(ordered, func(a, b step) int { return slices.Index(changes, a.change) - slices.Index(changes, b.change) })
	return ordered
}

func osdTable(steps []step) string {
	t := table{headings: []string{"change", "way", "MiB"}}
	for id := range hosts {
		t.headings = append(t.headings, fmt.Sprint(id))
	}
	for _, s := range inPairs(steps) {
		for _, what := range []struct {
			name  string
			bytes func(usage) int64
		}{
			{"read", func(u usage) int64 { return u.read }},
			{"written", func(u usage) int64 { return u.written }},
			{"sent", func(u usage) int64 { return u.sent }},
		} {
			row := []string{s.change, s.way, what.name}
			for _, u := range s.osds {
				row = append(row, fmt.Sprintf("%.0f", float64(what.bytes(u))/(1<<20)))
			}
			t.add(row...)
		}
	}
	return t.String()
}

// table is rows under headings: a Markdown table that is aligned where letters have one width.
type table struct {
	headings []string
	rows     [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// String returns the Markdown. The first two columns are set left, the others right.
func (t *table) String() string {
	widths := make([]int, len(t.headings))
	for _, row := range append([][]string{t.headings}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell), 3)
		}
	}
	var text strings.Builder
	line := func(cells []string) {
		for i, cell := range cells {
			if i < 2 {
				fmt.Fprintf(&text, "| %-*s ", widths[i], cell)
			} else {
				fmt.Fprintf(&text, "| %*s ", widths[i], cell)
			}
		}
		text.WriteString("|\n")
	}
	line(t.headings)
	for i, width := range widths {
		if i < 2 {
			text.WriteString("| " + strings.Repeat("-", width) + " ")
		} else {
			text.WriteString("| " + strings.Repeat("-", width-1) + ": ")
		}
	}
	text.WriteString("|\n")
	for _, row := range t.rows {
		line(row)
	}
	return text.String()
}

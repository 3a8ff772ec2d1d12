//go:build linux

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/restripe/restripe/e2e/bench/provenance"
)

// reportGrowth is the page docs/benchmarks/growth.md.
func reportGrowth(source provenance.Facts, o options, results growthResults) string {
	var page strings.Builder
	page.WriteString("# Growth\n\n" +
		"Nodes are added to a cluster over all of whose nodes every group lies, and the objects that are there are spread over them: " +
		"by [columns that move](../growth.md#wider-groups), and by what the Scale-RS paper sets against it, on the same bytes " +
		"in the same run.\n\n")
	page.WriteString(source.List("times are then preliminary",
		fmt.Sprintf("objects: about %d of %s MiB, one group each, read back and compared byte for byte afterwards",
			o.objects, mebibytes(o.objectBytes)),
		"nodes: k + m, to which as many are added as k grows by; one network namespace each; file stores in memory",
		fmt.Sprintf("links of the nodes: %d Mb/s, `tbf` with burst 128 kB and latency 50 ms on both ends; that of the gateway is not "+
			"limited", results.rate),
		fmt.Sprintf("readers: whole objects, each at its time whether or not those before are there, %.0f %% of what the links of the "+
			"first nodes carry", 100*growthLoad),
	))
	page.WriteString("\n## Redistribution\n\n" + growthTimes(results).String() +
		"\nTime is the gateway's, from accepted to done, beside the readers. Blocks are cells that crossed the network for each " +
		"row of a group that became wider, as planned; in parentheses, what Scale-RS plans by its Policies 1, 2 and 3: d + m, " +
		"2d - 1 + m, d + d m. Data moved: bytes between nodes by those of the objects. Devices: what the nodes' devices " +
		"delivered between agents, without headers, by what was planned. The paper's Scale-RS takes 1.095 of DM-Only's time " +
		"from 6 to 9. Copies read every object through the gateway, so their bytes are in the last column, beside those of " +
		"the readers.\n")
	page.WriteString("\n## Reads\n\n" + growthReads(results).String() +
		"\nMean and 99th percentile of whole objects, from the time at which each was due, in milliseconds: before nodes are " +
		"added, while objects are redistributed, and after. The last column divides the mean after by that of No-DM; the " +
		"paper has 1/1.40 for Scale-RS and 1/1.09 of DM-Only. Here it is more, not less: what the links carry decides and not " +
		"what disks do, each group lay over all nodes before, so there is no node that reads had not reached; and the objects " +
		"of groups that were dissolved lie on the new nodes alone, so one of them is sent by d nodes where it was by k.\n")
	page.WriteString("\n## Filling\n\n" + growthFilling(results).String() +
		"\nBytes of new objects a second, by four clients: with nobody reading, and beside the readers. What is filled into the " +
		"new columns of stripes that are there, as No-DM and DM-Only do in the paper, is the row *by updates*: all new " +
		"columns of a stripe by one request, its deferred update. The last column divides by that row. The paper has 3.05 " +
		"from 6 to 9 and 4.17 from 9 to 12, where the nodes of the parities are what updates wait for. Here parities are " +
		"spread over all nodes, and an update costs more for another reason: it is read, added and committed object by " +
		"object. New stripes need nothing to have moved: they are as fast whatever became of the old ones, by as much as a " +
		"wider code has fewer parities.\n")
	page.WriteString("\n## How even, and back\n\n" + growthShape(results).String() +
		"\nFullest: what the fullest node holds by what it would if all held as much. Stored: bytes of cells and parities by " +
		"those of the objects, before others are written. Back: what was written as wide is deleted, and the rest gives its " +
		"columns back.\n")
	return page.String()
}

// mean is the average of durations, 0 of none.
func mean(all []time.Duration) (average time.Duration) {
	for _, one := range all {
		average += one / time.Duration(len(all))
	}
	return average
}

// peerOf is the run of another way of the same step.
func (r growthResults) peerOf(s step, way growthWay) *grown {
	for i := range r.runs {
		if r.runs[i].change == s && r.runs[i].way == way {
			return &r.runs[i]
		}
	}
	return &grown{}
}

func growthTimes(results growthResults) *table {
	t := &table{headings: []string{"change", "way", "s", "/ DM-Only", "blocks a row", "data moved", "devices / plan", "gateway MB"}}
	for i := range results.runs {
		one := &results.runs[i]
		if one.way == growNothing {
			continue
		}
		d, m := one.change.to.K-one.change.from.K, one.change.to.M
		peer := results.peerOf(one.change, growBalance)
		blocks, deviation := "-", "-"
		if one.way == growColumns && one.predicted.BlocksSent > 0 {
			wider := float64(one.objects*one.change.from.K) / float64(one.change.to.K) // groups of one row
			blocks = fmt.Sprintf("%.2f (%d, %d, %d)", float64(one.predicted.BlocksSent)/wider, d+m, 2*d-1+m, d+d*m)
		}
		if one.predicted.BytesSent > 0 {
			deviation = fmt.Sprintf("%+.2f %%", 100*(float64(one.moved.delivered.payload())/float64(one.predicted.BytesSent)-1))
		}
		t.add(one.change.String(), string(one.way), fmt.Sprintf("%.2f", one.elapsed.Seconds()),
			fmt.Sprintf("%.2f", one.elapsed.Seconds()/peer.elapsed.Seconds()), blocks, percent(one.moved.delivered.payload(), one.bytes), deviation,
			megabytes(one.moved.control.bytes))
	}
	return t
}

func growthReads(results growthResults) *table {
	t := &table{headings: []string{"change", "way", "before", "meanwhile", "after", "/ No-DM"}}
	show := func(reads []time.Duration) string {
		if len(reads) == 0 {
			return "-"
		}
		return milliseconds(mean(reads)) + ", " + milliseconds(quantile(reads, 0.99))
	}
	for i := range results.runs {
		one := &results.runs[i]
		peer := results.peerOf(one.change, growNothing)
		t.add(one.change.String(), string(one.way), show(one.before), show(one.during), show(one.after),
			fmt.Sprintf("%.2f", mean(one.after).Seconds()/mean(peer.after).Seconds()))
	}
	return t
}

func growthFilling(results growthResults) *table {
	t := &table{headings: []string{"change", "way", "MB/s", "beside readers", "reads", "/ by updates"}}
	add := func(s step, way string, f filling) {
		t.add(s.String(), way, fmt.Sprintf("%.0f", f.offline/1e6), fmt.Sprintf("%.0f", f.online/1e6),
			milliseconds(mean(f.reads))+", "+milliseconds(quantile(f.reads, 0.99)),
			fmt.Sprintf("%.2f, %.2f", f.offline/results.updates[s].offline, f.online/results.updates[s].online))
	}
	for i := range results.runs {
		one := &results.runs[i]
		add(one.change, string(one.way), one.fill)
		if one.way == growthWays[len(growthWays)-1] {
			add(one.change, "by updates", results.updates[one.change])
		}
	}
	return t
}

func growthShape(results growthResults) *table {
	t := &table{headings: []string{"change", "way", "fullest", "stored", "back s", "back, data moved", "devices / plan"}}
	for i := range results.runs {
		one := &results.runs[i]
		back, moved, deviation := "-", "-", "-"
		if one.back > 0 {
			back = fmt.Sprintf("%.2f", one.back.Seconds())
			moved = percent(one.backMoved.delivered.payload(), one.bytes)
			deviation = fmt.Sprintf("%+.2f %%", 100*(float64(one.backMoved.delivered.payload())/float64(one.backPredicted.BytesSent)-1))
		}
		t.add(one.change.String(), string(one.way), fmt.Sprintf("%.2f", one.even),
			fmt.Sprintf("%.3f", one.stored), back, moved, deviation)
	}
	return t
}

package main

import (
	"context"
	"math"
	"strings"
)

// The part crowd is what the part erasures is, by many clients at once: TriEC has 512 for throughput (Section 6.3, Figure 13), each of
// which asks as soon as it is answered, over a connection of its own.
var crowdSchemes = []string{"rs(6,3)", "rs(3,2)"} // that of Figure 13, and the smaller one of Figures 11 and 12

// crowdCells are all shares of reads under the first scheme, and those that are mostly reads under the others.
func crowdCells() (list []erasureCell) {
	for i, scheme := range crowdSchemes {
		for _, reads := range ycsbReads {
			if i == 0 || reads > 50 {
				list = append(list, erasureCell{scheme, workload{heavy, reads, erasureSize}})
			}
		}
	}
	return list
}

func (b *bench) crowdTargets() int {
	if b.percent == 0 {
		return 0
	}
	return len(crowdCells()) * erasureTargets
}

func (b *bench) crowd(ctx context.Context) ([]row, error) {
	if b.percent == 0 {
		return nil, nil
	}
	return b.losing(ctx, crowdCells(), b.many)
}

// readsMean is the mean latency of reads, and lostMean that of reads that found a block lost; NaN of none.
func readsMean(r *round) float64 {
	return ifAny(func(r *round) timing { return r.reads }, func(t timing) float64 { return t.mean })(r)
}

func lostMean(r *round) float64 {
	if r.losses == nil || r.losses.read.count == 0 {
		return math.NaN()
	}
	return r.losses.read.mean
}

// lostToReads is lostMean to the mean of all reads of the run.
func lostToReads(r *round) float64 { return lostMean(r) / readsMean(r) }

func (b *bench) reportCrowd(rows []row) string {
	t := newText("## Lost blocks, many clients")
	if b.percent == 0 {
		t.say("Not measured: `-erasures 0`.")
		return t.String()
	}
	t.prose("As above, by %d clients, each with a connection of its own (TriEC, Section 6.3, Figures 11 to 13). An erasure that "+
		"comes to a group which has lost a block already goes to the next read. While a block is lost, reads of other clients find it so "+
		"too, so that more fragments may be decoded than blocks were deleted.", b.many)
	t.table("workload", rows, erasureNone, erasureSought, redisName)
	t.say("")
	t.prose("What TriEC compares in these figures is two ways to encode and decode on network cards; there is one here, and what can be " +
		"chosen is whether a read repairs in band (`repairOnRead`). So the ratios are of these two, and to none lost but sought, in the same " +
		"round: all operations a second (Figure 13), the mean of writes (Figure 11), and the mean of reads that found a block lost " +
		"(Figure 12), which is also told beside the mean of all reads of that run. The paper's ratios of its two ways under RS(6,3), at " +
		"most: throughput 1.13, 1.15 and 1.14 with 50, 95 and 100 %% of reads; writes 1.12 and 1.10 with 50 and 95 %%; reads " +
		"with erasures 1.40, 1.32 and 1.29.")
	t.say("\n| workload | a second, repaired to none | not repaired to none | repaired to not repaired " +
		"| writes, repaired to none | not repaired to none | repaired to not repaired | lost reads mean ms, repaired | not repaired " +
		"| repaired to not repaired | repaired to all reads | not repaired to all reads |\n|" + strings.Repeat("---|", 12))
	for i := range rows {
		r := &rows[i]
		line := []string{r.what}
		ratios := func(of func(*round) float64) {
			line = append(line, number("%.2f", r.ratio(erasureRepaired, erasureSought, of)), number("%.2f", r.ratio(erasureLeft, erasureSought, of)),
				number("%.2f", r.ratio(erasureRepaired, erasureLeft, of)))
		}
		ratios(perSecond)
		ratios(writesMean)
		line = append(line, number("%.2f", r.median(erasureRepaired, lostMean)), number("%.2f", r.median(erasureLeft, lostMean)),
			number("%.2f", r.ratio(erasureRepaired, erasureLeft, lostMean)), number("%.2f", r.median(erasureRepaired, lostToReads)),
			number("%.2f", r.median(erasureLeft, lostToReads)))
		t.say("| %s |", strings.Join(line, " | "))
	}
	t.say("")
	t.say("What became of the reads that found a block lost, as above:")
	t.losses(rows)
	return t.String()
}

package stripe

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawSearch draws a ladder of three widths or more and looks for its best chain.
func drawSearch(r *rapid.T) *chainSearch {
	widths := rapid.SliceOfNDistinct(rapid.IntRange(2, 16), 3, 5, rapid.ID[int]).Filter(func(widths []int) bool {
		return groupCells(widths) <= 64*16
	}).Draw(r, "widths")
	slices.Sort(widths)
	columns := widths[len(widths)-1]
	mode := rapid.SampledFrom([]Mode{ModeFree, ModeAdj, ModeAll}).Draw(r, "mode")
	search := newChainSearch(widths, columns, groupCells(widths)/columns, mode)
	search.run()
	return search
}

func groupCells(widths []int) int {
	cells := 1
	for _, k := range widths {
		cells = lcm(cells, k)
	}
	return cells
}

// Polishing never makes a layout worse, gives up nothing the mode insists on, and in mode free no adjacent step that is
// at its least for every m.
func TestPolishKeepsWhatIsPromised(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		search := drawSearch(r)
		before, start := search.best, search.bestScore
		search.polish()
		end := search.bestScore
		if start.less(end) || end.strict > start.strict {
			r.Fatalf("from %+v to %+v", start, end)
		}
		if search.mode != ModeFree {
			return
		}
		for level := range search.real - 1 {
			for _, step := range [][2]int{{level, level + 1}, {level + 1, level}} {
				least, _ := search.leastCost(search.widths[step[0]], search.widths[step[1]])
				was, _ := search.stepCost(before[step[0]], before[step[1]])
				is, _ := search.stepCost(search.best[step[0]], search.best[step[1]])
				if was < least || is < least || was == least && is > least {
					r.Fatalf("%v: the step between levels %v costs %d, before %d, least %d", search.widths, step, is, was, least)
				}
			}
		}
	})
}

// What the polisher adds up exchange by exchange is the score of the layout it returns, and its labels, members and
// columns tell the same story.
func TestPolishKeepsCount(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		search := drawSearch(r)
		p := newPolisher(search)
		p.run(rapid.IntRange(0, 2000).Draw(r, "proposals"), rapid.IntRange(0, 20).Draw(r, "threshold"))
		cuts := p.cuts()
		total := score{}
		for from, steps := range p.steps {
			for to, step := range steps {
				if step != nil {
					total = total.plus(step.rank.score(search.stepCost(cuts[from], cuts[to])))
				}
			}
		}
		if total != p.total || total.weighted < p.least {
			r.Fatalf("counted %+v, is %+v, bound %d", p.total, total, p.least)
		}
		for level, l := range p.levels {
			for index, stripe := range cuts[level].stripes {
				columns := uint64(0)
				for _, cell := range stripe {
					columns |= 1 << (int(cell) % p.columns)
					if l.of[cell] != int32(index) || l.cells[l.at[cell]] != cell {
						r.Fatalf("level %d: cell %d is lost", level, cell)
					}
				}
				if columns != l.used[index] {
					r.Fatalf("level %d, stripe %d: columns %x, noted %x", level, index, columns, l.used[index])
				}
			}
		}
	})
}

// The optima of 3-4-6, reads and network over all pairs at m = 2 and m = 3 together, proved by constraint programming:
// 188 at best and 202 with adjacent steps at their least, where the pairwise bounds add up to 184.
func TestPolishFindsKnownOptima(t *testing.T) {
	for mode, want := range map[Mode]int{ModeAll: 188, ModeAdj: 202} {
		search := newChainSearch([]int{3, 4, 6}, 6, 2, mode)
		search.run()
		search.polish()
		bound := 0
		for from := range search.real {
			for to := range search.real {
				if from != to {
					_, least := search.leastCost(search.widths[from], search.widths[to])
					bound += least
				}
			}
		}
		if got := search.bestScore.weighted; got != want || bound != 184 {
			t.Errorf("mode %s: %d with bound %d, want %d and 184", mode, got, bound, want)
		}
	}
}

// sampleLadders returns random ladders of three to five widths up to 24 whose groups have at most 64 rows.
func sampleLadders(count int) [][]int {
	random := rand.New(rand.NewPCG(1, 2))
	var ladders [][]int
	for len(ladders) < count {
		var widths []int
		for want := 3 + random.IntN(3); len(widths) < want; {
			if k := 2 + random.IntN(23); !slices.Contains(widths, k) {
				widths = append(widths, k)
			}
		}
		slices.Sort(widths)
		if groupCells(widths) <= 64*widths[len(widths)-1] {
			ladders = append(ladders, widths)
		}
	}
	return ladders
}

// The mean over the sample of what layouts cost above the sum of the pairwise bounds, in percent at m = 2, over adjacent
// steps and over all pairs; pairs that send nothing at best are in the sums. One operation lays out the whole sample.
func BenchmarkExcessOverBounds(b *testing.B) {
	const sample = 400
	ladders := sampleLadders(sample)
	for _, mode := range []Mode{ModeFree, ModeAdj, ModeAll} {
		for _, polished := range []bool{false, true} {
			name := string(mode) + "/chain"
			if polished {
				name = string(mode) + "/polished"
			}
			b.Run(name, func(b *testing.B) {
				var adjacent, all excess
				for b.Loop() {
					adjacent, all = excess{}, excess{}
					for _, widths := range ladders {
						columns := widths[len(widths)-1]
						search := newChainSearch(widths, columns, groupCells(widths)/columns, mode)
						search.run()
						if polished {
							search.polish()
						}
						partitions := make([]*Partition, len(widths))
						for level := range partitions {
							partitions[level] = search.best[level].expand(search.atom, search.columns).partition(groupCells(widths))
						}
						adjacent.add(partitions, true)
						all.add(partitions, false)
					}
				}
				b.ReportMetric(adjacent.reads/sample, "%reads-adjacent")
				b.ReportMetric(adjacent.network/sample, "%network-adjacent")
				b.ReportMetric(all.reads/sample, "%reads-all")
				b.ReportMetric(all.network/sample, "%network-all")
			})
		}
	}
}

// excess adds up percentages above the pairwise bounds.
type excess struct{ reads, network float64 }

func (e *excess) add(partitions []*Partition, adjacentOnly bool) {
	var reads, network, leastReads, leastNetwork int
	for i, from := range partitions {
		for j, to := range partitions {
			if i == j || adjacentOnly && i-j != 1 && j-i != 1 {
				continue
			}
			stepReads, stepNetwork := stepCost(from, to, 2)
			bestReads, bestNetwork := bestStep(len(from.StripeOf), from.K, to.K, 2)
			reads, network = reads+stepReads, network+stepNetwork
			leastReads, leastNetwork = leastReads+bestReads, leastNetwork+bestNetwork
		}
	}
	e.reads += 100 * (float64(reads)/float64(leastReads) - 1)
	e.network += 100 * (float64(network)/float64(leastNetwork) - 1)
}

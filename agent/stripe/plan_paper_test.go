package stripe

import (
	"fmt"
	"math"
	"testing"
)

// comparison sums up how often and how much one scheme reads less than another, as Table 1 of the ERS paper does.
type comparison struct {
	sets       int
	sum, best  float64
	parameters string
}

func (c *comparison) add(better, worse int, parameters string) {
	if better >= worse {
		return
	}
	c.sets++
	saved := 1 - float64(better)/float64(worse)
	c.sum += saved
	if saved > c.best {
		c.best, c.parameters = saved, parameters
	}
}

func (c *comparison) String() string {
	return fmt.Sprintf("%d %.1f%% %.1f%% %s", c.sets, 100*c.sum/float64(c.sets), 100*c.best, c.parameters)
}

// The 244 parameter sets of ERS Section 6.1: Table 1 from executed and proved baselines, and our plans next to them.
func TestTableOneOfERS(t *testing.T) {
	var forward, backward, overSRS comparison
	sets, misses, worst := 0, 0, 0.0
	for wide := 3; wide <= 14; wide++ {
		for k := 2; k < wide; k++ {
			for m := 1; m <= 4 && m < k; m++ {
				sets++
				name := fmt.Sprintf("(%d,%d,%d)", k, m, wide)
				down, up := RS(k, m), RS(wide, m)
				layout := mustLayout(t, Ladder{down, up}, 0, ModePair)
				there, back := Baselines(layout, down, up), Baselines(layout, up, down)
				forward.add(there[PlannerERS2].BlocksRead, there[PlannerERS1].BlocksRead, name)
				backward.add(back[PlannerERS2].BlocksRead, back[PlannerERS1].BlocksRead, name)
				overSRS.add(there[PlannerERS1].BlocksRead, there[PlannerSRS].BlocksRead, name)

				cells := layout.Cells()
				old := m*cells/k + (cells/k-wide/k*cells/wide)*(k-wide%k)
				if got := there[PlannerERS2].BlocksRead; got != old {
					t.Errorf("%s: ers2-proxy reads %d, the paper's formula says %d", name, got, old)
				}
				if got, want := back[PlannerERS2].BlocksRead, m*cells/wide+cells*(wide-k)/wide; got != want {
					t.Errorf("%s backward: ers2-proxy reads %d, the corrected formula says %d", name, got, want)
				}
				least := mustPlan(t, layout, down, up, PlannerRestripe, LeastReads).Cost.BlocksRead
				if least < old {
					misses++
					worst = max(worst, 1-float64(least)/float64(old))
				}
			}
		}
	}
	if sets != 244 {
		t.Errorf("%d sets, want 244", sets)
	}
	if got, want := forward.String(), "123 14.8% 53.6% (13,1,14)"; got != want {
		t.Errorf("ERS-2 over ERS-1: %s, want %s", got, want)
	}
	if got, want := backward.String(), "121 20.2% 58.1% (13,1,14)"; got != want {
		t.Errorf("ERS-2 over ERS-1 backward: %s, want %s", got, want)
	}
	if got, want := overSRS.String(), "221 46.2% 73.8% (6,1,14)"; got != want {
		t.Errorf("ERS-1 over SRS: %s, want %s", got, want)
	}
	if misses != 74 || math.Round(1000*worst) != 118 {
		t.Errorf("ERS-2 reads too much in %d sets, by up to %.1f %% of its reads; want 74 and 11.8", misses, 100*worst)
	}
}

// ERS Figures 4 and 5: (4,3,5).
func TestExampleOfERS(t *testing.T) {
	for _, c := range []struct {
		mode              Mode
		forward, backward int // cells outside the main stripes
	}{{ModePair, 3, 4}, {ModeRow, 4, 6}} {
		layout := mustLayout(t, Ladder{RS(4, 3), RS(5, 3)}, 0, c.mode)
		forward := mustPlan(t, layout, RS(4, 3), RS(5, 3), PlannerERS2, "").Cost.BlocksRead - 3*5
		backward := mustPlan(t, layout, RS(5, 3), RS(4, 3), PlannerERS2, "").Cost.BlocksRead - 3*4
		if forward != c.forward || backward != c.backward {
			t.Errorf("mode %s: %d and %d cells read, want %d and %d", c.mode, forward, backward, c.forward, c.backward)
		}
	}
}

// Every pair of widths up to 20, both ways: proved, reads at the bound, network at D0 + (m-1)*(lF-1) per window.
func TestEveryPairAttainsReadsAndNetwork(t *testing.T) {
	for wide := 2; wide <= 20; wide++ {
		for k := 1; k < wide; k++ {
			for m := 1; m <= 4; m++ {
				small, large := RS(k, m), RS(wide, m)
				layout := mustLayout(t, Ladder{small, large}, 0, ModePair)
				for _, step := range [][2]Scheme{{small, large}, {large, small}} {
					from, to := step[0], step[1]
					bound := LowerBound(layout, from, to)
					reads := mustPlan(t, layout, from, to, "", LeastReads).Cost
					if reads.BlocksRead != bound.BlocksRead {
						t.Errorf("%s to %s: %d reads, bound %d", from, to, reads.BlocksRead, bound.BlocksRead)
					}
					final, initial := layout.Cells()/to.K, layout.Cells()/from.K
					want := (initial%final)*(from.K-to.K%from.K) + (m-1)*(final-1)
					if to.K%from.K == 0 {
						want = 0
					}
					network := mustPlan(t, layout, from, to, "", LeastNetwork).Cost
					if network.BlocksSent != want || network.BlocksSent < bound.BlocksSent || network.DataBlocksMoved != 0 {
						t.Errorf("%s to %s: %+v, want %d sent, bound %d", from, to, network, want, bound.BlocksSent)
					}
					if reads.BlocksSent < network.BlocksSent {
						t.Errorf("%s to %s: least reads sends %d, least network %d", from, to, reads.BlocksSent, network.BlocksSent)
					}
				}
			}
		}
	}
}

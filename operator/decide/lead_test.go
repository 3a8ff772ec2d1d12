package decide

import (
	"slices"
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/heat/shadow"
	"github.com/restripe/restripe/agent/stripe"
)

var leadLadder = stripe.Ladder{stripe.Replicas(3), stripe.RS(4, 2), stripe.RS(12, 2)}

func leadPrices(hot, warm float64) shadow.Prices {
	p := shadow.Prices{Use: []float64{0, 1.5 / hot, 1.5/hot + (1.5-14.0/12)/warm}}
	for _, scheme := range leadLadder {
		p.Stored = append(p.Stored, scheme.Overhead())
		p.Move = append(p.Move, make([]float64, len(leadLadder)))
	}
	return p
}

// What is done by a candidate's rules is what the candidate reckons with: one group on each rung, in every bucket of heat.
func TestRulesOfCandidates(t *testing.T) {
	moved := 0
	for _, bounds := range [][2]float64{{4, 0.25}, {5.3, 0.41}, {1e9, 1e-9}, {0.3, 0.2}} {
		prices := leadPrices(bounds[0], bounds[1])
		for _, candidate := range shadow.Candidates(len(leadLadder)) {
			heat := &ClassHeat{Complete: true}
			for _, scheme := range leadLadder {
				rung := RungHeat{Scheme: scheme}
				for bucket := range api.HeatBuckets {
					rung.Buckets = append(rung.Buckets, HeatBucket{
						AtLeast: api.HeatEdge(bucket), Below: api.HeatEdge(bucket + 1), Groups: 1, Bytes: 1, SettledGroups: 1, SettledBytes: 1,
					})
				}
				heat.Rungs = append(heat.Rungs, rung)
			}
			class := &Class{Name: "c", Ladder: leadLadder}
			moves := Moves(Place{Class: class, Rules: RulesOf(candidate, leadLadder, &prices, false), Heat: heat})
			for from, scheme := range leadLadder {
				for bucket := range api.HeatBuckets {
					want := candidate.Next(&prices, from, shadow.Typical(bucket))
					got := from
					for _, m := range moves {
						if m.From == scheme && m.Heat.Overlaps(HeatRange{AtLeast: api.HeatEdge(bucket), Below: api.HeatEdge(bucket + 1)}) {
							got = slices.Index(leadLadder, m.To)
							moved++
						}
					}
					if got != want {
						t.Errorf("bounds %v, %+v: on rung %d, bucket %d: to rung %d, reckoned with %d", bounds, candidate, from, bucket, got, want)
					}
				}
			}
		}
	}
	if moved == 0 {
		t.Error("nothing moved")
	}
}

// days has candidates pay the same every day until one leads.
func days(lead Lead, costs, way []float64, most int) (Lead, int) {
	sum := make([]float64, len(costs))
	for day := 1; day <= most; day++ {
		for i := range costs {
			sum[i] += costs[i]
		}
		before := lead.Candidate
		if lead = lead.Look(sum, way); lead.Candidate != before {
			return lead, day
		}
	}
	return lead, 0
}

func TestLead(t *testing.T) {
	for _, test := range []struct {
		what       string
		costs, way []float64
		leads, day int
	}{
		{"nobody is better", []float64{1, 1, 2}, []float64{0, 0, 0}, 0, 0},
		{"better, but not by enough", []float64{1, 0.98, 2}, []float64{0, 0, 0}, 0, 0},
		{"better by as much as the leader costs in two fifths of a day, after five", []float64{1, 0.9, 2}, []float64{0, 0, 0}, 1, 5},
		{"better by more", []float64{1, 0.88, 2}, []float64{0, 0, 0}, 1, 4},
		{"the better of two", []float64{1, 0.8, 0.7}, []float64{0, 0, 0}, 2, 4},
		{"the way must be saved first", []float64{1, 0.5, 2}, []float64{0, 1, 0}, 1, 10},
		{"and the shorter way counts", []float64{1, 0.5, 0.49}, []float64{0, 0.1, 1}, 1, 4},
		{"a way of more than a tenth of all cost", []float64{1, 0.1, 2}, []float64{0, 3, 0}, 0, 0},
	} {
		lead, day := days(Lead{}, test.costs, test.way, 20)
		if lead.Candidate != test.leads || day != test.day {
			t.Errorf("%s: %d leads from day %d, want %d from day %d", test.what, lead.Candidate, day, test.leads, test.day)
		}
	}
}

// What was saved once, and is saved no more, is no reason to change.
func TestWhatIsSavedNoMoreIsNoReason(t *testing.T) {
	var lead Lead
	sum := []float64{0, 0}
	for day := range 20 {
		sum[0]++
		if sum[1] += 0.96; day < 2 {
			sum[1] -= 0.9
		}
		if lead = lead.Look(sum, []float64{0, 0}); lead.Candidate != 0 && day < 7 {
			t.Fatalf("on day %d another one leads that saved %v in all, and 0.04 a day by now", day+1, sum[0]-sum[1])
		}
	}
	if lead.Candidate != 1 {
		t.Error("a small saving that lasts is never enough")
	}
}

// However costs go, ways are a bounded share of what was paid.
func TestChangesOfLeaderAreBounded(t *testing.T) {
	lead, sum := Lead{}, []float64{0, 0}
	changes := 0
	for day := range 2000 {
		// Whoever leads does badly from then on.
		sum[lead.Candidate] += 3
		sum[1-lead.Candidate]++
		before := lead.Candidate
		if lead = lead.Look(sum, []float64{5, 5}); lead.Candidate != before {
			changes++
		}
		if lead.Ways > leadShare*lead.Cost {
			t.Fatalf("day %d: ways of %v for a cost of %v", day, lead.Ways, lead.Cost)
		}
	}
	if changes < 10 {
		t.Errorf("%d changes: this tests nothing", changes)
	}
}

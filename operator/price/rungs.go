package price

import (
	"fmt"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// daysOfMonth is how many days a month has.
const daysOfMonth = 365.25 / 12

// Rungs returns what the rungs of a ladder cost, in money for a GiB, for groups of so many bytes: storing, reads of a whole
// group, which ask as many nodes as the code has columns, and moves. Every read sends the group's bytes once, on whichever
// rung it is, so that it is the operations that tell them apart.
func (t Table) Rungs(ladder stripe.Ladder, groupBytes int64) (api.RungPrices, error) {
	layout, err := stripe.NewLayout(ladder, 0, stripe.ModeFree)
	if err != nil {
		return api.RungPrices{}, fmt.Errorf("pricing the ladder %s: %w", ladder, err)
	}
	groups := gib / float64(max(1, groupBytes)) // in a GiB
	least := ladder[0].K
	for _, scheme := range ladder {
		least = min(least, scheme.K)
	}
	var p api.RungPrices
	for _, from := range ladder {
		p.Stored = append(p.Stored, t.StorageGiBMonth/daysOfMonth*from.Overhead())
		p.Use = append(p.Use, groups*t.MillionOperations/1e6*float64(from.K-least))
		moves := make([]float64, len(ladder))
		for i, to := range ladder {
			if from == to {
				continue
			}
			plan, err := stripe.NewPlan(layout, from, to, stripe.PlannerRestripe, stripe.LeastNetwork)
			if err != nil {
				return api.RungPrices{}, fmt.Errorf("pricing %s to %s: %w", from, to, err)
			}
			moves[i] = t.NetworkGiB*float64(plan.Cost.BlocksSent)/float64(layout.Cells()) +
				groups*t.MillionOperations/1e6*float64(plan.Cost.BlocksRead+plan.Cost.BlocksWritten)
		}
		p.Move = append(p.Move, moves)
	}
	return p, nil
}

// Bytes returns an amount that was reckoned in bytes by the prices of Rungs.
func Bytes(amount float64) float64 { return amount / gib }

// MonthOf returns what so many bytes cost on each rung in a month in which their groups are used so many times a day.
func MonthOf(prices *api.RungPrices, rate float64, bytes int64) []float64 {
	costs := make([]float64, len(prices.Stored))
	for rung := range costs {
		costs[rung] = Bytes((prices.Stored[rung] + rate*prices.Use[rung]) * daysOfMonth * float64(bytes))
	}
	return costs
}

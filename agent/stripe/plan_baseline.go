package stripe

import "fmt"

// Baselines returns what other ways to make a transition cost per group of layout l, by planner; nil where the paper
// behind a planner does not describe the transition. Each baseline is counted on its own best layout of lcm(k,k') cells
// (ers2-proxy: mode pair; ers1-proxy and srs-proxy: mode row), once per such window of the group; loads of the busiest
// node are those of one window times the windows, as a window may use the same nodes as the next. from and to must be
// valid.
func Baselines(l *Layout, from, to Scheme) map[string]*Cost {
	costs := map[string]*Cost{
		PlannerReencode: reencodeCost(l, from, to), PlannerCopyPool: copyPoolCost(l, from, to),
		PlannerERS2: nil, PlannerERS1: nil, PlannerSRS: nil,
	}
	if !papersApply(from, to) {
		return costs
	}
	for planner, mode := range map[string]Mode{PlannerERS2: ModePair, PlannerERS1: ModeRow, PlannerSRS: ModeRow} {
		cost, err := windowCost(from, to, planner, mode)
		if err != nil { // invariant: the papers' layouts exist for every pair they apply to
			panic(fmt.Sprintf("stripe: baseline %s from %s to %s: %v", planner, from, to, err))
		}
		costs[planner] = cost.times(l.Cells() / lcm(from.K, to.K))
	}
	return costs
}

// windowCost returns the cost of a baseline on its own layout of the two schemes.
func windowCost(from, to Scheme, planner string, mode Mode) (Cost, error) {
	l, err := NewLayout(Ladder{from, to}, 0, mode)
	if err != nil {
		return Cost{}, err
	}
	plan, err := NewPlan(l, from, to, planner, LeastNetwork)
	if err != nil {
		return Cost{}, err
	}
	return plan.Cost, nil
}

func (c Cost) times(n int) *Cost {
	return &Cost{
		BlocksRead: c.BlocksRead * n, BlocksSent: c.BlocksSent * n, BlocksWritten: c.BlocksWritten * n,
		DataBlocksMoved: c.DataBlocksMoved * n, MaxNodeBlocksSent: c.MaxNodeBlocksSent * n,
		MaxNodeBlocksReceived: c.MaxNodeBlocksReceived * n,
	}
}

// reencodeCost is the cost of planner reencode: every cell to the proxy, every new parity from it.
func reencodeCost(l *Layout, from, to Scheme) *Cost {
	if needsNoParity(from, to) {
		return &Cost{}
	}
	cells, parities := l.Cells(), to.M*l.Cells()/to.K
	return &Cost{
		BlocksRead: cells, BlocksSent: cells + parities, BlocksWritten: parities,
		MaxNodeBlocksSent: max(parities, l.Rows), MaxNodeBlocksReceived: cells,
	}
}

// copyPoolCost is the cost of planner copy-pool: every cell to the proxy, every cell and parity from it.
func copyPoolCost(l *Layout, from, to Scheme) *Cost {
	if from == to {
		return &Cost{}
	}
	cells, parities := l.Cells(), to.M*l.Cells()/to.K
	return &Cost{
		BlocksRead: cells, BlocksSent: 2*cells + parities, BlocksWritten: cells + parities, DataBlocksMoved: cells,
		MaxNodeBlocksSent: cells + parities, MaxNodeBlocksReceived: cells,
	}
}

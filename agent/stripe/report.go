package stripe

import (
	"cmp"
	"slices"
)

// PlanReport is what `restripe plan` prints as JSON. Counts are whole blocks per group.
type PlanReport struct {
	From      Scheme    `json:"from"`
	To        Scheme    `json:"to"`
	Mode      Mode      `json:"mode"`
	Objective Objective `json:"objective"`
	Cells     int       `json:"cells"`
	Rows      int       `json:"rows"`
	Columns   int       `json:"columns"`
	Planner   string    `json:"planner"`
	Proved    bool      `json:"proved"`
	Cost
	Bounds    Bounds             `json:"bounds"`
	Baselines map[string]*Counts `json:"baselines"` // null where the baseline does not apply
}

// Counts are the parts of a cost that baselines are compared by.
type Counts struct {
	BlocksRead int `json:"blocksRead"`
	BlocksSent int `json:"blocksSent"`
}

// NewPlanReport lays out a group, plans the transition and reports it. columns 0 means the ladder's width. An empty mode
// means the planner's own layout: for ers2-proxy mode pair where the ladder allows it, for ers1-proxy and srs-proxy mode
// row, else mode free. Empty planner and objective mean the defaults of NewPlan. The plan comes with the report.
func NewPlanReport(ladder Ladder, columns int, from, to Scheme, planner string, mode Mode, objective Objective) (*PlanReport, *Plan, error) {
	planner = cmp.Or(planner, PlannerRestripe)
	if mode == "" {
		mode = ownMode(planner, ladder, columns)
	}
	layout, err := NewLayout(ladder, columns, mode)
	if err != nil {
		return nil, nil, err
	}
	plan, err := NewPlan(layout, from, to, planner, objective)
	if err != nil {
		return nil, nil, err
	}
	report := &PlanReport{
		From: from, To: to, Mode: mode, Objective: plan.Objective, Cells: layout.Cells(), Rows: layout.Rows,
		Columns: layout.Columns, Planner: planner, Proved: plan.Proved, Cost: plan.Cost,
		Bounds: LowerBound(layout, from, to), Baselines: make(map[string]*Counts),
	}
	for name, cost := range Baselines(layout, from, to) {
		report.Baselines[name] = nil
		if cost != nil {
			report.Baselines[name] = &Counts{BlocksRead: cost.BlocksRead, BlocksSent: cost.BlocksSent}
		}
	}
	return report, plan, nil
}

// ownMode returns the mode a planner's source would use for a group.
func ownMode(planner string, ladder Ladder, columns int) Mode {
	switch planner {
	case PlannerERS2:
		widths := slices.DeleteFunc(ladder.widths(), func(k int) bool { return k == 1 })
		if len(widths) == 2 && (columns == 0 || columns == widths[1]) {
			return ModePair
		}
	case PlannerERS1, PlannerSRS:
		return ModeRow
	}
	return ModeFree
}

// LayoutReport is what `restripe layout` prints as JSON.
type LayoutReport struct {
	Rows       int                   `json:"rows"`
	Columns    int                   `json:"columns"`
	Partitions map[string][][][2]int `json:"partitions"` // by scheme: stripes of [row, column]
	Matrix     [][]int               `json:"matrix"`     // rows of U for the ladder's parities, one entry per column
}

// NewLayoutReport describes a layout.
func NewLayoutReport(l *Layout) *LayoutReport {
	report := &LayoutReport{
		Rows: l.Rows, Columns: l.Columns, Partitions: make(map[string][][][2]int), Matrix: make([][]int, l.Ladder.MaxParity()),
	}
	for _, scheme := range l.Ladder {
		var stripes [][][2]int
		for _, cells := range l.partitions[scheme.K].Stripes {
			stripe := make([][2]int, len(cells))
			for i, cell := range cells {
				stripe[i] = [2]int{int(cell) / l.Columns, int(cell) % l.Columns}
			}
			stripes = append(stripes, stripe)
		}
		report.Partitions[scheme.String()] = stripes
	}
	for row := range report.Matrix {
		for column := range l.Columns {
			report.Matrix[row] = append(report.Matrix[row], int(Coefficient(row, column)))
		}
	}
	return report
}

package console

import (
	"context"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"github.com/restripe/restripe/agent/stripe"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/console/drawing"
)

// pictureCells is the largest group that is drawn.
const pictureCells = 4096

// GetPicture returns one group as an array of cells, and step by step what a plan does to it.
func (s *Server) GetPicture(_ context.Context, request *consolev1.GetPictureRequest) (*consolev1.Picture, error) {
	from, err := stripe.ParseScheme(request.From)
	if err != nil {
		return nil, refuse(connect.CodeInvalidArgument, "from: %w", err)
	}
	to, err := stripe.ParseScheme(request.To)
	if err != nil {
		return nil, refuse(connect.CodeInvalidArgument, "to: %w", err)
	}
	text := request.Ladder
	if text == "" {
		if text = from.String(); from != to {
			text += "," + to.String()
		}
	}
	ladder, err := stripe.ParseLadder(text)
	if err != nil {
		return nil, refuse(connect.CodeInvalidArgument, "ladder: %w", err)
	}
	if request.Columns < 0 || request.Columns > stripe.MaxData {
		return nil, refuse(connect.CodeInvalidArgument, "columns: %d; give at most %d, 0 for the widest scheme of the ladder", request.Columns, stripe.MaxData)
	}
	if cells := groupCells(ladder, int(request.Columns)); cells > pictureCells {
		return nil, refuse(connect.CodeFailedPrecondition, "a group of this ladder has more than %d cells, and no more are drawn; take a ladder with fewer schemes, or such as divide each other", pictureCells)
	}
	report, plan, err := stripe.NewPlanReport(ladder, int(request.Columns), from, to, request.Planner, stripe.Mode(request.Mode), stripe.Objective(request.Objective))
	if err != nil {
		return nil, refuse(connect.CodeInvalidArgument, "planning %s to %s: %w", from, to, err)
	}
	return newPicture(report, plan)
}

// groupCells is how many cells a group has, or a number above pictureCells.
func groupCells(ladder stripe.Ladder, columns int) int {
	cells := max(columns, ladder.Width())
	for _, scheme := range ladder {
		if cells > pictureCells || scheme.K < 1 {
			return cells
		}
		a, b := cells, scheme.K
		for b > 0 {
			a, b = b, a%b
		}
		cells *= scheme.K / a
	}
	return cells
}

func newPicture(r *stripe.PlanReport, plan *stripe.Plan) (*consolev1.Picture, error) {
	before, err := plan.Layout.Partition(plan.From.K)
	if err != nil {
		return nil, refuse(connect.CodeInternal, "%w", err)
	}
	after, err := plan.Layout.Partition(plan.To.K)
	if err != nil {
		return nil, refuse(connect.CodeInternal, "%w", err)
	}
	p := &consolev1.Picture{
		From: r.From.String(), To: r.To.String(), Planner: r.Planner, Objective: string(r.Objective), Mode: string(r.Mode), Rows: int32(r.Rows), Columns: int32(r.Columns),
		Proved: plan.Proved, Explanation: strings.TrimSpace(stripe.Explain(plan)),
		Cost: &consolev1.PictureCost{
			BlocksRead: int32(plan.Cost.BlocksRead), BlocksSent: int32(plan.Cost.BlocksSent), BlocksWritten: int32(plan.Cost.BlocksWritten),
			DataBlocksMoved: int32(plan.Cost.DataBlocksMoved), MaxNodeSent: int32(plan.Cost.MaxNodeBlocksSent), MaxNodeReceived: int32(plan.Cost.MaxNodeBlocksReceived),
		},
		Comparisons: []*consolev1.PictureComparison{{Way: lowerBound, Applies: true, BlocksRead: int32(r.Bounds.BlocksRead), BlocksSent: int32(r.Bounds.BlocksSent)}},
	}
	for _, way := range slices.Sorted(maps.Keys(r.Baselines)) {
		c := &consolev1.PictureComparison{Way: way}
		if counts := r.Baselines[way]; counts != nil {
			c.Applies, c.BlocksRead, c.BlocksSent = true, int32(counts.BlocksRead), int32(counts.BlocksSent)
		}
		p.Comparisons = append(p.Comparisons, c)
	}
	for cell := range plan.Layout.Cells() {
		p.Cells = append(p.Cells, &consolev1.Cell{
			Row: int32(cell / r.Columns), Column: int32(cell % r.Columns), OldStripe: before.StripeOf[cell], NewStripe: after.StripeOf[cell],
		})
	}
	for row := range plan.Parities {
		node := &consolev1.ParityNode{Position: int32(r.Columns + row), Row: int32(row)}
		if row < plan.From.M {
			node.OldStripes = numbers(len(before.Stripes))
		}
		if row < plan.To.M {
			node.NewStripes = numbers(len(after.Stripes))
		}
		p.Parities = append(p.Parities, node)
	}
	p.Steps = drawing.Steps(plan)
	return p, nil
}

func numbers(count int) []int32 {
	list := make([]int32, count)
	for i := range list {
		list[i] = int32(i)
	}
	return list
}

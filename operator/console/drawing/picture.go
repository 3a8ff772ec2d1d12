package drawing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"github.com/restripe/restripe/agent/stripe"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/words"
)

// pictureCells is the largest group that is drawn.
const pictureCells = 4096

// LowerBound is the way of a comparison that no way can do better than.
const LowerBound = "lower-bound"

// refuse makes an error of a class out of words.
func refuse(code connect.Code, format string, values ...any) error {
	return connect.NewError(code, fmt.Errorf(format, values...))
}

// Picture returns one group as an array of cells, and step by step what a plan does to it. Its errors have classes of Connect.
func Picture(request *consolev1.GetPictureRequest) (*consolev1.Picture, error) {
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
		Comparisons: []*consolev1.PictureComparison{{Way: LowerBound, Applies: true, BlocksRead: int32(r.Bounds.BlocksRead), BlocksSent: int32(r.Bounds.BlocksSent)}},
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
	p.Steps = steps(plan)
	return p, nil
}

func numbers(count int) []int32 {
	list := make([]int32, count)
	for i := range list {
		list[i] = int32(i)
	}
	return list
}

// steps returns what a plan does, in an order in which nothing is used before it is there: the messages by the length of
// the way to them, then what is staged, and at last the commit.
func steps(plan *stripe.Plan) []*consolev1.PictureStep {
	t := teller{plan: plan, depth: depths(plan)}
	var sends []send
	var list []*consolev1.PictureStep
	for i := range plan.Programs {
		program := &plan.Programs[i]
		for j := range program.Rows {
			if row := &program.Rows[j]; row.Message >= 0 {
				sends = append(sends, send{t.depth[row.Message], program, row})
			}
		}
	}
	slices.SortStableFunc(sends, func(a, b send) int { return a.depth - b.depth })
	for _, one := range sends {
		list = append(list, t.send(one.program, one.row))
	}
	for i := range plan.Programs {
		program := &plan.Programs[i]
		for j := range program.Rows {
			if row := &program.Rows[j]; row.Message < 0 {
				list = append(list, t.add(program, row))
			}
		}
	}
	return append(list, t.commit())
}

type send struct {
	depth   int
	program *stripe.Program
	row     *stripe.Row
}

// depths returns for every message how many others come before it on the longest way to it.
func depths(plan *stripe.Plan) []int {
	sources := make([][]int, len(plan.Messages))
	for i := range plan.Programs {
		program := &plan.Programs[i]
		for _, row := range program.Rows {
			if row.Message < 0 {
				continue
			}
			for _, term := range row.Terms {
				if input := program.Inputs[term.Input]; input.Kind == stripe.SourceMessage {
					sources[row.Message] = append(sources[row.Message], input.Message)
				}
			}
		}
	}
	depth := make([]int, len(sources))
	for changed := true; changed; { // ends: a proved plan has no circles
		changed = false
		for message, before := range sources {
			for _, one := range before {
				if depth[message] <= depth[one] {
					depth[message], changed = depth[one]+1, true
				}
			}
		}
	}
	return depth
}

// teller says in words what the rows of a plan do.
type teller struct {
	plan  *stripe.Plan
	depth []int
	sent  int32
}

// place is a position in words.
func (t *teller) place(position stripe.Position) string {
	columns := t.plan.Layout.Columns
	switch at := int(position); {
	case at < columns:
		return fmt.Sprintf("column %d", at+1)
	case at < columns+t.plan.Parities:
		return fmt.Sprintf("parity node %d", at-columns+1)
	case at == columns+t.plan.Parities:
		return "the proxy"
	default:
		return fmt.Sprintf("node %d of the new pool", at-columns-t.plan.Parities)
	}
}

// inputs adds to a step what a row is made of.
func (t *teller) inputs(step *consolev1.PictureStep, program *stripe.Program, row *stripe.Row) {
	for _, term := range row.Terms {
		switch input := program.Inputs[term.Input]; {
		case input.Kind == stripe.SourceMessage:
			step.BlocksReceived++
		case input.Slot < t.plan.Layout.Columns:
			step.Cells = append(step.Cells, &consolev1.CellReference{Row: int32(input.Unit), Column: int32(input.Slot)})
		default:
			step.OldStripes = append(step.OldStripes, int32(input.Unit))
		}
	}
}

// ingredients says what a step adds up.
func ingredients(step *consolev1.PictureStep) string {
	var parts []string
	if n := len(step.Cells); n > 0 {
		parts = append(parts, words.Count(int64(n), "cell"))
	}
	if n := len(step.OldStripes); n > 0 {
		parts = append(parts, words.Count(int64(n), "old parity block")+" it already holds")
	}
	if step.BlocksReceived > 0 {
		parts = append(parts, words.Count(int64(step.BlocksReceived), "block")+" it was sent")
	}
	return strings.Join(parts, " and ")
}

func (t *teller) send(program *stripe.Program, row *stripe.Row) *consolev1.PictureStep {
	to := t.plan.Messages[row.Message].To
	t.sent++
	step := &consolev1.PictureStep{
		Kind: consolev1.StepKind_STEP_KIND_SEND, Position: int32(program.Position), Place: t.place(program.Position), ToPosition: int32(to), Blocks: 1, NewStripe: -1,
		BlocksSentTotal: t.sent,
	}
	t.inputs(step, program, row)
	step.Text = fmt.Sprintf("%s sends 1 block to %s: %s.", step.Place, t.place(to), ingredients(step))
	return step
}

func (t *teller) add(program *stripe.Program, row *stripe.Row) *consolev1.PictureStep {
	step := &consolev1.PictureStep{
		Kind: consolev1.StepKind_STEP_KIND_ADD, Position: int32(program.Position), Place: t.place(program.Position), NewStripe: -1, BlocksSentTotal: t.sent,
	}
	t.inputs(step, program, row)
	what := fmt.Sprintf("the cell in row %d of column %d", row.Unit+1, row.Slot+1)
	if row.Slot >= t.plan.Layout.Columns {
		step.NewStripe = int32(row.Unit)
		what = fmt.Sprintf("its parity of new stripe %d", row.Unit+1)
	}
	step.Text = fmt.Sprintf("%s makes %s of %s.", step.Place, what, ingredients(step))
	return step
}

func (t *teller) commit() *consolev1.PictureStep {
	text := fmt.Sprintf("The catalog names the new blocks in one transaction, and the old ones are deleted. %s crossed the network.", words.Count(int64(t.sent), "block"))
	if t.sent == 0 {
		text = "The catalog names the new blocks in one transaction, and the old ones are deleted. Nothing crossed the network."
	}
	return &consolev1.PictureStep{Kind: consolev1.StepKind_STEP_KIND_COMMIT, Text: text, Position: -1, NewStripe: -1, BlocksSentTotal: t.sent}
}

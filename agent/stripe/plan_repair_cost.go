package stripe

// Flow describes the network that repairs go over, as far as the choice of a shape depends on it.
type Flow struct {
	CellBytes  int64 // of the group
	PieceBytes int64 // messages leave and are added up in pieces of so many bytes; 0: whole cells
	HopBytes   int64 // bytes a link carries in the time that one hop costs whatever its size
	Beside     int   // repairs that share the links, this one included; at least 1
}

// Span estimates how long a plan takes, in bytes that one link carries in that time. The most loaded link carries its
// messages one after the other, for this repair and for those beside it; and the last byte of the longest way has to wait
// for one piece, and one hop's own time, at every step before the last.
func (p *Plan) Span(flow Flow) int64 {
	piece := flow.CellBytes
	if flow.PieceBytes > 0 {
		piece = min(piece, flow.PieceBytes)
	}
	most := int64(max(p.Cost.MaxNodeBlocksSent, p.Cost.MaxNodeBlocksReceived))
	steps := int64(p.Steps())
	return most*flow.CellBytes*int64(max(1, flow.Beside)) + max(0, steps-1)*piece + steps*flow.HopBytes
}

// Steps is the number of messages on the longest way through the plan.
func (p *Plan) Steps() int {
	type producer struct{ program, row int }
	producers := make([]producer, len(p.Messages))
	for i := range p.Programs {
		for j, row := range p.Programs[i].Rows {
			if row.Message >= 0 {
				producers[row.Message] = producer{i, j}
			}
		}
	}
	steps := make([]int, len(p.Messages)) // 0: not known yet
	var stepsOf func(message int) int
	stepsOf = func(message int) int {
		if steps[message] == 0 {
			program := &p.Programs[producers[message].program]
			before := 0
			for _, term := range program.Rows[producers[message].row].Terms {
				if input := program.Inputs[term.Input]; input.Kind == SourceMessage {
					before = max(before, stepsOf(input.Message))
				}
			}
			steps[message] = before + 1
		}
		return steps[message]
	}
	most := 0
	for message := range p.Messages {
		most = max(most, stepsOf(message))
	}
	return most
}

// ChooseRepairPlan returns the proved plan with the least Span among the shapes in which survivors add, the first of
// RepairShapes where several have it. Arguments and errors are those of NewRepairPlan.
func ChooseRepairPlan(l *Layout, scheme Scheme, flow Flow, lost, away []int) (*Plan, error) {
	var best *Plan
	var least int64
	for _, shape := range []RepairShape{RepairStar, RepairChain, RepairTree} {
		plan, err := NewShapedRepairPlan(l, scheme, shape, lost, away)
		if err != nil {
			return nil, err
		}
		if span := plan.Span(flow); best == nil || span < least {
			best, least = plan, span
		}
	}
	return best, nil
}

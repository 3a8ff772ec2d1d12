package stripe

import (
	"cmp"
	"slices"
)

// planBuilder collects programs and messages.
type planBuilder struct {
	plan     *Plan
	programs []*programBuilder // by position; nil where nothing is done
}

// programBuilder collects the inputs and rows of one position.
type programBuilder struct {
	inputs []Input
	index  map[Input]int
	rows   []Row
	staged map[unitKey]int // row that stages the unit
}

// unitKey names a stored unit.
type unitKey struct {
	slot, unit int
}

// expression is a linear combination of the inputs of one program; an input may appear more than once. One without terms is zero:
// nothing is read or sent for it.
type expression []Term

func newPlanBuilder(l *Layout, from, to Scheme, planner string, objective Objective) *planBuilder {
	parities := max(from.M, to.M)
	positions := l.Columns + parities + 1 + l.Columns + parities
	return &planBuilder{
		plan: &Plan{
			Planner: planner, Objective: objective, Before: l, Layout: l, From: from, To: to, Parities: parities,
		},
		programs: make([]*programBuilder, positions),
	}
}

func (b *planBuilder) at(position Position) *programBuilder {
	if b.programs[position] == nil {
		b.programs[position] = &programBuilder{index: make(map[Input]int), staged: make(map[unitKey]int)}
	}
	return b.programs[position]
}

func (p *programBuilder) input(input Input) int {
	at, found := p.index[input]
	if !found {
		at = len(p.inputs)
		p.inputs = append(p.inputs, input)
		p.index[input] = at
	}
	return at
}

// block returns the expression of a unit stored at position. It is zero where nothing is stored of its column, or of any column of
// the stripe that it is the parity of.
func (b *planBuilder) block(position Position, slot, unit int) expression {
	l := b.plan.Layout
	if l.IsEmpty(slot) || slot >= l.Columns && b.plan.Before.isZero(b.plan.Before.partitions[b.plan.From.K].Stripes[unit]) {
		return nil
	}
	return expression{{b.at(position).input(Input{Kind: SourceBlock, Slot: slot, Unit: unit}), 1}}
}

// cell returns the expression of a cell at its own column.
func (b *planBuilder) cell(cell int32) expression {
	column := int(cell) % b.plan.Layout.Columns
	return b.block(Position(column), column, int(cell)/b.plan.Layout.Columns)
}

// parity returns the expression of an old parity at its own node.
func (b *planBuilder) parity(row, stripe int) expression {
	slot := b.plan.Layout.Columns + row
	return b.block(Position(slot), slot, stripe)
}

// send makes a message of value, an expression at from, and returns it as an expression at to. Zero is known there without one.
func (b *planBuilder) send(from, to Position, value expression) expression {
	if len(value) == 0 {
		return nil
	}
	message := len(b.plan.Messages)
	b.plan.Messages = append(b.plan.Messages, Message{From: from, To: to})
	sender := b.at(from)
	sender.rows = append(sender.rows, Row{Message: message, Terms: value})
	return expression{{b.at(to).input(Input{Kind: SourceMessage, Message: message}), 1}}
}

// stage adds value, an expression at position, to a unit staged there.
func (b *planBuilder) stage(position Position, slot, unit int, value expression) {
	program := b.at(position)
	key := unitKey{slot, unit}
	at, found := program.staged[key]
	if !found {
		at = len(program.rows)
		program.rows = append(program.rows, Row{Message: -1, Slot: slot, Unit: unit})
		program.staged[key] = at
	}
	program.rows[at].Terms = append(program.rows[at].Terms, value...)
}

// plus adds factor times other to e.
func (e expression) plus(factor byte, other expression) expression {
	for _, term := range other {
		if product := Multiply(factor, term.Coefficient); product != 0 {
			e = append(e, Term{term.Input, product})
		}
	}
	return e
}

// reduced returns the sum in ascending order of inputs, every input once, without zeros.
func (e expression) reduced() []Term {
	terms := slices.Clone(e)
	slices.SortFunc(terms, func(a, b Term) int { return cmp.Compare(a.Input, b.Input) })
	kept := terms[:0]
	for _, term := range terms {
		if last := len(kept) - 1; last >= 0 && kept[last].Input == term.Input {
			kept[last].Coefficient ^= term.Coefficient
		} else {
			kept = append(kept, term)
		}
	}
	kept = slices.DeleteFunc(kept, func(t Term) bool { return t.Coefficient == 0 })
	return slices.Clip(kept)
}

// finish returns the plan, costed and proved.
func (b *planBuilder) finish() (*Plan, error) {
	for position, program := range b.programs {
		if program == nil {
			continue
		}
		for i := range program.rows {
			program.rows[i].Terms = expression(program.rows[i].Terms).reduced()
		}
		b.plan.Programs = append(b.plan.Programs, Program{
			Position: Position(position), Inputs: program.inputs, Rows: program.rows,
		})
	}
	b.plan.Cost = b.plan.count()
	if err := b.plan.Prove(); err != nil {
		return nil, err
	}
	return b.plan, nil
}

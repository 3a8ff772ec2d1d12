package stripe

import (
	"fmt"
	"slices"
)

// Prove runs the plan symbolically, on coefficient vectors over the cells of the group (and the differences of patched
// cells), and checks that every position uses only what it has, that the messages can be computed in some order, that
// exactly the units the operation must produce are staged, once each and at the right position, that each equals its
// definition under To, and that Cost counts what the programs do. It sets Proved, and returns nil or an error wrapping
// ErrUnproved that says where the plan is wrong.
func (p *Plan) Prove() error {
	err := p.prove()
	if proved := err == nil; p.Proved != proved {
		p.Proved = proved
	}
	if err != nil {
		return fmt.Errorf("proving the %s plan from %s to %s: %w: %w", p.Planner, p.From, p.To, ErrUnproved, err)
	}
	return nil
}

func (p *Plan) prove() error {
	if p.Layout == nil || p.Before == nil || p.Parities != max(p.From.M, p.To.M) {
		return fmt.Errorf("the layout is missing or the parity rows are not those of the schemes")
	}
	if !p.hasItsCells() {
		return fmt.Errorf("the layouts before and after are not of the same cells")
	}
	from, err := p.Before.Partition(p.From.K)
	if err != nil {
		return err
	}
	to, err := p.Layout.Partition(p.To.K)
	if err != nil {
		return err
	}
	c := &prover{plan: p, from: from, to: to, staged: make(map[unitKey]bool), sources: make(map[int]Position)}
	for _, step := range []func() error{c.checkShape, c.run, c.checkStaged} {
		if err := step(); err != nil {
			return err
		}
	}
	if p.Cost != p.count() {
		return fmt.Errorf("the cost %+v is not what the programs do, %+v", p.Cost, p.count())
	}
	return nil
}

// hasItsCells reports whether the layout before has the cells of that afterwards, and differs from it as the operation says.
func (p *Plan) hasItsCells() bool {
	was, empty := p.Before.empty, p.Layout.empty
	switch {
	case p.Before.Rows != p.Layout.Rows:
		return false
	case p.Planner == plannerNarrow:
		return p.Before.Columns > p.Layout.Columns && was&(1<<p.Layout.Columns-1) == empty
	case p.Before.Columns != p.Layout.Columns:
		return false
	case p.Planner == plannerWiden:
		return was&empty == empty
	}
	return was == empty
}

// vector is a sparse combination of symbols, ascending: symbol c < cells is cell c, symbol cells+c its difference. Behind them are those
// of cells that a group loses: row r of its i-th column from the end of the layout on is 2*cells + i*rows + r.
type vector []symbol

type symbol struct {
	index       int32
	coefficient byte
}

type prover struct {
	plan     *Plan
	from, to *Partition
	producer []rowRef // row that computes each message
	value    []vector // value of each message, nil until computed
	staged   map[unitKey]bool
	sources  map[int]Position // where what comes into new columns is

	scratch []byte
	touched []int32
}

type rowRef struct {
	program, row int
}

// checkShape checks indices, positions and order, and finds the producer of every message.
func (c *prover) checkShape() error {
	p := c.plan
	c.producer = make([]rowRef, len(p.Messages))
	produced, consumed := make([]bool, len(p.Messages)), make([]bool, len(p.Messages))
	positions := Position(p.positions())
	for i, message := range p.Messages {
		if message.From == message.To || min(message.From, message.To) < 0 || max(message.From, message.To) >= positions {
			return fmt.Errorf("message %d goes from position %d to %d", i, message.From, message.To)
		}
	}
	for at := range p.Programs {
		program := &p.Programs[at]
		if program.Position < 0 || program.Position >= positions || at > 0 && p.Programs[at-1].Position >= program.Position {
			return fmt.Errorf("program %d of position %d is out of order", at, program.Position)
		}
		seen := make(map[Input]bool, len(program.Inputs))
		for i, input := range program.Inputs {
			if err := c.checkInput(program.Position, input); err != nil {
				return fmt.Errorf("input %d of position %d: %w", i, program.Position, err)
			}
			if seen[input] {
				return fmt.Errorf("input %d of position %d appears twice", i, program.Position)
			}
			seen[input] = true
			if input.Kind == SourceMessage {
				consumed[input.Message] = true
			}
		}
		used := make([]bool, len(program.Inputs))
		for i, row := range program.Rows {
			if row.Message >= 0 {
				if row.Message >= len(p.Messages) || p.Messages[row.Message].From != program.Position || produced[row.Message] {
					return fmt.Errorf("row %d of position %d computes message %d, which is not its to send", i, program.Position, row.Message)
				}
				produced[row.Message] = true
				c.producer[row.Message] = rowRef{at, i}
			}
			last := -1
			for _, term := range row.Terms {
				if term.Input <= last || term.Input >= len(program.Inputs) || term.Coefficient == 0 {
					return fmt.Errorf("row %d of position %d: terms must ascend by input and have non-zero coefficients", i, program.Position)
				}
				last = term.Input
				used[term.Input] = true
			}
		}
		if i := slices.Index(used, false); i >= 0 {
			return fmt.Errorf("input %d of position %d is never used", i, program.Position)
		}
	}
	if i := slices.Index(produced, false); i >= 0 {
		return fmt.Errorf("message %d is never computed", i)
	}
	if i := slices.Index(consumed, false); i >= 0 {
		return fmt.Errorf("message %d is never used", i)
	}
	return nil
}

// checkInput checks that position has the input.
func (c *prover) checkInput(position Position, input Input) error {
	p := c.plan
	columns := p.Layout.Columns
	switch input.Kind {
	case SourceMessage:
		if input.Message < 0 || input.Message >= len(p.Messages) || p.Messages[input.Message].To != position {
			return fmt.Errorf("message %d does not come here", input.Message)
		}
		if input.Slot != 0 || input.Unit != 0 {
			return fmt.Errorf("a message has no slot or unit")
		}
		return nil
	case SourceCopy:
		if p.Planner == plannerNarrow {
			return c.checkLost(position, input)
		}
		fallthrough
	case SourceBlock, SourcePatch:
		units := p.Layout.Rows
		if input.Slot >= columns {
			units = len(c.from.Stripes)
		}
		if input.Slot < 0 || input.Slot >= columns+p.From.M || p.Layout.IsEmpty(input.Slot) || input.Unit < 0 || input.Unit >= units ||
			!c.isAt(position, input) {
			return fmt.Errorf("unit %d of slot %d is not stored here", input.Unit, input.Slot)
		}
		if input.Message != 0 {
			return fmt.Errorf("a stored unit has no message")
		}
		if input.Kind == SourcePatch && (p.Planner != plannerUpdate || input.Slot >= columns) {
			return fmt.Errorf("only cells are patched, and only by updates")
		}
		if copies := p.Planner == plannerSplice || p.Planner == plannerWiden; input.Kind == SourceCopy && (!copies || input.Slot >= columns) ||
			p.Planner == plannerSplice && input.Kind != SourceCopy {
			return fmt.Errorf("only cells are put together from copies, by splices, which have nothing else, and for new columns")
		}
		return nil
	}
	return fmt.Errorf("unknown kind %d", input.Kind)
}

// checkLost checks that a cell which a group loses is read where the others of its column are, outside of it.
func (c *prover) checkLost(position Position, input Input) error {
	p := c.plan
	if input.Slot < p.Layout.Columns || input.Slot >= p.Before.Columns || p.Before.IsEmpty(input.Slot) || input.Unit < 0 ||
		input.Unit >= p.Layout.Rows || input.Message != 0 {
		return fmt.Errorf("row %d of column %d is none that the group loses", input.Unit, input.Slot)
	}
	if at, known := c.sources[input.Slot]; position < p.Layout.Outside(p.To, 0) || known && at != position {
		return fmt.Errorf("column %d, which the group loses, is not here", input.Slot)
	}
	c.sources[input.Slot] = position
	return nil
}

// isAt reports whether an input that is stored is at a position. What comes into a new column is wherever the first program says that reads
// it, and nowhere else.
func (c *prover) isAt(position Position, input Input) bool {
	if c.plan.Planner != plannerWiden || !c.plan.Before.IsEmpty(input.Slot) {
		return Position(input.Slot) == position && (c.plan.Planner != plannerWiden || input.Kind == SourceBlock)
	}
	source, known := c.sources[input.Slot]
	if !known {
		source = position
		c.sources[input.Slot] = position
	}
	before, after := c.plan.Before, c.plan.Layout
	isNew := position >= 0 && before.IsEmpty(int(position)) && !after.IsEmpty(int(position))
	return input.Kind == SourceCopy && source == position && (isNew || position >= Position(after.Columns))
}

// run evaluates all messages in the order of their dependences.
func (c *prover) run() error {
	p := c.plan
	c.value = make([]vector, len(p.Messages))
	c.scratch = make([]byte, p.Layout.Cells()+p.Before.Cells())
	waiting := make([]int, len(p.Messages)) // messages still missing
	waiters := make([][]int32, len(p.Messages))
	var ready []int
	for message, ref := range c.producer {
		program := &p.Programs[ref.program]
		for _, term := range program.Rows[ref.row].Terms {
			if input := program.Inputs[term.Input]; input.Kind == SourceMessage {
				waiting[message]++
				waiters[input.Message] = append(waiters[input.Message], int32(message))
			}
		}
		if waiting[message] == 0 {
			ready = append(ready, message)
		}
	}
	done := 0
	for ; len(ready) > 0; done++ {
		message := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		ref := c.producer[message]
		c.value[message] = c.evaluate(&p.Programs[ref.program], p.Programs[ref.program].Rows[ref.row].Terms)
		for _, waiter := range waiters[message] {
			if waiting[waiter]--; waiting[waiter] == 0 {
				ready = append(ready, int(waiter))
			}
		}
	}
	if done < len(p.Messages) {
		return fmt.Errorf("messages wait for each other in a circle")
	}
	return nil
}

// evaluate returns the value of a combination of a program's inputs.
func (c *prover) evaluate(program *Program, terms []Term) vector {
	for _, term := range terms {
		input := program.Inputs[term.Input]
		switch {
		case input.Kind == SourceMessage:
			for _, s := range c.value[input.Message] {
				c.add(s.index, Multiply(term.Coefficient, s.coefficient))
			}
		case input.Kind == SourceCopy && c.plan.Planner == plannerNarrow:
			c.addLost(input.Unit, input.Slot, term.Coefficient)
		case input.Slot < c.plan.Layout.Columns:
			cell := int32(c.plan.Layout.CellIndex(input.Unit, input.Slot))
			if input.Kind == SourcePatch {
				cell += int32(c.plan.Layout.Cells())
			}
			c.add(cell, term.Coefficient)
		default:
			before, row := c.plan.Before, input.Slot-c.plan.Layout.Columns
			for _, cell := range c.from.Stripes[input.Unit] {
				column := int(cell) % before.Columns
				if before.IsEmpty(column) {
					continue
				}
				coefficient := Multiply(term.Coefficient, Coefficient(row, column))
				if column >= c.plan.Layout.Columns {
					c.addLost(int(cell)/before.Columns, column, coefficient)
				} else {
					c.add(int32(c.plan.Layout.CellIndex(int(cell)/before.Columns, column)), coefficient)
				}
			}
		}
	}
	return c.collect()
}

// add adds the symbol of a cell or of its difference; what nothing is stored of is zero.
func (c *prover) add(index int32, coefficient byte) {
	l := c.plan.Layout
	if int(index) >= 2*l.Cells() || !l.IsEmpty(int(index)%l.Columns) {
		c.addSymbol(index, coefficient)
	}
}

// addLost adds the symbol of a cell that the group loses, in a column of the layout before.
func (c *prover) addLost(row, column int, coefficient byte) {
	l := c.plan.Layout
	c.addSymbol(int32(2*l.Cells()+(column-l.Columns)*l.Rows+row), coefficient)
}

func (c *prover) addSymbol(index int32, coefficient byte) {
	if c.scratch[index] == 0 && coefficient != 0 {
		c.touched = append(c.touched, index)
	}
	c.scratch[index] ^= coefficient
}

// addParity adds factor times the parity of cells, or of their differences where shift is the number of cells.
func (c *prover) addParity(row int, cells []int32, shift int32, factor byte) {
	for _, cell := range cells {
		c.add(cell+shift, Multiply(factor, Coefficient(row, int(cell)%c.plan.Layout.Columns)))
	}
}

// collect returns what was added since the last call.
func (c *prover) collect() vector {
	slices.Sort(c.touched)
	result := make(vector, 0, len(c.touched))
	for _, index := range c.touched {
		if c.scratch[index] != 0 {
			result = append(result, symbol{index, c.scratch[index]})
			c.scratch[index] = 0
		}
	}
	c.touched = c.touched[:0]
	return result
}

// checkStaged checks the staged units against what the operation must produce.
func (c *prover) checkStaged() error {
	p := c.plan
	patched := make(map[int32]bool)
	for _, program := range p.Programs {
		for _, input := range program.Inputs {
			if input.Kind == SourcePatch {
				patched[int32(p.Layout.CellIndex(input.Unit, input.Slot))] = true
			}
		}
	}
	for at := range p.Programs {
		program := &p.Programs[at]
		for i, row := range program.Rows {
			if row.Message >= 0 {
				continue
			}
			key := unitKey{row.Slot, row.Unit}
			if c.staged[key] {
				return fmt.Errorf("unit %d of slot %d is staged twice", row.Unit, row.Slot)
			}
			c.staged[key] = true
			definition, err := c.definition(program.Position, row, patched)
			if err != nil {
				return err
			}
			if !slices.Equal(c.evaluate(program, row.Terms), definition) {
				return fmt.Errorf("row %d of position %d does not equal unit %d of slot %d", i, program.Position, row.Unit, row.Slot)
			}
		}
	}
	required, err := c.required(patched)
	if err != nil {
		return err
	}
	for _, key := range required {
		if !c.staged[key] {
			return fmt.Errorf("unit %d of slot %d is not staged", key.unit, key.slot)
		}
	}
	if len(required) != len(c.staged) {
		return fmt.Errorf("%d units are staged where %d are wanted", len(c.staged), len(required))
	}
	return nil
}

// definition returns what a staged unit must equal under To.
func (c *prover) definition(position Position, row Row, patched map[int32]bool) (vector, error) {
	p := c.plan
	home, units := Position(row.Slot), p.Layout.Rows
	if p.Planner == PlannerCopyPool || p.Planner == plannerRelocate {
		home += Position(p.Layout.Columns + p.Parities + 1)
	}
	if row.Slot >= p.Layout.Columns {
		units = len(c.to.Stripes)
	}
	if row.Slot < 0 || row.Slot >= p.Layout.Columns+p.To.M || p.Layout.IsEmpty(row.Slot) || row.Unit < 0 || row.Unit >= units || position != home {
		return nil, fmt.Errorf("position %d stages unit %d of slot %d, which is not its own", position, row.Unit, row.Slot)
	}
	shift := int32(p.Layout.Cells())
	if row.Slot < p.Layout.Columns {
		cell := int32(p.Layout.CellIndex(row.Unit, row.Slot))
		c.add(cell, 1)
		if patched[cell] {
			c.add(cell+shift, 1)
		}
		return c.collect(), nil
	}
	cells := c.to.Stripes[row.Unit]
	c.addParity(row.Slot-p.Layout.Columns, cells, 0, 1)
	for at, cell := range cells {
		if patched[cell] {
			c.addParity(row.Slot-p.Layout.Columns, cells[at:at+1], shift, 1)
		}
	}
	return c.collect(), nil
}

// required lists the units the operation must stage. What an update patches and what a repair rebuilds is read off the
// plan itself: the patched cells, and the slots with staged units, which must then be whole and not read by anyone.
func (c *prover) required(patched map[int32]bool) ([]unitKey, error) {
	p := c.plan
	columns := p.Layout.Columns
	var required []unitKey
	rows := func(first, end int) {
		for row := first; row < end; row++ {
			for unit := range c.to.Stripes {
				required = append(required, unitKey{columns + row, unit})
			}
		}
	}
	column := func(slot int) {
		for unit := range p.Layout.Rows {
			required = append(required, unitKey{slot, unit})
		}
	}
	switch p.Planner {
	case plannerUpdate:
		stripes := make(map[int32]bool)
		for cell := range patched {
			required = append(required, unitKey{int(cell) % columns, int(cell) / columns})
			stripes[c.to.StripeOf[cell]] = true
		}
		for stripe := range stripes {
			for row := range p.To.M {
				required = append(required, unitKey{columns + row, int(stripe)})
			}
		}
		cells := make([]int, 0, len(patched))
		for cell := range patched {
			cells = append(cells, int(cell))
		}
		required = append(required, gaps(cells, p.Layout, c.to, p.To.M)...)
	case plannerRepair, plannerRepairChain, plannerRepairTree, plannerInitiator:
		lost := make(map[int]bool)
		for key := range c.staged {
			lost[key.slot] = true
		}
		for slot := range lost {
			if slot < columns {
				column(slot)
			} else {
				rows(slot-columns, slot-columns+1)
			}
		}
		for _, program := range p.Programs {
			for _, input := range program.Inputs {
				if input.Kind == SourceBlock && lost[input.Slot] {
					return nil, fmt.Errorf("slot %d is both read and rebuilt", input.Slot)
				}
			}
		}
	case plannerRelocate:
		moved := make(map[int]bool)
		for key := range c.staged {
			moved[key.slot] = true
		}
		for slot := range moved {
			if slot < columns {
				column(slot)
			} else {
				rows(slot-columns, slot-columns+1)
			}
		}
	case plannerWiden:
		stripes := make(map[int32]bool)
		for slot := range columns {
			if p.Before.IsEmpty(slot) && !p.Layout.IsEmpty(slot) {
				column(slot)
				for row := range p.Layout.Rows {
					stripes[c.to.StripeOf[p.Layout.CellIndex(row, slot)]] = true
				}
			}
		}
		for stripe := range stripes {
			for row := range p.To.M {
				required = append(required, unitKey{columns + row, int(stripe)})
			}
		}
	case plannerNarrow:
		rows(0, p.To.M)
	case plannerSplice:
		for slot := range columns {
			if !p.Layout.IsEmpty(slot) {
				column(slot)
			}
		}
		rows(0, p.To.M)
	case PlannerCopyPool:
		if p.From != p.To {
			for slot := range columns {
				if !p.Layout.IsEmpty(slot) {
					column(slot)
				}
			}
			rows(0, p.To.M)
		}
	default:
		switch {
		case !p.KeepsStripes():
			rows(0, p.To.M)
		case p.To.M <= p.From.M:
		case p.Planner == PlannerRestripe:
			rows(p.From.M, p.To.M)
		default:
			rows(0, p.To.M)
		}
	}
	return required, nil
}

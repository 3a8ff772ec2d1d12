package group

import (
	"fmt"
	"sync"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/stripe"
)

// Code is a layout under one scheme, ready to encode: which cells form which stripe, and the encoder as one matrix of
// m*stripes rows over all cells of a group. Immutable.
type Code struct {
	Layout    *stripe.Layout
	Scheme    stripe.Scheme
	Partition *stripe.Partition
	encoder   *kernel.Matrix // output p*stripes+s is parity row p of stripe s; input is the cell index
}

// CodeCache keeps codes by ladder, mode, width and scheme. Classes are few and each has at most six schemes, so it needs
// no bound of its own.
type CodeCache struct {
	mutex sync.Mutex
	codes map[string]*Code
}

func (c *CodeCache) get(layout *stripe.Layout, scheme stripe.Scheme) (*Code, error) {
	key := fmt.Sprintf("%s|%s|%d|%s", layout.Ladder, layout.Mode, layout.Columns, scheme)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if found := c.codes[key]; found != nil {
		return found.over(layout), nil
	}
	partition, err := layout.Partition(scheme.K)
	if err != nil {
		return nil, err
	}
	stripes := len(partition.Stripes)
	var terms []kernel.Term
	for p := range scheme.M {
		for s, cells := range partition.Stripes {
			for _, cell := range cells {
				terms = append(terms, kernel.Term{
					Output: p*stripes + s, Input: int(cell), Coefficient: stripe.Coefficient(p, int(cell)%layout.Columns),
				})
			}
		}
	}
	made := &Code{Layout: layout.Whole(), Scheme: scheme, Partition: partition}
	if scheme.M > 0 {
		if made.encoder, err = kernel.Compile(scheme.M*stripes, layout.Cells(), terms); err != nil {
			return nil, fmt.Errorf("compiling the encoder of %s: %w", scheme, err)
		}
	}
	if c.codes == nil {
		c.codes = map[string]*Code{}
	}
	c.codes[key] = made
	return made.over(layout), nil
}

// over returns the code over a layout that is the same but for which columns are empty.
func (c *Code) over(layout *stripe.Layout) *Code {
	if c.Layout == layout {
		return c
	}
	made := *c
	made.Layout = layout
	return &made
}

// CodeOf returns the code a group is under.
func (g *Groups) CodeOf(group *catalog.Group) (*Code, error) {
	if group.IsDissolved() {
		return nil, fmt.Errorf("group %s was dissolved into columns of other groups, and has no code of its own", group.ID)
	}
	scheme, err := stripe.ParseScheme(group.Scheme)
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", group.ID, err)
	}
	layout, err := stripe.ParseLayout(group.LayoutVersion, group.Ladder, group.Mode, group.Columns)
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", group.ID, err)
	}
	code, err := g.codes.get(layout.Without(group.Empty()), scheme)
	if err != nil {
		return nil, fmt.Errorf("group %s: %w", group.ID, err)
	}
	return code, nil
}

// prove checks what was staged by the fingerprints of its units, and counts what is found wrong.
func (g *Groups) prove(code *Code, units [][]block.Fingerprint) error {
	err := code.checkUnits(units)
	if err == nil {
		err = code.checkParity(units)
	}
	if err != nil {
		g.Unproven.Add(1)
	}
	return err
}

// checkParity verifies the parity equations on fingerprints alone: the fingerprint of every parity block must be the same
// combination of its cells' fingerprints as the block is of the cells. units[slot][unit] are the fingerprints of what the
// nodes hold.
func (c *Code) checkParity(units [][]block.Fingerprint) error {
	for p := range c.Scheme.M {
		for s, want := range c.parityPrints(units, p) {
			if units[c.Layout.Columns+p][s] != want {
				return fmt.Errorf("parity row %d of stripe %d does not match its %d cells by fingerprint", p, s, c.Scheme.K)
			}
		}
	}
	return nil
}

// parityPrints returns the fingerprints that the blocks of a parity row must have by those of the cells.
func (c *Code) parityPrints(units [][]block.Fingerprint, row int) []block.Fingerprint {
	expected := make([]block.Fingerprint, c.Stripes())
	coefficients := make([]byte, c.Scheme.K)
	prints := make([]block.Fingerprint, c.Scheme.K)
	for s, cells := range c.Partition.Stripes {
		for i, cell := range cells {
			column := int(cell) % c.Layout.Columns
			coefficients[i], prints[i] = stripe.Coefficient(row, column), units[column][int(cell)/c.Layout.Columns]
		}
		expected[s] = kernel.Combine(coefficients, prints)
	}
	return expected
}

// Unscale turns a copy read from a parity row under replication into the cell of a column, in place.
func (c *Code) Unscale(row, column int, data []byte) error {
	coefficient := stripe.Coefficient(row, column)
	if coefficient == 1 {
		return nil
	}
	matrix, err := kernel.Compile(1, 1, []kernel.Term{{Coefficient: stripe.Inverse(coefficient)}})
	if err != nil {
		return fmt.Errorf("compiling the inverse of a coefficient: %w", err)
	}
	plain := make([]byte, len(data))
	matrix.Apply([][]byte{plain}, [][]byte{data})
	copy(data, plain)
	return nil
}

// Stripes is how many stripes a group has.
func (c *Code) Stripes() int { return len(c.Partition.Stripes) }

// Stored is the number of units that are stored of a slot: all that it has, or none of an empty column.
func (c *Code) Stored(slot int) int {
	if c.Layout.IsEmpty(slot) {
		return 0
	}
	return c.Units(slot)
}

// addZeros gives empty columns the fingerprints of their units, which are those of zeros.
func (c *Code) addZeros(units [][]block.Fingerprint) {
	for slot := range units {
		if c.Layout.IsEmpty(slot) {
			units[slot] = make([]block.Fingerprint, c.Units(slot))
		}
	}
}

// Units is the number of units slot x has.
func (c *Code) Units(slot int) int {
	if slot < c.Layout.Columns {
		return c.Layout.Rows
	}
	return c.Stripes()
}

// Slots is how many columns and parity rows a group has.
func (c *Code) Slots() int { return c.Layout.Columns + c.Scheme.M }

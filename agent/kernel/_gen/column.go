package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// maxColumnRows is the most rows that multiples of one input are added to at once.
const maxColumnRows = 4

// column writes a function that adds multiples of one input, held in registers, to up to four rows:
//
//	for every row r: out[rows[r]][from:from+bytes] += coefficient(r)*in[:bytes]
//
// With onesRow the coefficient of the first row is one, and the one given is not looked at. With delta, what is added is
// the multiple of the sum of two inputs, before and after. Everything but the loop over the bytes is spelled out, which
// is a quarter faster than a loop over the rows.
type column struct {
	set     instructions
	rows    int
	onesRow bool
	delta   bool

	in, after, rest reg.GPVirtual
	outputs         []reg.GPVirtual
	coefficientsAt  reg.GPVirtual
	kept            []operand // coefficients of all rows, if there are registers for them
}

func (c column) write() {
	name, inputs := fmt.Sprintf("column%d", c.rows), "in *byte"
	if c.delta {
		name, inputs = fmt.Sprintf("delta%d", c.rows), "before, after *byte"
	}
	if c.onesRow {
		name += "Ones"
	}
	TEXT(name+c.set.suffix(), NOSPLIT, fmt.Sprintf("func(out *[]byte, rows *uint32, coefficients *byte, %s, from, bytes int)", inputs))
	Pragma("noescape")
	out := Load(Param("out"), GP64()).(reg.GPVirtual)
	offsets := Load(Param("rows"), GP64()).(reg.GPVirtual)
	from := Load(Param("from"), GP64()).(reg.GPVirtual)
	for r := range c.rows {
		at := GP64()
		MOVL(Mem{Base: offsets, Disp: 4 * r}, at.As32())
		MOVQ(Mem{Base: out, Index: at, Scale: 1}, at)
		ADDQ(from, at)
		c.outputs = append(c.outputs, at)
	}
	c.coefficientsAt = Load(Param("coefficients"), GP64()).(reg.GPVirtual)
	if c.delta {
		c.in = Load(Param("before"), GP64()).(reg.GPVirtual)
		c.after = Load(Param("after"), GP64()).(reg.GPVirtual)
	} else {
		c.in = Load(Param("in"), GP64()).(reg.GPVirtual)
	}
	c.rest = Load(Param("bytes"), GP64()).(reg.GPVirtual)
	if c.set.keepsCoefficients() {
		for r := range c.rows {
			c.kept = append(c.kept, nil)
			if !c.isOnes(r) {
				c.kept[r] = c.coefficient(r)
			}
		}
	}

	c.group(c.set.columnVectors(c.rows))
	c.group(1)
	if c.set.width() == 64 {
		TESTQ(c.rest, c.rest)
		JZ(LabelRef("end"))
		c.step(1, tailMask(c.rest))
		Label("end")
	}
	VZEROUPPER()
	RET()
}

func (c column) isOnes(row int) bool { return row == 0 && c.onesRow }

func (c column) coefficient(row int) operand {
	return c.set.coefficient(Mem{Base: c.coefficientsAt, Disp: row * c.set.coefficientBytes()})
}

// group writes the loop for so many vectors at a time. The addresses are plain registers that move on: an index register
// would keep loads from being part of the operations.
func (c column) group(vectors int) {
	bytes := vectors * c.set.width()
	next := fmt.Sprintf("by%d", vectors)
	SUBQ(I32(int32(bytes)), c.rest)
	JL(LabelRef(next + "Done"))
	Label(next)
	c.step(vectors, nil)
	for _, pointer := range append([]reg.GPVirtual{c.in, c.after}, c.outputs...) {
		if pointer != nil {
			SUBQ(I32(int32(-bytes)), pointer)
		}
	}
	SUBQ(I32(int32(bytes)), c.rest)
	JGE(LabelRef(next))
	Label(next + "Done")
	ADDQ(I32(int32(bytes)), c.rest)
}

func (c column) step(vectors int, mask reg.OpmaskVirtual) {
	if c.rows == 1 && c.onesRow {
		c.stepSum(vectors, mask)
		return
	}
	var values []reg.VecVirtual
	var factors []operand
	for v := range vectors {
		value := c.load(c.in, v, mask)
		if c.delta {
			c.set.addFrom(value, c.at(c.after, v), mask)
		}
		values = append(values, value)
		factors = append(factors, c.set.prepare(value))
	}
	for r, output := range c.outputs {
		var coefficient operand
		switch {
		case c.isOnes(r):
		case c.kept != nil:
			coefficient = c.kept[r]
		default:
			coefficient = c.coefficient(r)
		}
		var sums []reg.VecVirtual
		for v := range vectors {
			sum := c.load(output, v, mask)
			if c.isOnes(r) {
				c.set.add(sum, values[v])
			} else {
				c.set.add(sum, c.set.multiply(factors[v], coefficient)...)
			}
			sums = append(sums, sum)
		}
		for v, sum := range sums {
			c.set.store(sum, c.at(output, v), mask)
		}
	}
}

// stepSum is a step of the only row, if its coefficient is one.
func (c column) stepSum(vectors int, mask reg.OpmaskVirtual) {
	var sums []reg.VecVirtual
	for v := range vectors {
		sum := c.load(c.outputs[0], v, mask)
		if c.delta {
			c.set.add(sum, c.load(c.in, v, mask), c.load(c.after, v, mask))
		} else {
			c.set.addFrom(sum, c.at(c.in, v), mask)
		}
		sums = append(sums, sum)
	}
	for v, sum := range sums {
		c.set.store(sum, c.at(c.outputs[0], v), mask)
	}
}

func (c column) at(base reg.GPVirtual, vector int) Mem {
	return Mem{Base: base, Disp: vector * c.set.width()}
}

func (c column) load(base reg.GPVirtual, vector int, mask reg.OpmaskVirtual) reg.VecVirtual {
	value := c.set.vector()
	c.set.load(c.at(base, vector), mask, value)
	return value
}

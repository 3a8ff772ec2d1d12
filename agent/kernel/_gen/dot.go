package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sliceBytes is the size of a slice in memory, of which the first word is the address of its elements.
const sliceBytes = 24

// prefetchBytes is how far ahead the streaming products read.
const prefetchBytes = 1024

// dot writes a function that makes up to six rows of a product at once, the sums held in registers:
//
//	for every row r: out[rows[r]][from:to] = or += sum over ones columns c of in[c][from:to]
//	                                        + sum over other columns c of coefficient(r, c)*in[c][from:to]
//
// rows and columns are offsets into the arrays of slices; the columns whose coefficients are all one come first. The
// coefficients are in the order they are needed: for an odd number of other columns those of the first one, then for
// every two columns the two of each row. With onesRow the coefficients of the first row are all one and left out.
type dot struct {
	set     instructions
	rows    int
	onesRow bool
	stream  bool

	out, in, rowOffsets, columns, coefficients reg.GPVirtual
	from, to                                   reg.GPVirtual
	columnAt, coefficientAt                    reg.GPVirtual
	prefix                                     string
}

func (d dot) name() string {
	name := fmt.Sprintf("dot%d", d.rows)
	if d.onesRow {
		name += "Ones"
	}
	name += d.set.suffix()
	if d.stream {
		name += "Stream"
	}
	return name
}

func (d dot) write() {
	TEXT(d.name(), NOSPLIT, "func(out, in *[]byte, rows, columns *uint32, ones, others int, coefficients *byte, from, to int, accumulate bool)")
	Pragma("noescape")
	d.out = Load(Param("out"), GP64()).(reg.GPVirtual)
	d.in = Load(Param("in"), GP64()).(reg.GPVirtual)
	d.rowOffsets = Load(Param("rows"), GP64()).(reg.GPVirtual)
	d.columns = Load(Param("columns"), GP64()).(reg.GPVirtual)
	d.coefficients = Load(Param("coefficients"), GP64()).(reg.GPVirtual)
	d.from = Load(Param("from"), GP64()).(reg.GPVirtual)
	d.to = Load(Param("to"), GP64()).(reg.GPVirtual)
	d.columnAt, d.coefficientAt = GP64(), GP64()

	many := d.set.vectors(d.rows)
	d.group(many)
	if many > 1 {
		d.group(1)
	}
	if d.set.width() == 64 {
		d.tail()
	}
	if d.stream {
		SFENCE()
	}
	VZEROUPPER()
	RET()
}

// group writes the loop over positions for so many vectors at a time.
func (d dot) group(vectors int) {
	d.prefix = fmt.Sprintf("by%d", vectors)
	bytes := vectors * d.set.width()
	next, done := d.prefix, d.prefix+"Done"
	SUBQ(I32(int32(bytes)), d.to) // now the last position at which a group fits
	Label(next)
	CMPQ(d.from, d.to)
	JG(LabelRef(done))
	d.step(vectors, nil)
	ADDQ(I32(int32(bytes)), d.from)
	JMP(LabelRef(next))
	Label(done)
	ADDQ(I32(int32(bytes)), d.to)
}

// tail writes the last vector, which is not whole.
func (d dot) tail() {
	d.prefix = "tail"
	rest := GP64()
	MOVQ(d.to, rest)
	SUBQ(d.from, rest)
	JLE(LabelRef("end"))
	d.stream = false
	d.step(1, tailMask(rest))
	Label("end")
}

// tailMask selects so many bytes, fewer than 64.
func tailMask(bytes reg.GPVirtual) reg.OpmaskVirtual {
	bits, mask := GP64(), K()
	MOVQ(I32(-1), bits)
	BZHIQ(bytes, bits, bits)
	KMOVQ(bits, mask)
	return mask
}

// step makes the rows at one position.
func (d dot) step(vectors int, mask reg.OpmaskVirtual) {
	sums := make([][]reg.VecVirtual, d.rows)
	for r := range sums {
		for range vectors {
			sums[r] = append(sums[r], d.set.vector())
		}
	}
	MOVQ(d.columns, d.columnAt)
	MOVQ(d.coefficients, d.coefficientAt)
	count := GP64()
	Load(Param("ones"), count)
	accumulate := GP8()
	Load(Param("accumulate"), accumulate)
	TESTB(accumulate, accumulate)
	if vectors > 1 {
		JNZ(d.label("Accumulate"))
		d.start(sums, count, mask)
		Label(d.prefix + "Accumulate")
	} else { // the rest of the blocks is short: begin with zero and save the code of a first column
		JNZ(d.label("Accumulate"))
		for r := range sums {
			d.set.zero(sums[r][0])
		}
		JMP(d.label("Sums"))
		Label(d.prefix + "Accumulate")
	}
	for r := range sums {
		at := d.row(r)
		for v := range vectors {
			d.set.load(at.Offset(v*d.set.width()), mask, sums[r][v])
		}
	}
	Label(d.prefix + "Sums")
	SHRQ(Imm(1), count)
	JCC(d.label("OnesPairs"))
	d.addOnes(sums, 1, mask, false)
	Label(d.prefix + "OnesPairs")
	d.pairs("Ones", count, func() { d.addOnes(sums, 2, mask, false) })

	Load(Param("others"), count)
	SHRQ(Imm(1), count)
	JCC(d.label("OthersPairs"))
	d.addOthers(sums, 1, mask, false)
	Label(d.prefix + "OthersPairs")
	d.pairs("Others", count, func() { d.addOthers(sums, 2, mask, false) })

	for r := range sums {
		at := d.row(r)
		for v := range vectors {
			if d.stream {
				d.set.storeStream(sums[r][v], at.Offset(v*d.set.width()))
			} else {
				d.set.store(sums[r][v], at.Offset(v*d.set.width()), mask)
			}
		}
	}
}

// start makes the sums of the first one or two columns and goes on where the following pairs of that kind are added.
func (d dot) start(sums [][]reg.VecVirtual, count reg.GPVirtual, mask reg.OpmaskVirtual) {
	TESTQ(count, count)
	JZ(d.label("StartOthers"))
	SHRQ(Imm(1), count)
	JCC(d.label("StartOnesPair"))
	d.addOnes(sums, 1, mask, true)
	JMP(d.label("OnesPairs"))
	Label(d.prefix + "StartOnesPair")
	d.addOnes(sums, 2, mask, true)
	DECQ(count)
	JMP(d.label("OnesPairs"))

	Label(d.prefix + "StartOthers")
	Load(Param("others"), count)
	SHRQ(Imm(1), count)
	JCC(d.label("StartOthersPair"))
	d.addOthers(sums, 1, mask, true)
	JMP(d.label("OthersPairs"))
	Label(d.prefix + "StartOthersPair")
	d.addOthers(sums, 2, mask, true)
	DECQ(count)
	JMP(d.label("OthersPairs"))
}

func (d dot) label(name string) LabelRef { return LabelRef(d.prefix + name) }

// pairs writes a loop that takes so many pairs of columns.
func (d dot) pairs(kind string, count reg.GPVirtual, add func()) {
	TESTQ(count, count)
	JZ(d.label(kind + "Done"))
	Label(d.prefix + kind + "Next")
	add()
	DECQ(count)
	JNZ(d.label(kind + "Next"))
	Label(d.prefix + kind + "Done")
}

// addOnes adds columns to all rows, or begins the sums with them.
func (d dot) addOnes(sums [][]reg.VecVirtual, columns int, mask reg.OpmaskVirtual, begin bool) {
	places := d.columnPlaces(columns)
	for v := range sums[0] {
		var values []reg.VecVirtual
		for _, at := range places {
			values = append(values, d.load(at, v, mask))
		}
		for r := range sums {
			d.sum(sums[r][v], values, begin)
		}
	}
}

func (d dot) sum(sum reg.VecVirtual, terms []reg.VecVirtual, begin bool) {
	if begin {
		d.set.set(sum, terms...)
	} else {
		d.set.add(sum, terms...)
	}
}

// addOthers adds multiples of columns to the rows, or begins the sums with them.
func (d dot) addOthers(sums [][]reg.VecVirtual, columns int, mask reg.OpmaskVirtual, begin bool) {
	places := d.columnPlaces(columns)
	if d.set.addsTwo() {
		d.addProducts(sums, places, 0, columns, mask, begin)
	} else {
		for c := range places {
			d.addProducts(sums, places[c:c+1], c, columns, mask, begin && c == 0)
		}
	}
	ADDQ(I32(int32((d.rows-d.firstMultiplied())*columns*d.set.coefficientBytes())), d.coefficientAt)
}

// addProducts adds multiples of the columns at places, which begin at column first of those whose coefficients come
// next.
func (d dot) addProducts(sums [][]reg.VecVirtual, places []Mem, first, columns int, mask reg.OpmaskVirtual, begin bool) {
	var coefficients [][]operand // by row, then by column
	for r := d.firstMultiplied(); r < d.rows && d.set.keepsCoefficients(); r++ {
		coefficients = append(coefficients, d.coefficientsOf(r, len(places), first, columns))
	}
	factors := make([][]operand, len(sums[0])) // by vector, then by column
	for v := range factors {
		var values []reg.VecVirtual
		for _, at := range places {
			value := d.load(at, v, mask)
			values = append(values, value)
			factors[v] = append(factors[v], d.set.prepare(value))
		}
		if d.onesRow {
			d.sum(sums[0][v], values, begin)
		}
		for i, of := range coefficients {
			d.sum(sums[d.firstMultiplied()+i][v], d.terms(factors[v], of), begin)
		}
	}
	for r := d.firstMultiplied(); r < d.rows && !d.set.keepsCoefficients(); r++ {
		of := d.coefficientsOf(r, len(places), first, columns)
		for v := range factors {
			d.sum(sums[r][v], d.terms(factors[v], of), begin)
		}
	}
}

func (d dot) terms(factors, coefficients []operand) (terms []reg.VecVirtual) {
	for c := range factors {
		terms = append(terms, d.set.multiply(factors[c], coefficients[c])...)
	}
	return terms
}

// coefficientsOf loads the coefficients of a row for some of the next columns.
func (d dot) coefficientsOf(row, places, first, columns int) (coefficients []operand) {
	for c := range places {
		at := (row-d.firstMultiplied())*columns + first + c
		coefficients = append(coefficients, d.set.coefficient(Mem{Base: d.coefficientAt, Disp: at * d.set.coefficientBytes()}))
	}
	return coefficients
}

// firstMultiplied is the first row that has coefficients.
func (d dot) firstMultiplied() int {
	if d.onesRow {
		return 1
	}
	return 0
}

// columnPlaces returns where the next columns are at the position.
func (d dot) columnPlaces(columns int) (places []Mem) {
	for c := range columns {
		at := GP64()
		MOVL(Mem{Base: d.columnAt, Disp: 4 * c}, at.As32())
		MOVQ(Mem{Base: d.in, Index: at, Scale: 1}, at)
		places = append(places, Mem{Base: at, Index: d.from, Scale: 1})
	}
	ADDQ(I32(int32(4*columns)), d.columnAt)
	return places
}

func (d dot) load(column Mem, vector int, mask reg.OpmaskVirtual) reg.VecVirtual {
	m := column.Offset(vector * d.set.width())
	if d.stream {
		PREFETCHT0(m.Offset(prefetchBytes))
	}
	value := d.set.vector()
	d.set.load(m, mask, value)
	return value
}

// row returns the place of a row of the output.
func (d dot) row(r int) Mem {
	at := GP64()
	MOVL(Mem{Base: d.rowOffsets, Disp: 4 * r}, at.As32())
	MOVQ(Mem{Base: d.out, Index: at, Scale: 1}, at)
	return Mem{Base: at, Index: d.from, Scale: 1}
}

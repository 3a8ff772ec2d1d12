package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"
)

// instructions is what an instruction set offers the kernels. A vector is the register width; a value that takes part
// in products is prepared once and then multiplied by any number of coefficients.
type instructions interface {
	suffix() string
	width() int // bytes of a vector
	maxRows() int
	// vectors is how many vectors of every row are kept in registers by a product of so many rows.
	vectors(rows int) int
	columnVectors(rows int) int // the same for one column that is added to rows
	keepsCoefficients() bool    // has registers for the coefficients of all rows at once
	addsTwo() bool              // adds two terms at once
	streams() bool              // has stores that bypass the cache
	folds() bool                // has the fingerprint
	// coefficientBytes is the size of a coefficient in the form the products take it.
	coefficientBytes() int

	vector() reg.VecVirtual
	zero(v reg.VecVirtual)
	// load reads a vector; masked, the bytes beyond the end read as zero and are not touched.
	load(m Mem, mask reg.OpmaskVirtual, v reg.VecVirtual)
	// addFrom is v += what is at m.
	addFrom(v reg.VecVirtual, m Mem, mask reg.OpmaskVirtual)
	store(v reg.VecVirtual, m Mem, mask reg.OpmaskVirtual)
	storeStream(v reg.VecVirtual, m Mem)
	// set is sum = the terms, add is sum += the terms, of which there are one or two.
	set(sum reg.VecVirtual, terms ...reg.VecVirtual)
	add(sum reg.VecVirtual, terms ...reg.VecVirtual)
	prepare(v reg.VecVirtual) operand
	coefficient(m Mem) operand
	multiply(v, coefficient operand) []reg.VecVirtual // terms of a sum
}

// operand is a value in one register, or split over two.
type operand []reg.VecVirtual

// avx512 has one 8x8 bit matrix product for every byte of 64 in an instruction (GFNI), and three-operand logic.
type avx512 struct{}

func (avx512) suffix() string { return "AVX512" }
func (avx512) width() int     { return 64 }
func (avx512) maxRows() int   { return maxRows }
func (avx512) addsTwo() bool  { return true }

func (avx512) keepsCoefficients() bool { return true }
func (avx512) streams() bool           { return true }
func (avx512) folds() bool             { return true }
func (avx512) coefficientBytes() int   { return 8 }

func (avx512) vectors(rows int) int {
	switch {
	case rows <= 2:
		return 8
	case rows <= 4:
		return 4
	default:
		return 2
	}
}

func (avx512) columnVectors(rows int) int {
	if rows == 1 {
		return 8
	}
	return 4
}

func (avx512) vector() reg.VecVirtual { return ZMM() }

func (avx512) zero(z reg.VecVirtual) {
	instruction, err := x86.VPXORQ(z, z, z)
	if err != nil {
		panic(err) // invariant: the operands are registers
	}
	instruction.CancellingInputs = true // avo knows it of the shorter forms only
	Instruction(instruction)
}

func (avx512) load(m Mem, mask reg.OpmaskVirtual, z reg.VecVirtual) {
	if mask == nil {
		VMOVDQU64(m, z)
	} else {
		VMOVDQU8_Z(m, mask, z)
	}
}

func (a avx512) addFrom(v reg.VecVirtual, m Mem, mask reg.OpmaskVirtual) {
	if mask == nil {
		VPXORQ(m, v, v)
		return
	}
	term := ZMM()
	a.load(m, mask, term)
	a.add(v, term)
}

func (avx512) store(v reg.VecVirtual, m Mem, mask reg.OpmaskVirtual) {
	if mask == nil {
		VMOVDQU64(v, m)
	} else {
		VMOVDQU8(v, mask, m)
	}
}

func (avx512) storeStream(v reg.VecVirtual, m Mem) { VMOVNTDQ(v, m) }

func (avx512) set(sum reg.VecVirtual, terms ...reg.VecVirtual) {
	if len(terms) == 2 {
		VPXORQ(terms[0], terms[1], sum)
		return
	}
	VMOVDQA64(terms[0], sum)
}

func (avx512) add(sum reg.VecVirtual, terms ...reg.VecVirtual) {
	if len(terms) == 2 {
		VPTERNLOGQ(Imm(0x96), terms[0], terms[1], sum)
		return
	}
	VPXORQ(terms[0], sum, sum)
}

func (avx512) prepare(v reg.VecVirtual) operand { return operand{v} }

func (avx512) coefficient(m Mem) operand {
	z := ZMM()
	VPBROADCASTQ(m, z)
	return operand{z}
}

func (avx512) multiply(v, coefficient operand) []reg.VecVirtual {
	z := ZMM()
	VGF2P8AFFINEQB(Imm(0), coefficient[0], v[0], z)
	return []reg.VecVirtual{z}
}

// avx2 multiplies by bit matrices where there is GFNI, else by two look-ups in tables of 16 (Plank, Greenan and Miller,
// FAST 2013).
type avx2 struct{ affine bool }

func (a avx2) suffix() string {
	if a.affine {
		return "AVX2GFNI"
	}
	return "AVX2"
}

func (avx2) width() int              { return 32 }
func (avx2) addsTwo() bool           { return false }
func (avx2) keepsCoefficients() bool { return false }
func (a avx2) columnVectors(int) int { return a.vectors(1) }
func (avx2) streams() bool           { return false }
func (avx2) folds() bool             { return false }

func (a avx2) maxRows() int {
	if a.affine {
		return maxRows
	}
	return 4
}

func (a avx2) coefficientBytes() int {
	if a.affine {
		return 8
	}
	return 32
}

func (a avx2) vectors(rows int) int {
	switch {
	case rows == 1 && a.affine:
		return 4
	case rows <= 3 || a.affine:
		return 2
	default:
		return 1
	}
}

func (avx2) vector() reg.VecVirtual { return YMM() }

func (avx2) zero(y reg.VecVirtual) { VPXOR(y, y, y) }

func (avx2) load(m Mem, _ reg.OpmaskVirtual, y reg.VecVirtual) { VMOVDQU(m, y) }

func (a avx2) set(sum reg.VecVirtual, terms ...reg.VecVirtual) {
	if len(terms) == 1 {
		VMOVDQA(terms[0], sum)
		return
	}
	VPXOR(terms[0], terms[1], sum)
	a.add(sum, terms[2:]...)
}

func (avx2) addFrom(v reg.VecVirtual, m Mem, _ reg.OpmaskVirtual) { VPXOR(m, v, v) }

func (avx2) store(v reg.VecVirtual, m Mem, _ reg.OpmaskVirtual) { VMOVDQU(v, m) }

func (avx2) storeStream(reg.VecVirtual, Mem) {
	panic("no streaming stores") // invariant: streams is false
}

func (avx2) add(sum reg.VecVirtual, terms ...reg.VecVirtual) {
	for _, term := range terms {
		VPXOR(term, sum, sum)
	}
}

func (a avx2) prepare(v reg.VecVirtual) operand {
	if a.affine {
		return operand{v}
	}
	nibbles, high := YMM(), YMM()
	VPBROADCASTB(nibbleMask(), nibbles)
	VPSRLQ(Imm(4), v, high)
	VPAND(nibbles, high, high)
	low := YMM()
	VPAND(nibbles, v, low)
	return operand{low, high}
}

var nibbleConstant *Mem

// nibbleMask is the byte 0x0f in memory.
func nibbleMask() Mem {
	if nibbleConstant == nil {
		m := GLOBL("nibbleMask", 8|16) // RODATA and NOPTR
		DATA(0, U8(0x0f))
		nibbleConstant = &m
	}
	return *nibbleConstant
}

func (a avx2) coefficient(m Mem) operand {
	if a.affine {
		y := YMM()
		VPBROADCASTQ(m, y)
		return operand{y}
	}
	low, high := YMM(), YMM()
	VBROADCASTI128(m, low)
	VBROADCASTI128(m.Offset(16), high)
	return operand{low, high}
}

func (a avx2) multiply(v, coefficient operand) []reg.VecVirtual {
	if a.affine {
		y := YMM()
		VGF2P8AFFINEQB(Imm(0), coefficient[0], v[0], y)
		return []reg.VecVirtual{y}
	}
	low, high := YMM(), YMM()
	VPSHUFB(v[0], coefficient[0], low)
	VPSHUFB(v[1], coefficient[1], high)
	return []reg.VecVirtual{low, high}
}

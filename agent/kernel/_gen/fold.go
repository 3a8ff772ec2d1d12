package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	// foldBlockBytes is what a fold takes at a time.
	foldBlockBytes = 128
	// foldBlocks is how many blocks are summed before the state moves on.
	foldBlocks = 64
	// foldConstantBytes is the size of one entry of the table of constants.
	foldConstantBytes = 32
)

// fold writes the folding of the fingerprint. Data is a polynomial over GF(2^8) whose first byte has the highest degree.
// The remainder modulo a polynomial over GF(2) is taken of each of its eight bit planes alone, with carry-less products
// of 64 bits. The state is the planes of a polynomial of 256 bytes, as four registers of eight planes of 64 bits.
func fold() {
	planes := bytes("foldPlanes", func(i int) byte { return byte(8*(7-i%8) + i/8) })
	rows := bytes("foldRows", func(i int) byte { return byte(8*(7-i%8) + (7 - i/8)) })
	bit := bytes("foldBit", func(i int) byte { return 1 << (i % 8) })
	bitReversed := bytes("foldBitReversed", func(i int) byte { return 0x80 >> (i % 8) })
	writeFold(planes, bit)
	writeUnfold(rows, bitReversed)
}

// bytes defines 64 bytes of read-only data.
func bytes(name string, value func(i int) byte) Mem {
	m := GLOBL(name, 8|16) // RODATA and NOPTR
	for i := range 64 {
		DATA(i, U8(value(i)))
	}
	return m
}

// folder is the registers of a fold.
type folder struct {
	planes, bit reg.VecVirtual
	data        reg.GPVirtual
	constants   reg.GPVirtual // entry of the next block, plus one
	sums        [2][3]reg.VecVirtual
}

func writeFold(planes, bit Mem) {
	TEXT("foldAVX512", NOSPLIT, "func(state *[256]byte, constants, data *byte, blocks int)")
	Pragma("noescape")
	Doc("foldAVX512 makes state the planes of state*w^(128*blocks) + data.")
	state := Load(Param("state"), GP64()).(reg.GPVirtual)
	table := Load(Param("constants"), GP64()).(reg.GPVirtual)
	f := folder{planes: ZMM(), bit: ZMM(), constants: GP64()}
	f.data = Load(Param("data"), GP64()).(reg.GPVirtual)
	blocks := Load(Param("blocks"), GP64()).(reg.GPVirtual)
	VMOVDQU64(planes, f.planes)
	VMOVDQU64(bit, f.bit)
	f.makeSums()
	words := f.loadWords(state)

	Label("chunk")
	// The first chunk takes what exceeds a multiple of the chunk size, the others are whole.
	count := GP64()
	MOVQ(blocks, count)
	DECQ(count)
	ANDQ(Imm(foldBlocks-1), count)
	INCQ(count)
	SUBQ(count, blocks)
	MOVQ(count, f.constants)
	SHLQ(Imm(5), f.constants)
	ADDQ(table, f.constants)
	f.set(f.products(words[3], words[2], Mem{Base: f.constants, Disp: foldConstantBytes}))
	f.add(f.products(words[1], words[0], Mem{Base: f.constants}))
	SHRQ(Imm(1), count)
	JCC(LabelRef("pairs"))
	f.add(f.next())
	TESTQ(count, count)
	JZ(LabelRef("chunkDone"))
	Label("pairs")
	f.add(f.next(), f.next())
	DECQ(count)
	JNZ(LabelRef("pairs"))
	Label("chunkDone")
	f.collect(words)
	TESTQ(blocks, blocks)
	JNZ(LabelRef("chunk"))

	for i, word := range words {
		VMOVDQU64(word, Mem{Base: state, Disp: 64 * i})
	}
	VZEROUPPER()
	RET()
}

// terms are the parts of a product of 128 by 128 bits after Karatsuba, of the even planes and of the odd ones: low by
// low, the sums of both, and high by high.
type terms [2][3]reg.VecVirtual

// products multiplies a block, given as its high and its low word, with the constant at a place.
func (f *folder) products(high, low reg.VecVirtual, at Mem) (t terms) {
	constant, sum, both := ZMM(), ZMM(), ZMM()
	VBROADCASTI64X2(at, constant)
	VBROADCASTI64X2(at.Offset(16), sum)
	VPXORQ(high, low, both)
	for parity := range t {
		p := uint64(parity)
		for i := range t[parity] {
			t[parity][i] = ZMM()
		}
		VPCLMULQDQ(Imm(p), constant, low, t[parity][0])
		VPCLMULQDQ(Imm(p), sum, both, t[parity][1])
		VPCLMULQDQ(Imm(0x10|p), constant, high, t[parity][2])
	}
	return t
}

// next loads a block, sorts it into planes and multiplies it with its constant.
func (f *folder) next() terms {
	SUBQ(Imm(foldConstantBytes), f.constants)
	var words [2]reg.VecVirtual
	for i := range words {
		words[i] = ZMM()
		transposed := ZMM()
		VMOVDQU64(Mem{Base: f.data, Disp: 64 * i}, words[i])
		VGF2P8AFFINEQB(Imm(0), words[i], f.bit, transposed)
		VPERMB(transposed, f.planes, words[i])
	}
	SUBQ(I32(-foldBlockBytes), f.data)
	return f.products(words[0], words[1], Mem{Base: f.constants})
}

func (f *folder) set(t terms) {
	for parity := range t {
		for i := range t[parity] {
			VMOVDQA64(t[parity][i], f.sums[parity][i])
		}
	}
}

func (f *folder) add(ts ...terms) {
	for parity := range f.sums {
		for i, sum := range f.sums[parity] {
			if len(ts) == 2 {
				VPTERNLOGQ(Imm(0x96), ts[0][parity][i], ts[1][parity][i], sum)
			} else {
				VPXORQ(ts[0][parity][i], sum, sum)
			}
		}
	}
}

// collect puts the sums together as words.
func (f *folder) collect(words []reg.VecVirtual) {
	for parity := range f.sums {
		s := f.sums[parity]
		VPTERNLOGQ(Imm(0x96), s[0], s[2], s[1]) // what belongs in the middle
	}
	for i := range 3 {
		low, high := ZMM(), ZMM()
		VPUNPCKLQDQ(f.sums[1][i], f.sums[0][i], low)
		VPUNPCKHQDQ(f.sums[1][i], f.sums[0][i], high)
		if i == 0 {
			VMOVDQA64(low, words[i])
		} else {
			VPXORQ(low, words[i], words[i])
		}
		VMOVDQA64(high, words[i+1])
	}
}

func writeUnfold(rows, bitReversed Mem) {
	TEXT("unfoldAVX512", NOSPLIT, "func(state *[256]byte, constants *byte, data *[128]byte)")
	Pragma("noescape")
	Doc("unfoldAVX512 makes data the remainder of what state is the planes of, by Barrett's reduction: constants are the",
		"quotient of w^256 by the modulus and the modulus itself, both without their leading terms.")
	state := Load(Param("state"), GP64()).(reg.GPVirtual)
	f := folder{constants: Load(Param("constants"), GP64()).(reg.GPVirtual)}
	data := Load(Param("data"), GP64()).(reg.GPVirtual)
	order, bit := ZMM(), ZMM()
	VMOVDQU64(rows, order)
	VMOVDQU64(bitReversed, bit)
	words := f.loadWords(state)
	f.makeSums()
	product := []reg.VecVirtual{ZMM(), ZMM(), ZMM(), ZMM()}
	f.set(f.products(words[3], words[2], Mem{Base: f.constants}))
	f.collect(product)
	VPXORQ(product[2], words[2], words[2])
	VPXORQ(product[3], words[3], words[3])
	f.set(f.products(words[3], words[2], Mem{Base: f.constants, Disp: foldConstantBytes}))
	f.collect(product)
	for i := range 2 {
		word := words[1-i]
		VPXORQ(product[1-i], word, word)
		VPERMB(word, order, word)
		VGF2P8AFFINEQB(Imm(0), word, bit, word)
		VMOVDQU64(word, Mem{Base: data, Disp: 64 * i})
	}
	VZEROUPPER()
	RET()
}

// makeSums allocates the registers of the sums.
func (f *folder) makeSums() {
	for parity := range f.sums {
		for i := range f.sums[parity] {
			f.sums[parity][i] = ZMM()
		}
	}
}

// loadWords loads a state; the first word is that of the low end.
func (f *folder) loadWords(state reg.GPVirtual) (words []reg.VecVirtual) {
	for i := range 4 {
		words = append(words, ZMM())
		VMOVDQU64(Mem{Base: state, Disp: 64 * i}, words[i])
	}
	return words
}

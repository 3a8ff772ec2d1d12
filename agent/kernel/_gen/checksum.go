package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// checksumVectors is how many vectors the checksum keeps apart: enough to hide how long a carry-less product takes.
const checksumVectors = 4

// checksum writes the folding of CRC-32C. Data is a polynomial over GF(2); every 16 bytes of it are moved ahead, by as
// many bytes as are taken at a time, with two carry-less products of 64 bits, and added to what is there.
func checksum() {
	TEXT("checksumAVX512", NOSPLIT, "func(register uint32, constants *[4]uint64, data *byte, blocks int) uint32")
	Pragma("noescape")
	Doc("checksumAVX512 returns the register of the check after data of 256*blocks bytes, from that before it.")
	register := Load(Param("register"), GP32()).(reg.GPVirtual)
	constants := Load(Param("constants"), GP64()).(reg.GPVirtual)
	data := Load(Param("data"), GP64()).(reg.GPVirtual)
	blocks := Load(Param("blocks"), GP64()).(reg.GPVirtual)
	byBlock, byVector := ZMM(), ZMM()
	VBROADCASTI64X2(Mem{Base: constants}, byBlock)
	VBROADCASTI64X2(Mem{Base: constants, Disp: 16}, byVector)
	var sums []reg.VecVirtual
	for i := range checksumVectors {
		sums = append(sums, ZMM())
		VMOVDQU64(Mem{Base: data, Disp: 64 * i}, sums[i])
	}
	before := XMM()
	VMOVD(register, before)
	VPXORQ(before.AsZ(), sums[0], sums[0])
	DECQ(blocks)
	JZ(LabelRef("folded"))
	Label("block")
	SUBQ(I32(-64*checksumVectors), data)
	for i, sum := range sums {
		low, high := moved(sum, byBlock)
		VMOVDQU64(Mem{Base: data, Disp: 64 * i}, sum)
		VPTERNLOGQ(Imm(0x96), low, high, sum)
	}
	DECQ(blocks)
	JNZ(LabelRef("block"))
	Label("folded")
	for i, sum := range sums[1:] {
		low, high := moved(sums[i], byVector)
		VPTERNLOGQ(Imm(0x96), low, high, sum)
	}
	// What is left has the same remainder as data; the processor's instruction takes eight bytes of it at a time.
	rest := AllocLocal(64)
	VMOVDQU64(sums[checksumVectors-1], rest)
	VZEROUPPER()
	after := GP64()
	XORQ(after, after)
	for i := range 8 {
		CRC32Q(rest.Offset(8*i), after)
	}
	Store(after.As32(), ReturnIndex(0))
	RET()
}

// moved returns the two halves of a vector times the constants.
func moved(vector, constants reg.VecVirtual) (low, high reg.VecVirtual) {
	low, high = ZMM(), ZMM()
	VPCLMULQDQ(Imm(0x00), constants, vector, low)
	VPCLMULQDQ(Imm(0x11), constants, vector, high)
	return low, high
}

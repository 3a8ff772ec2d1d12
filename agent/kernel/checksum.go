package kernel

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	// checksumBlockBytes is what the assembly of the checksum takes at a time.
	checksumBlockBytes = 256
	// minChecksumBytes is from how many bytes on it is used, which then takes half as long as the standard library.
	minChecksumBytes = 512
)

// Checksum returns the CRC-32C of data.
func Checksum(data []byte) uint32 { return UpdateChecksum(0, data) }

// UpdateChecksum returns the CRC-32C of what checksum is of, followed by data.
func UpdateChecksum(checksum uint32, data []byte) uint32 {
	for chosen == avx512 && len(data) >= minChecksumBytes {
		now := data[:min(len(data), maxCallBytes)&^(checksumBlockBytes-1)]
		checksum = ^checksumAVX512(^checksum, &checksumConstants, &now[0], len(now)/checksumBlockBytes)
		data = data[len(now):]
	}
	return crc32.Update(checksum, castagnoli, data)
}

// ExtendChecksum returns the CRC-32C of data followed by so many zeros, from that of data. It takes a time logarithmic
// in the number of zeros.
//
// A zero byte multiplies the register of the check, a polynomial over GF(2), by x^8 modulo the polynomial of the CRC
// (as crc32_combine of zlib has it); the register is the complement of the checksum.
func ExtendChecksum(checksum uint32, zeros int) uint32 {
	register := ^checksum
	for i := 0; zeros > 0; i++ {
		if zeros&1 == 1 {
			register = multiplyModulo(zeroRuns[i], register)
		}
		zeros >>= 1
	}
	return ^register
}

// zeroRuns[i] is x^(8*2^i) modulo the polynomial of the CRC: what 2^i zero bytes multiply the register by.
var zeroRuns = func() (runs [63]uint32) {
	runs[0] = 1 << (31 - 8)
	for i := 1; i < len(runs); i++ {
		runs[i] = multiplyModulo(runs[i-1], runs[i-1])
	}
	return runs
}()

// multiplyModulo returns a*b modulo the polynomial of the CRC; in all three the highest bit is the coefficient of x^0.
func multiplyModulo(a, b uint32) (product uint32) {
	for bit := uint32(1) << 31; bit > 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		carry := b&1 != 0
		b >>= 1
		if carry {
			b ^= crc32.Castagnoli
		}
	}
	return product
}

// checksumConstants are the factors that move 16 bytes ahead, by a block of the assembly and by 64 bytes: each pair is for
// the first and for the last eight of the 16. Two words whose bits are reversed have a product that is shifted by one bit,
// for which the factors make up, and reach half a word beyond their remainder (Gopal and others, Fast CRC Computation for
// Generic Polynomials Using PCLMULQDQ Instruction, Intel 2009).
var checksumConstants = [4]uint64{
	checksumFactor(checksumBlockBytes + 4), checksumFactor(checksumBlockBytes - 4), checksumFactor(64 + 4), checksumFactor(64 - 4),
}

// checksumFactor returns x^(8*bytes) modulo the polynomial of the CRC as the assembly takes it.
func checksumFactor(bytes int) uint64 {
	const one = uint32(1) << 31 // as a register
	return uint64(^ExtendChecksum(^one, bytes)) << 1
}

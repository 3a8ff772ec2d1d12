package block

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns the CRC-32C of data.
func Checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

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

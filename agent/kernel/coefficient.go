package kernel

import "encoding/binary"

// The field GF(2^8) with reduction polynomial x^8 + x^4 + x^3 + x^2 + 1.
const fieldPolynomial = 0x11d

// products[a][b] is a*b.
var products = func() (table [256][256]byte) {
	for a := range table {
		for b := range table[a] {
			product := 0
			for bit := 7; bit >= 0; bit-- {
				product <<= 1
				if product&0x100 != 0 {
					product ^= fieldPolynomial
				}
				if b>>bit&1 == 1 {
					product ^= a
				}
			}
			table[a][b] = byte(product)
		}
	}
	return table
}()

// appendCoefficient appends a coefficient in the form in which the assembly of a path takes it.
func appendCoefficient(buffer []byte, p path, coefficient byte) []byte {
	if p == avx2 {
		return append(buffer, nibbles[coefficient][:]...)
	}
	return binary.LittleEndian.AppendUint64(buffer, bitMatrices[coefficient])
}

// coefficientBytes is the size of a coefficient in the form of a path.
func (p path) coefficientBytes() int {
	if p == avx2 {
		return 32
	}
	return 8
}

var bitMatrices = func() (matrices [256]uint64) {
	for c := range matrices {
		matrices[c] = bitMatrix(byte(c))
	}
	return matrices
}()

// nibbles[c] is the products of c with the 16 values of the low half of a byte, then with those of the high half.
var nibbles = func() (tables [256][32]byte) {
	for c := range tables {
		for nibble := range 16 {
			tables[c][nibble] = products[c][nibble]
			tables[c][16+nibble] = products[c][nibble<<4]
		}
	}
	return tables
}()

// bitMatrix returns multiplication by a coefficient as the 8x8 bit matrix of vgf2p8affineqb: bit i of the product is
// the parity of byte 7-i of the matrix and the factor.
func bitMatrix(coefficient byte) (matrix uint64) {
	for j := range 8 {
		column := products[coefficient][1<<j]
		for i := range 8 {
			matrix |= uint64(column>>i&1) << (8*(7-i) + j)
		}
	}
	return matrix
}

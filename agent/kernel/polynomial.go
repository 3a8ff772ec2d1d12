package kernel

import "encoding/binary"

// remainder is a polynomial in w over GF(2^8) of degree less than 16, as 16 bytes in memory whose first is the
// coefficient of w^15: data read as a polynomial has its first byte at the highest degree.
type remainder struct{ low, high uint64 }

// one is the polynomial 1.
var one = remainder{high: 1 << 56}

func remainderOf(b *[16]byte) remainder {
	return remainder{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
}

func (a remainder) bytes() (b [16]byte) {
	binary.LittleEndian.PutUint64(b[:8], a.low)
	binary.LittleEndian.PutUint64(b[8:], a.high)
	return b
}

func (a remainder) add(b remainder) remainder { return remainder{a.low ^ b.low, a.high ^ b.high} }

// scale returns c*a for c in GF(2^8).
func (a remainder) scale(c byte) remainder {
	row, b := &products[c], a.bytes()
	for i := range b {
		b[i] = row[b[i]]
	}
	return remainderOf(&b)
}

// modulus is an irreducible monic polynomial of degree 16 over GF(2^8), without its leading term.
type modulus struct {
	tail  remainder
	tails *[256]remainder // multiples of tail
}

func newModulus(tail remainder) modulus {
	m := modulus{tail, new([256]remainder)}
	for c := range m.tails {
		m.tails[c] = tail.scale(byte(c))
	}
	return m
}

// timesW returns w*a.
func (m modulus) timesW(a remainder) remainder {
	return remainder{a.low>>8 | a.high<<56, a.high >> 8}.add(m.tails[byte(a.low)])
}

// times returns a*b.
func (m modulus) times(a, b remainder) (product remainder) {
	for _, c := range b.bytes() { // Horner's rule
		product = m.timesW(product).add(a.scale(c))
	}
	return product
}

// minimal returns the minimal polynomial over GF(2^8) of an element that lies in no proper subfield: the product of
// w - c over its 16 conjugates c. The result is without its leading term.
func minimal(a element) remainder {
	polynomial := []element{{low: 1}} // by degree
	for range vectorBytes {
		next := append([]element{{}}, polynomial...) // times w
		for i, c := range polynomial {
			next[i] = next[i].add(c.times(a))
		}
		polynomial = next
		for range 8 {
			a = a.times(a)
		}
	}
	var tail [16]byte
	for i, c := range polynomial[:vectorBytes] {
		if c.high != 0 || c.low > 0xff {
			panic("kernel: the minimal polynomial of a key has a coefficient outside of GF(2^8)") // invariant: conjugation leaves it alone
		}
		tail[vectorBytes-1-i] = byte(c.low)
	}
	return remainderOf(&tail)
}

// binaryPolynomial is a polynomial over GF(2) of degree less than 128.
type binaryPolynomial struct{ low, high uint64 }

// binaryModulus returns the product of a modulus and its conjugates, whose coefficients are the squares, fourth powers
// and so on of its own: the minimal polynomial over GF(2) of the same element, of degree 128, without its leading term.
func binaryModulus(tail remainder) (m binaryPolynomial) {
	factor := append(reversed(tail.bytes()), 1) // by degree
	product := []byte{1}
	for range 8 {
		next := make([]byte, len(product)+len(factor)-1)
		for i, a := range product {
			for j, b := range factor {
				next[i+j] ^= products[a][b]
			}
		}
		product = next
		for i, c := range factor {
			factor[i] = products[c][c]
		}
	}
	for i, c := range product[:128] {
		switch {
		case c > 1:
			panic("kernel: the minimal polynomial of a key has a coefficient outside of GF(2)") // invariant: conjugation leaves it alone
		case i < 64:
			m.low |= uint64(c) << i
		default:
			m.high |= uint64(c) << (i - 64)
		}
	}
	return m
}

func reversed(b [16]byte) []byte {
	result := make([]byte, len(b), len(b)+1)
	for i, c := range b {
		result[len(b)-1-i] = c
	}
	return result
}

// timesW returns w*a modulo m.
func (a binaryPolynomial) timesW(m binaryPolynomial) binaryPolynomial {
	overflow := -(a.high >> 63)
	return binaryPolynomial{a.low<<1 ^ m.low&overflow, a.high<<1 ^ a.low>>63 ^ m.high&overflow}
}

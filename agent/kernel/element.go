package kernel

import "encoding/binary"

// element is a member of GF((2^8)^16) = GF(2^8)[z]/p(z) with p(z) = z^16 + z^3 + z + 6, irreducible over
// GF(2^8)/0x11d: byte i, counted from the low end of low, is the coefficient of z^i.
type element struct{ low, high uint64 }

// modulus is p without its leading term: the coefficients of 1, z, z^2, z^3.
var modulus = [4]byte{6, 1, 0, 1}

func elementOf(b *[16]byte) element {
	return element{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
}

func (a element) bytes() (b [16]byte) {
	binary.LittleEndian.PutUint64(b[:8], a.low)
	binary.LittleEndian.PutUint64(b[8:], a.high)
	return b
}

func (a element) add(b element) element { return element{a.low ^ b.low, a.high ^ b.high} }

// scale returns c*a for c in GF(2^8).
func (a element) scale(c byte) element {
	b, product := a.bytes(), [16]byte{}
	Multiply(c, b[:], product[:])
	return elementOf(&product)
}

// timesZ returns z*a.
func (a element) timesZ() element {
	top := byte(a.high >> 56)
	shifted := element{a.low << 8, a.high<<8 | a.low>>56}
	var reduced, product [16]byte
	copy(reduced[:], modulus[:])
	Multiply(top, reduced[:], product[:])
	return shifted.add(elementOf(&product))
}

// times returns a*b, without tables.
func (a element) times(b element) element {
	factors := b.bytes()
	var sum element
	for _, c := range factors { // sum over i of factors[i]*z^i*a
		if c != 0 {
			sum = sum.add(a.scale(c))
		}
		a = a.timesZ()
	}
	return sum
}

// power returns a to the given exponent.
func (a element) power(exponent uint64) element {
	result := element{low: 1}
	for ; exponent > 0; exponent >>= 1 {
		if exponent&1 == 1 {
			result = result.times(a)
		}
		a = a.times(a)
	}
	return result
}

// inHalfField reports whether a lies in GF(2^64), which contains every proper subfield of GF(2^128).
func (a element) inHalfField() bool {
	conjugate := a
	for range 64 {
		conjugate = conjugate.times(conjugate)
	}
	return conjugate == a
}

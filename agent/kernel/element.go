package kernel

import "encoding/binary"

// element is a member of GF((2^8)^16) = GF(2^8)[z]/(z^16 + z^3 + z + 6), an irreducible polynomial over GF(2^8)/0x11d:
// byte i, counted from the low end of low, is the coefficient of z^i. Keys are such elements.
type element struct{ low, high uint64 }

// elementModulus is the polynomial without its leading term: the coefficients of 1, z, z^2, z^3.
var elementModulus = [4]byte{6, 1, 0, 1}

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
	row, b := &products[c], a.bytes()
	for i := range b {
		b[i] = row[b[i]]
	}
	return elementOf(&b)
}

// timesZ returns z*a.
func (a element) timesZ() element {
	row := &products[byte(a.high>>56)]
	shifted := element{a.low << 8, a.high<<8 | a.low>>56}
	for i, c := range elementModulus {
		shifted.low ^= uint64(row[c]) << (8 * i)
	}
	return shifted
}

// times returns a*b.
func (a element) times(b element) element {
	var sum element
	for _, c := range b.bytes() { // sum over i of c*z^i*a
		if c != 0 {
			sum = sum.add(a.scale(c))
		}
		a = a.timesZ()
	}
	return sum
}

// inHalfField reports whether a lies in GF(2^64), which contains every proper subfield of GF(2^128).
func (a element) inHalfField() bool {
	conjugate := a
	for range 64 {
		conjugate = conjugate.times(conjugate)
	}
	return conjugate == a
}

package kernel

import (
	"testing"

	"pgregory.net/rapid"
)

// timesNaive multiplies two elements of the field of keys, coefficient by coefficient.
func timesNaive(a, b [16]byte) (result [16]byte) {
	var product [31]byte
	for i := range a {
		for j := range b {
			product[i+j] ^= naiveProducts[a[i]][b[j]]
		}
	}
	for i := 30; i >= 16; i-- {
		product[i-13] ^= product[i]
		product[i-15] ^= product[i]
		product[i-16] ^= multiplyNaive(6, product[i])
	}
	return [16]byte(product[:16])
}

// subfield returns the norm of an element over GF(2^64), which lies in it.
func subfield(a [16]byte) [16]byte {
	conjugate := a
	for range 64 {
		conjugate = timesNaive(conjugate, conjugate)
	}
	return timesNaive(a, conjugate)
}

func TestElementsMultiply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawKey(t), drawKey(t)
		x, y := elementOf((*[16]byte)(&a)), elementOf((*[16]byte)(&b))
		if got, want := x.times(y).bytes(), timesNaive(a, b); got != want {
			t.Fatalf("%x * %x is %x, want %x", a, b, got, want)
		}
		norm := subfield(a)
		if !elementOf(&norm).inHalfField() {
			t.Fatalf("the norm %x is not found to be in GF(2^64)", norm)
		}
	})
}

// TestModulusOfAKey checks that the modulus is the minimal polynomial of the key, or of the key plus z for a key in a
// proper subfield: it is irreducible and has it as a root.
func TestModulusOfAKey(t *testing.T) {
	check := func(t rapid.TB, key Key, root [16]byte) {
		tail := NewFingerprinter(key).modulus.tail.bytes()
		value := [16]byte{1}
		polynomial := []byte{1}
		for _, c := range tail { // from the highest degree on
			value = timesNaive(value, root)
			value[0] ^= c
			polynomial = append([]byte{c}, polynomial...)
		}
		if value != [16]byte{} {
			t.Fatalf("key %x: the modulus w^16 + %x is %x at the key", key, tail, value)
		}
		if !rabin(polynomial) {
			t.Fatalf("key %x: the modulus w^16 + %x is reducible", key, tail)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		key := drawKey(t)
		if elementOf((*[16]byte)(&key)).inHalfField() {
			key[1] ^= 1 // z lies in no proper subfield
		}
		check(t, key, key)
		norm := subfield(key)
		remapped := norm
		remapped[1] ^= 1
		check(t, norm, remapped)
	})
	for _, key := range []Key{{}, {1}, {0x57}} {
		remapped := key
		remapped[1] ^= 1
		check(t, key, remapped)
	}
}

// TestFieldOfKeysIsAField is Rabin's test (Rabin 1980) with arithmetic of its own: p of degree 16 over GF(q), q = 2^8,
// is irreducible if and only if p divides z^(q^16) - z and is coprime to z^(q^8) - z (2 is the only prime factor of 16).
func TestFieldOfKeysIsAField(t *testing.T) {
	if !rabin([]byte{elementModulus[0], elementModulus[1], elementModulus[2], elementModulus[3], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}) {
		t.Fatal("the modulus of the keys is reducible")
	}
	if rabin([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}) {
		t.Fatal("Rabin's test takes z^16 + 1 = (z + 1)^16 for irreducible")
	}
}

func rabin(p []byte) bool {
	power := []byte{0, 1}
	square := func() {
		squared := make([]byte, 2*len(power))
		for i, c := range power {
			squared[2*i] = multiplyNaive(c, c)
		}
		power = polynomialRemainder(squared, p)
	}
	minusZ := func() []byte {
		difference := append([]byte{}, power...)
		for len(difference) < 2 {
			difference = append(difference, 0)
		}
		difference[1] ^= 1
		return trim(difference)
	}
	for range 64 {
		square()
	}
	a, b := p, minusZ()
	for len(b) > 0 {
		a, b = b, polynomialRemainder(append([]byte{}, a...), b)
	}
	if len(a) != 1 {
		return false
	}
	for range 64 {
		square()
	}
	return len(minusZ()) == 0
}

func polynomialRemainder(a, p []byte) []byte {
	lead := inverseNaive(p[len(p)-1])
	for a = trim(a); len(a) >= len(p); a = trim(a) {
		c := multiplyNaive(a[len(a)-1], lead)
		for i := range p {
			a[len(a)-len(p)+i] ^= multiplyNaive(c, p[i])
		}
	}
	return a
}

func trim(a []byte) []byte {
	for len(a) > 0 && a[len(a)-1] == 0 {
		a = a[:len(a)-1]
	}
	return a
}

func inverseNaive(a byte) byte {
	for b := 1; b < 256; b++ {
		if multiplyNaive(a, byte(b)) == 1 {
			return byte(b)
		}
	}
	return 0
}

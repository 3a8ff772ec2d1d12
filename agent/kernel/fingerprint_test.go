package kernel

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/block"
)

func multiplyNaive(a, b byte) (product byte) {
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			product ^= a
		}
		carry := a&0x80 != 0
		a <<= 1
		if carry {
			a ^= 0x1d
		}
	}
	return product
}

// timesNaive multiplies two polynomials of degree 15 and reduces by z^16 = z^3 + z + 6, coefficient by coefficient.
func timesNaive(a, b [16]byte) (result [16]byte) {
	var product [31]byte
	for i := range a {
		for j := range b {
			product[i+j] ^= multiplyNaive(a[i], b[j])
		}
	}
	for i := 30; i >= 16; i-- {
		product[i-13] ^= product[i]
		product[i-15] ^= product[i]
		product[i-16] ^= multiplyNaive(6, product[i])
	}
	return [16]byte(product[:16])
}

func sumNaive(beta [16]byte, data []byte) (sum [16]byte) {
	for len(data) > 0 {
		var vector [16]byte
		data = data[copy(vector[:], data):]
		sum = timesNaive(sum, beta)
		for i := range sum {
			sum[i] ^= vector[i]
		}
	}
	return sum
}

func drawKey(t *rapid.T) (key Key) {
	copy(key[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "key"))
	return key
}

func TestFingerprintEqualsHornerByTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := NewFingerprinter(drawKey(t))
		data := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data")
		if got, want := f.Sum(data), sumNaive(f.beta.bytes(), data); got != want {
			t.Fatalf("Sum of %d bytes is %x, by the definition %x", len(data), got, want)
		}
	})
}

func TestFingerprintIsLinearForAllCoefficients(t *testing.T) {
	f := NewFingerprinter(Key{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3})
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.IntRange(0, 200).Draw(t, "length")
		x := rapid.SliceOfN(rapid.Byte(), length, length).Draw(t, "x")
		y := rapid.SliceOfN(rapid.Byte(), length, length).Draw(t, "y")
		b := rapid.Byte().Draw(t, "b")
		prints := []block.Fingerprint{f.Sum(x), f.Sum(y)}
		for a := range 256 {
			mixed := make([]byte, length)
			for i := range mixed {
				mixed[i] = multiplyNaive(byte(a), x[i]) ^ multiplyNaive(b, y[i])
			}
			if got, want := Combine([]byte{byte(a), b}, prints), f.Sum(mixed); got != want {
				t.Fatalf("%d*F(X) + %d*F(Y) = %x, F(%d*X + %d*Y) = %x", a, b, got, a, b, want)
			}
		}
	})
}

func TestFingerprintJoin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := NewFingerprinter(drawKey(t))
		first := rapid.IntRange(0, 12).Draw(t, "vectors") * 16
		second := rapid.IntRange(0, 200).Draw(t, "bytes")
		data := rapid.SliceOfN(rapid.Byte(), first+second, first+second).Draw(t, "data")
		got := f.Join(f.Sum(data[:first]), f.Sum(data[first:]), second)
		if want := f.Sum(data); got != want {
			t.Fatalf("Join(%d bytes, %d bytes) is %x, Sum is %x", first, second, got, want)
		}
	})
}

func TestFingerprintExtend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := NewFingerprinter(drawKey(t))
		data := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "data")
		full := make([]byte, len(data)+rapid.IntRange(0, 5000).Draw(t, "zeros"))
		copy(full, data)
		if got, want := f.Extend(f.Sum(data), len(data), len(full)), f.Sum(full); got != want {
			t.Fatalf("Extend from %d to %d bytes is %x, Sum is %x", len(data), len(full), got, want)
		}
	})
}

func TestWeakKeysAreRemapped(t *testing.T) {
	for name, key := range map[string]Key{"zero": {}, "one": {1}, "of GF(2^8)": {0x57}} {
		f := NewFingerprinter(key)
		if f.beta.inHalfField() {
			t.Errorf("key %s: the point %x lies in GF(2^64)", name, f.beta.bytes())
		}
		if again := NewFingerprinter(key); again.Sum([]byte("data")) != f.Sum([]byte("data")) {
			t.Errorf("key %s: two fingerprinters of one key differ", name)
		}
		if swapped := f.Sum(append(make([]byte, 16), 1)); swapped == f.Sum(append(append([]byte{1}, make([]byte, 15)...), 0)) {
			t.Errorf("key %s: swapping two vectors goes unseen", name)
		}
	}
}

// TestModulusIsIrreducible is Rabin's test (Rabin 1980) with arithmetic of its own: p of degree 16 over GF(q), q = 2^8,
// is irreducible if and only if p divides z^(q^16) - z and is coprime to z^(q^8) - z (2 is the only prime factor of 16).
func TestModulusIsIrreducible(t *testing.T) {
	if !rabin([]byte{modulus[0], modulus[1], modulus[2], modulus[3], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}) {
		t.Fatal("the modulus of the fingerprints is reducible")
	}
	if rabin([]byte{7, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}) {
		t.Log("note: z^16 + z^3 + z + 7 is irreducible too")
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
		power = remainder(squared, p)
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
		a, b = b, remainder(append([]byte{}, a...), b)
	}
	if len(a) != 1 {
		return false
	}
	for range 64 {
		square()
	}
	return len(minusZ()) == 0
}

func remainder(a, p []byte) []byte {
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

func BenchmarkFingerprint(b *testing.B) {
	f := NewFingerprinter(Key{1, 2, 3, 4, 5, 6, 7, 8, 9})
	data := Buffer(1 << 20)
	for i := range data {
		data[i] = byte(i * 7)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		f.Sum(data)
	}
}

func BenchmarkExtend(b *testing.B) {
	f := NewFingerprinter(Key{1, 2, 3, 4, 5, 6, 7, 8, 9})
	print := f.Sum([]byte("data"))
	for b.Loop() {
		f.Extend(print, 4, 1<<20)
	}
}

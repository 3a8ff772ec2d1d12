package main

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/stripe"
)

const (
	checksum = "CRC-32C"
	keyed    = "GMAC"
	apart    = "apart"
	together = "together"
)

var fingerprintKey = kernel.Key{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3}

func (b *bench) fingerprint() (*section, error) {
	t := newTable("data", "from", "ours GB/s", "CRC-32C GB/s", "GMAC GB/s", "ours / CRC-32C", "ours / GMAC")
	for _, place := range []struct {
		name   string
		memory bool
		bytes  int
	}{
		{"cache", false, 4 << 10}, {"cache", false, 64 << 10}, {"memory", true, 1 << 20}, {"memory", true, 16 << 20},
	} {
		s, err := b.arena.stripes(1, place.bytes)
		if err != nil {
			return nil, err
		}
		if !place.memory {
			s.views = s.views[:1]
		}
		contenders, err := fingerprintContenders(s)
		if err != nil {
			return nil, err
		}
		r, err := b.measure("fingerprint of "+size(place.bytes), contenders...)
		if err != nil {
			return nil, err
		}
		t.add(size(place.bytes), place.name, rate(place.bytes, r.nanoseconds[ours]), rate(place.bytes, r.nanoseconds[checksum]), rate(place.bytes, r.nanoseconds[keyed]),
			r.faster(ours, checksum).String(), r.faster(ours, keyed).String())
	}
	return &section{
		title: "Fingerprints",
		table: t,
		text: "Fingerprinter.Sum beside what the standard library has: hash/crc32 with Castagnoli's polynomial, without a key, and AES-GCM authenticating data (GMAC), with one. " +
			"Only the first is linear. Ratios: median and worst round.",
	}, nil
}

func fingerprintContenders(s *stripes) ([]contender, error) {
	fingerprinter, castagnoli := kernel.NewFingerprinter(fingerprintKey), crc32.MakeTable(crc32.Castagnoli)
	encryption, err := aes.NewCipher(fingerprintKey[:])
	if err != nil {
		return nil, fmt.Errorf("making AES: %w", err)
	}
	authentication, err := cipher.NewGCM(encryption)
	if err != nil {
		return nil, fmt.Errorf("making GMAC: %w", err)
	}
	each := func(hash func(data []byte)) func(first, calls int) {
		return func(first, calls int) {
			for call := first; call < first+calls; call++ {
				hash(s.of(call, 0, 1)[0])
			}
		}
	}
	var nonce [12]byte
	tag := make([]byte, 0, 16)
	return []contender{
		{name: ours, run: each(func(data []byte) { fingerprinter.Sum(data) }), check: func() error { return checkSum(fingerprinter, s.views[0][0]) }},
		{name: checksum, run: each(func(data []byte) { crc32.Checksum(data, castagnoli) })},
		{name: keyed, run: each(func(data []byte) { authentication.Seal(tag, nonce[:], nil, data) })},
	}, nil
}

// checkSum compares the beginning with the definition, and the whole with its pieces put together.
func checkSum(f *kernel.Fingerprinter, data []byte) error {
	const pieceBytes = 4 << 10
	modulus := f.Sum(append([]byte{1}, make([]byte, 16)...)) // what is left of w^16: the modulus without its leading term
	if !isRoot(fingerprintKey, modulus) {
		return errors.New("the modulus of the fingerprints is not that of the key")
	}
	if f.Sum(data[:pieceBytes]) != sumByDefinition(modulus, data[:pieceBytes]) {
		return errors.New("the fingerprint is not what its definition says")
	}
	var pieces []block.Fingerprint
	for from := 0; from < len(data); from += pieceBytes {
		pieces = append(pieces, f.Sum(data[from:from+pieceBytes]))
	}
	if f.JoinUnits(pieces, pieceBytes) != f.Sum(data) {
		return errors.New("the fingerprint is not that of its pieces together")
	}
	return nil
}

// isRoot evaluates the modulus, of degree 16 with the coefficients given after the leading one, at the key, an element of
// GF(2^8)[z]/(z^16 + z^3 + z + 6). A key in no proper subfield is a root of one such polynomial only.
func isRoot(key kernel.Key, modulus block.Fingerprint) bool {
	value := [16]byte{1}
	for _, coefficient := range modulus {
		var product [31]byte
		for i, a := range value {
			for j, b := range key {
				product[i+j] ^= stripe.Multiply(a, b)
			}
		}
		for i := 30; i >= 16; i-- {
			product[i-13] ^= product[i]
			product[i-15] ^= product[i]
			product[i-16] ^= stripe.Multiply(6, product[i])
		}
		value = [16]byte(product[:16])
		value[0] ^= coefficient
	}
	return value == [16]byte{}
}

// sumByDefinition divides the data, whose first byte is of the highest degree, by the modulus byte after byte.
func sumByDefinition(modulus block.Fingerprint, data []byte) (sum block.Fingerprint) {
	for _, next := range data {
		leading := sum[0]
		copy(sum[:], sum[1:])
		sum[15] = next
		for i, coefficient := range modulus {
			sum[i] ^= stripe.Multiply(leading, coefficient)
		}
	}
	return sum
}

func (b *bench) applySum() (*section, error) {
	t := newTable("code", "block", "Apply GB/s", "Apply, then Sum GB/s", "ApplySum GB/s", "ApplySum / apart")
	faster := newAim(1, "ApplySum from memory at least as fast as Apply and Sum apart")
	sizes := []int{64 << 10, 1 << 20, 4 << 20}
	if b.quick {
		sizes = []int{1 << 20}
	}
	for _, c := range []code{{4, 2}, {12, 4}} {
		for _, blockBytes := range sizes {
			s, err := b.arena.stripes(c.k+c.m, blockBytes)
			if err != nil {
				return nil, err
			}
			name := c.String() + " " + size(blockBytes)
			r, err := b.measure(name, applySumContenders(c, s)...)
			if err != nil {
				return nil, err
			}
			bytes := c.k * blockBytes
			ratio := r.faster(together, apart)
			t.add(c.String(), size(blockBytes), rate(bytes, r.nanoseconds[oursApply]), rate(bytes, r.nanoseconds[apart]), rate(bytes, r.nanoseconds[together]), ratio.String())
			faster.add(name, ratio)
		}
	}
	return &section{
		title: "Encoding and fingerprints from memory",
		table: t,
		aims:  []*aim{faster},
		text:  "The outputs and their fingerprints, of the next stripe of the arena in every call: GB/s of data read. Ratios: median and worst round.",
	}, nil
}

func applySumContenders(c code, s *stripes) []contender {
	rows, fingerprinter, prints := universal(c.k, c.m), kernel.NewFingerprinter(fingerprintKey), make([]block.Fingerprint, c.m)
	contenders := []contender{
		encodeOurs(oursApply, rows, s, (*kernel.Matrix).Apply),
		encodeOurs(apart, rows, s, func(m *kernel.Matrix, out, in [][]byte) {
			m.Apply(out, in)
			for i := range out {
				prints[i] = fingerprinter.Sum(out[i])
			}
		}),
		encodeOurs(together, rows, s, func(m *kernel.Matrix, out, in [][]byte) { m.ApplySum(out, in, fingerprinter, prints) }),
	}
	for i := range contenders[1:] {
		encoded := contenders[1+i].check
		contenders[1+i].check = func() error {
			clear(prints)
			if err := encoded(); err != nil {
				return err
			}
			for j, out := range s.of(0, c.k, c.k+c.m) {
				if prints[j] != fingerprinter.Sum(out) {
					return fmt.Errorf("fingerprint %d is not that of the output", j)
				}
			}
			return nil
		}
	}
	return contenders
}

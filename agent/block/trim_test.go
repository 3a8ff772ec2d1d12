package block

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawPadded draws a unit of which a part of any length, none and all included, at the end is zeros.
func drawPadded(t *rapid.T, size int) []byte {
	unit := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "unit")
	clear(unit[rapid.IntRange(0, size).Draw(t, "data"):])
	return unit
}

func TestTrim(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := drawPadded(t, rapid.IntRange(0, 150).Draw(t, "size"))
		if got, want := Trim(unit), len(bytes.TrimRight(unit, "\x00")); got != want {
			t.Fatalf("Trim(%x) is %d, want %d", unit, got, want)
		}
	})
}

func TestPack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := sample()
		h.Units, h.UnitBytes = rapid.IntRange(1, 6).Draw(t, "units"), rapid.IntRange(1, 40).Draw(t, "bytes")
		var full, trimmed []byte
		var lengths []int
		for range h.Units {
			unit := drawPadded(t, h.UnitBytes)
			full = append(full, unit...)
			lengths = append(lengths, Trim(unit))
			trimmed = append(trimmed, unit[:Trim(unit)]...)
		}
		if len(trimmed) == len(full) {
			lengths = nil
		}
		payload := full
		if rapid.Bool().Draw(t, "trimmed before, not to the last") {
			payload, h.Lengths = nil, nil
			for i := range h.Units {
				length := h.UnitBytes
				if lengths != nil {
					length = rapid.IntRange(lengths[i], h.UnitBytes).Draw(t, "length")
				}
				h.Lengths = append(h.Lengths, length)
				payload = append(payload, full[i*h.UnitBytes:i*h.UnitBytes+length]...)
			}
			if len(payload) == len(full) {
				h.Lengths = nil
			}
		}
		was := h.Lengths
		wasCopy := slices.Clone(was)
		got := h.Pack(bytes.Clone(payload))
		if !bytes.Equal(got, trimmed) || !slices.Equal(h.Lengths, lengths) || (h.Lengths == nil) != (lengths == nil) {
			t.Fatalf("packed %x to %x with lengths %v, want %x with %v", payload, got, h.Lengths, trimmed, lengths)
		}
		if !slices.Equal(was, wasCopy) {
			t.Fatalf("the lengths given were overwritten: %v, they were %v", was, wasCopy)
		}
		if err := h.ValidateShape(); err != nil || h.PayloadBytes() != int64(len(got)) {
			t.Fatalf("the packed header: %v; its payload has %d bytes", err, h.PayloadBytes())
		}
	})
}

func BenchmarkTrim(b *testing.B) {
	unit := make([]byte, 1<<20)
	b.SetBytes(int64(len(unit)))
	for b.Loop() {
		Trim(unit)
	}
}

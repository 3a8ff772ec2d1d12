//go:build !race

// The race detector allocates by itself, so this is for builds without it.

package kernel

import (
	"fmt"
	"testing"

	"github.com/restripe/restripe/agent/block"
)

func TestNothingIsAllocated(t *testing.T) {
	matrices := append(fewShapes(), full(kinds[2], 4, 12))
	onEveryPath(t, func(t *testing.T) {
		all := operations()
		for _, e := range matrices {
			for _, length := range []int{0, 1, 100, 4096, 20_000} {
				s := newSample(e, length, 1)
				r := newTrial(t, s, offsets(0, 0), offsets(0, 0))
				for _, o := range all {
					r.check(t, o, 0, length) // sets up the call
					if allocations := testing.AllocsPerRun(5, func() { o.run(t, &r.call) }); allocations != 0 {
						t.Errorf("%s of %v, %d bytes, allocates %v times", o.name, e, length, allocations)
					}
				}
			}
		}
	})
}

func TestFingerprintsAllocateNothing(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		f := NewFingerprinter(Key{1})
		data, out := filled(1, 100_000, 1)[0], make([]byte, 100_000)
		prints, coefficients := make([]block.Fingerprint, 20), make([]byte, 20)
		for i := range prints {
			prints[i][0], coefficients[i] = byte(i+1), byte(i)
		}
		calls := map[string]func(){
			"Join":        func() { f.Join(prints[0], prints[1], 12345) },
			"JoinUnits":   func() { f.JoinUnits(prints, 4096) },
			"Extend":      func() { f.Extend(prints[0], 5, 1<<20) },
			"Combine":     func() { Combine(coefficients, prints) },
			"Multiply":    func() { Multiply(7, data, out) },
			"MultiplyAdd": func() { MultiplyAdd(7, data, out) },
			"Checksum":    func() { Checksum(data) },
		}
		for _, length := range []int{0, 1, 100, 4096, 100_000} {
			calls[fmt.Sprintf("Sum of %d bytes", length)] = func() { f.Sum(data[:length]) }
		}
		for name, call := range calls {
			if allocations := testing.AllocsPerRun(10, call); allocations != 0 {
				t.Errorf("%s allocates %v times", name, allocations)
			}
		}
	})
}

//go:build !race

// The race detector allocates by itself, so this is for builds without it.

package kernel

import "testing"

func TestApplyAllocatesNothing(t *testing.T) {
	m, in, out := encode(t, 12, 4, 100_000)
	f := NewFingerprinter(Key{1})
	for name, call := range map[string]func(){
		"Apply":            func() { m.Apply(out, in) },
		"Accumulate":       func() { m.Accumulate(out, in) },
		"AccumulateColumn": func() { m.AccumulateColumn(out, 3, in[3]) },
		"Sum":              func() { f.Sum(in[0]) },
	} {
		if allocations := testing.AllocsPerRun(10, call); allocations != 0 {
			t.Errorf("%s allocates %v times", name, allocations)
		}
	}
}

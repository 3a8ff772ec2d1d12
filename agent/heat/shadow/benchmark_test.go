package shadow

import (
	"runtime"
	"testing"
)

// BenchmarkStep is what an hour of candidates costs for each group that they follow, and the memory of each.
func BenchmarkStep(b *testing.B) {
	const groups = Limit
	name := func(g int) uint64 { return uint64(g+1) * 0x9e3779b97f4a7c15 }
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c, err := New(testPrices(), Candidates(3), groups)
	if err != nil {
		b.Fatal(err)
	}
	for g := range groups {
		c.Use(name(g), Use{Bytes: 4 << 20, Times: 1})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	for b.Loop() {
		for g := range groups {
			c.Use(name(g), Use{Bytes: 4 << 20, Times: float64(g % 3)})
		}
		c.Advance()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/groups, "ns/group")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/groups, "B/group")
}

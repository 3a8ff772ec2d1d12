package heat

import (
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkTouch is what an access costs a gateway, the look at the clock included.
func BenchmarkTouch(b *testing.B) {
	const groups = 1 << 18
	for _, clock := range []string{"with time.Now", "alone"} {
		b.Run(clock, func(b *testing.B) {
			tracker := New(Options{Groups: groups, Start: time.Now()})
			class := tracker.Class("c")
			for g := range groups {
				tracker.Touch(group(g), class, time.Now(), 1)
			}
			var worker atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				g, now := int(worker.Add(1))*7919, time.Now()
				for pb.Next() {
					if clock != "alone" {
						now = time.Now()
					}
					g = (g*1103515245 + 12345) & (groups - 1)
					tracker.Touch(group(g), tracker.Class("c"), now, 1)
				}
			})
		})
	}
}

// BenchmarkOneGroup is the worst for locks: everybody uses the same group.
func BenchmarkOneGroup(b *testing.B) {
	tracker := New(Options{Start: time.Now()})
	class := tracker.Class("c")
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			tracker.Touch(group(1), class, time.Now(), 1)
		}
	})
}

// BenchmarkFull is a Tracker without room: every access is of a group it does not know.
func BenchmarkFull(b *testing.B) {
	const groups = 1 << 18
	tracker := New(Options{Groups: groups, Start: time.Now()})
	class, now := tracker.Class("c"), time.Now()
	for g := range b.N + groups {
		if g == groups {
			b.ResetTimer()
		}
		tracker.Touch(group(g), class, now, 1)
	}
}

// BenchmarkPart saves everything once.
func BenchmarkPart(b *testing.B) {
	const groups = 1 << 18
	tracker := New(Options{Groups: groups, Start: time.Now()})
	class, now := tracker.Class("c"), time.Now()
	for g := range groups {
		tracker.Touch(group(g), class, now, 1)
	}
	size := 0
	for b.Loop() {
		size = 0
		for index := range Parts {
			part, _ := tracker.Part(index, now)
			size += len(part.Raw)
		}
	}
	b.ReportMetric(float64(size)/groups, "bytes/group")
}

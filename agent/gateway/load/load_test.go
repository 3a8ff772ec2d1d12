package load

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/gateway/api"
)

func TestLatenciesFallIntoTheirClasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		latency := time.Duration(rapid.Int64Range(8, 1<<40-1).Draw(t, "latency"))
		class := latencyClass(latency)
		if have := latencyOf(class); math.Abs(float64(have-latency)) > float64(latency)/8+1 {
			t.Fatalf("%v is shown as %v", latency, have)
		}
		if class > 0 && latencyClass(latency-1) > class {
			t.Fatalf("%v is in a larger class than %v", latency-1, latency)
		}
	})
	for _, odd := range []time.Duration{-1, 0, math.MaxInt64} {
		if class := latencyClass(odd); class < 0 || class >= latencyClasses {
			t.Errorf("%v is in class %d", odd, class)
		}
	}
}

// The window has the last ten seconds and no others, whatever the order and the gaps.
func TestWindowHasTheLastSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var w Window
		type note struct {
			second  int64
			latency time.Duration
			bytes   int64
		}
		var notes []note
		now := int64(1_000_000)
		for range rapid.IntRange(0, 60).Draw(t, "requests") {
			now += rapid.Int64Range(0, 4).Draw(t, "gap")
			n := note{now, time.Duration(rapid.Int64Range(1e3, 1e10).Draw(t, "latency")), rapid.Int64Range(0, 1e9).Draw(t, "bytes")}
			w.Request(time.Unix(now, 0), n.latency)
			w.Move(time.Unix(now, 0), n.bytes)
			notes = append(notes, n)
		}
		now += rapid.Int64Range(0, 15).Draw(t, "rest")
		var latencies []time.Duration
		moved := int64(0)
		for _, n := range notes {
			if now-n.second <= windowSeconds {
				latencies = append(latencies, n.latency)
				moved += n.bytes
			}
		}
		have := w.Sum(time.Unix(now, 0))
		if have.Requests != int64(len(latencies)) || have.TransitionBytesPerSecond != float64(moved)/windowSeconds {
			t.Fatalf("%+v, want %d requests and %d bytes", have, len(latencies), moved)
		}
		if len(latencies) == 0 {
			return
		}
		slices.Sort(latencies)
		for part, shown := range map[int]float64{50: have.P50Seconds, 99: have.P99Seconds} {
			want := latencies[(len(latencies)*part+99)/100-1].Seconds()
			if math.Abs(shown-want) > want/8+1e-9 {
				t.Fatalf("the %dth of a hundred is shown as %v, want %v", part, shown, want)
			}
		}
	})
}

func TestNotingARequestAllocatesNothing(t *testing.T) {
	var w Window
	if allocations := testing.AllocsPerRun(1000, func() { w.Request(time.Now(), time.Millisecond) }); allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}

func TestBucketsMeetAtTheirEdges(t *testing.T) {
	for i := range api.HeatBuckets {
		if api.HeatBucketOf(api.HeatEdge(i)) != i {
			t.Errorf("%v is in bucket %d, it begins bucket %d", api.HeatEdge(i), api.HeatBucketOf(api.HeatEdge(i)), i)
		}
		if below := math.Nextafter(api.HeatEdge(i+1), 0); api.HeatBucketOf(below) != i {
			t.Errorf("%v is in bucket %d, want %d", below, api.HeatBucketOf(below), i)
		}
	}
	if api.HeatEdge(0) != 0 || api.HeatEdge(1) != 1.0/64 || api.HeatEdge(api.HeatBuckets-1) != 1<<20 || api.HeatBucketOf(math.NaN()) != 0 || api.HeatBucketOf(math.Inf(1)) != api.HeatBuckets-1 {
		t.Error("the edges are not those of the report")
	}
}

// BenchmarkRequest is what the load window costs a request.
func BenchmarkRequest(b *testing.B) {
	var w Window
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w.Request(time.Now(), time.Millisecond)
		}
	})
}

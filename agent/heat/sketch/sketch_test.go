package sketch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return epoch.Add(time.Duration(seconds * float64(time.Second))) }

// never is how much less than the true count one may be: by the rounding of the numbers it is compared with.
const never = 1 - 1e-6

// However keys are written and used and time passes, a count is not less than the definition has it.
func TestNeverLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		halfLife := rapid.Float64Range(1, 1000).Draw(t, "half-life")
		s := New(time.Duration(halfLife*float64(time.Second)), epoch)
		type note struct {
			key   int
			write bool
			at    float64
		}
		var notes []note
		clock := 0.0
		for range rapid.IntRange(0, 200).Draw(t, "notes") {
			clock += rapid.SampledFrom([]float64{0, 0.1, halfLife / 3, 70 * halfLife}).Draw(t, "after")
			n := note{rapid.IntRange(0, 40).Draw(t, "key"), rapid.Bool().Draw(t, "write"), clock}
			notes = append(notes, n)
			if n.write {
				s.Wrote(fmt.Sprint(n.key), at(clock))
			} else {
				s.Read(fmt.Sprint(n.key), at(clock))
			}
		}
		for key := range 41 {
			var want Counts
			for _, n := range notes {
				if n.key == key {
					value := math.Exp2((n.at - clock) / halfLife)
					if n.write {
						want.Writes += value
					} else {
						want.Reads += value
					}
				}
			}
			got := s.Of(fmt.Sprint(key), at(clock))
			// What is 60 half-lives old is nothing: that far the numbers of cells go.
			if got.Reads < want.Reads*never-1e-15 || got.Writes < want.Writes*never-1e-15 {
				t.Fatalf("key %d: %+v, it was %+v", key, got, want)
			}
			// So few keys hardly ever meet in all rows.
			if got.Reads > want.Reads*1.001+1e-9 || got.Writes > want.Writes*1.001+1e-9 {
				t.Fatalf("key %d: %+v, it was only %+v", key, got, want)
			}
		}
	})
}

// Of many keys all but few are counted to within e/columns of all that was noted, and those that are much written often much better.
func TestErrorIsBounded(t *testing.T) {
	const keys, notes = 200_000, 1_000_000
	s, random := New(time.Hour, epoch), rand.New(rand.NewPCG(1, 2))
	cumulative, sum := make([]float64, keys), 0.0
	for i := range cumulative {
		sum += math.Pow(float64(i+1), -0.99)
		cumulative[i] = sum
	}
	written := make([]float64, keys)
	for range notes {
		drawn, low, high := random.Float64()*sum, 0, keys-1
		for low < high {
			if middle := (low + high) / 2; cumulative[middle] < drawn {
				low = middle + 1
			} else {
				high = middle
			}
		}
		written[low]++
		s.Wrote(fmt.Sprint(low), epoch)
	}
	bound := math.E / (shards * columns) * notes
	above, worstOfHot := 0, 0.0
	for i := range written {
		over := s.Of(fmt.Sprint(i), epoch).Writes - written[i]
		if over < -1e-3 {
			t.Fatalf("key %d was written %v times, and is counted %v less", i, written[i], -over)
		}
		if over > bound {
			above++
		}
		if i < 1000 {
			worstOfHot = max(worstOfHot, over/written[i])
		}
	}
	if share := float64(above) / keys; share > math.Exp(-rows) {
		t.Errorf("%.4f of the keys are counted more than %.1f too often", share, bound)
	}
	if worstOfHot > 0.25 {
		t.Errorf("of the thousand that are written most one is counted %.0f %% too often", 100*worstOfHot)
	}
}

// A count halves in every half-life, also over many at once, and a clock that goes back changes nothing.
func TestDecay(t *testing.T) {
	s := New(time.Minute, epoch)
	for range 1 << 10 {
		s.Wrote("k", epoch)
	}
	for _, halfLives := range []float64{0, 1, 2.5, 10, 63, 65} {
		want := math.Exp2(10 - halfLives)
		if got := s.Of("k", at(60*halfLives)).Writes; math.Abs(got-want) > want*1e-6 {
			t.Errorf("after %v half-lives %v, want %v", halfLives, got, want)
		}
	}
	was := s.Of("k", at(60*65))
	if got := s.Of("k", epoch); got != was {
		t.Errorf("%+v after the clock went back, %+v before", got, was)
	}
	if got := s.Of("k", at(1e9)); got.Reads != 0 {
		t.Errorf("after ages it is still %+v", got)
	}
	s.Wrote("k", at(1e9))
	s.Read("k", at(1e9))
	if got := s.Of("k", at(1e9)); math.Abs(got.Reads-1) > 1e-6 || math.Abs(got.Writes-1) > 1e-6 {
		t.Errorf("one write and read after ages are %+v", got)
	}
}

// Counts above the precision of a cell do not stand still.
func TestManyOfOneKey(t *testing.T) {
	value := float32(1 << 25)
	for range 100 {
		value = raised(value, 1)
	}
	if value < 1<<25+100 {
		t.Errorf("a hundred more than 2^25 is %.0f", value)
	}
}

func TestWritersAtOnce(t *testing.T) {
	s := New(time.Hour, epoch)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for range 1000 {
				s.Wrote("all", epoch)
				s.Read("all", epoch)
			}
		})
	}
	writers.Wait()
	if got := s.Of("all", epoch); got.Writes != 8000 || got.Reads != 8000 {
		t.Errorf("%+v", got)
	}
}

func TestKeysAreSpread(t *testing.T) {
	seen := map[uint64]string{}
	perShard := map[uint64]int{}
	for i := range 100_000 {
		for _, format := range []string{"%d", "k/%08d", "a/long/prefix/of/all/keys/%d"} {
			key := fmt.Sprintf(format, i)
			hash := hashOf(key)
			if other, is := seen[hash]; is {
				t.Fatalf("%q and %q have the same hash", key, other)
			}
			seen[hash] = key
			perShard[hash>>(64-shardBits)]++
		}
	}
	if hashOf("a") == hashOf("a\x00") || hashOf("") == hashOf("\x00") {
		t.Error("a zero byte at the end does not count")
	}
	for shard := range uint64(shards) {
		if n := perShard[shard]; n < 4000 || n > 5400 {
			t.Errorf("shard %d has %d of 300,000 keys", shard, n)
		}
	}
}

// A further half-life has a sketch of its own while there is room, and then the nearest.
func TestSet(t *testing.T) {
	set := NewSet(epoch)
	if set.Bytes() != 0 {
		t.Errorf("it takes %d bytes before anything is counted", set.Bytes())
	}
	lives := []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}
	seen := map[*Sketch]bool{}
	for _, life := range lives {
		first := set.For(life)
		seen[first] = true
		if set.For(life) != first {
			t.Errorf("%s has two sketches", life)
		}
	}
	if len(seen) != len(lives) || set.Bytes() != 4<<20 {
		t.Errorf("%d half-lives have %d sketches, of %d bytes", len(lives), len(seen), set.Bytes())
	}
	for life, near := range map[time.Duration]time.Duration{
		10 * time.Hour: 24 * time.Hour, 3 * time.Hour: time.Hour, time.Millisecond: time.Second,
	} {
		if set.For(life) != set.For(near) {
			t.Errorf("for %s it is not the sketch of %s that is used", life, near)
		}
	}
	if set.Bytes() != 4<<20 {
		t.Errorf("it grew to %d bytes", set.Bytes())
	}
}

func TestBytes(t *testing.T) {
	if size := unsafe.Sizeof(Sketch{}); Bytes != 1<<20 || size > Bytes+shards*64 {
		t.Errorf("a sketch takes %d bytes, and says %d", size, Bytes)
	}
}

// BenchmarkWrote is what counting a write costs a gateway, with the look at the clock.
func BenchmarkWrote(b *testing.B) {
	keys := make([]string, 1<<16)
	for i := range keys {
		keys[i] = fmt.Sprintf("bucket/user/%08d", i)
	}
	for name, many := range map[string]int{"many keys": len(keys), "one key": 1} {
		b.Run(name, func(b *testing.B) {
			set := NewSet(time.Now())
			var worker atomic.Int64
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := int(worker.Add(1)) * 7919; pb.Next(); i++ {
					set.For(time.Hour).Wrote(keys[i%many], time.Now())
				}
			})
		})
	}
}

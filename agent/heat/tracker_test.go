package heat

import (
	"math"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
)

// epoch has no monotonic reading, so that tests can set the clock as they like.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

func group(n int) block.GroupID {
	return block.GroupID{Stamp: block.Stamp{Sequence: uint64(1 + n/3), Salt: 77}, Index: uint32(n % 3)}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*(math.Abs(a)+math.Abs(b)) }

// access is one Touch.
type access struct {
	seconds float64
	group   int
	weight  float64
}

func accesses(t *rapid.T, groups int) []access {
	list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) access {
		return access{rapid.Float64Range(0, 5000).Draw(t, "after"), rapid.IntRange(0, groups-1).Draw(t, "group"), rapid.Float64Range(0.5, 20).Draw(t, "weight")}
	}), 0, 60).Draw(t, "accesses")
	clock := 0.0
	for i := range list {
		clock += list[i].seconds
		list[i].seconds = clock
	}
	return list
}

// rateByDefinition is the sum over the accesses of 2^(-age/halfLife), as a rate.
func rateByDefinition(list []access, group int, halfLife, now float64) float64 {
	value := 0.0
	for _, a := range list {
		if a.group == group {
			value += a.weight * math.Exp2(-(now-a.seconds)/halfLife)
		}
	}
	if value < negligible {
		return 0
	}
	return value * math.Ln2 / (halfLife / 86400)
}

func TestRateIsTheDecayedSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		halfLife := rapid.Float64Range(1, 100_000).Draw(t, "half-life")
		halfLife = math.Round(halfLife)
		list := accesses(t, 5)
		tracker := New(Options{Start: epoch})
		tracker.SetHalfLife("c", time.Duration(halfLife)*time.Second, epoch)
		class := tracker.Class("c")
		last := 0.0
		for _, a := range list {
			tracker.Touch(group(a.group), class, at(a.seconds), a.weight)
			last = a.seconds
		}
		now := last + rapid.Float64Range(0, 3*halfLife).Draw(t, "rest")
		for g := range 5 {
			have, want := tracker.Rate(group(g), at(now)), rateByDefinition(list, g, halfLife, now)
			if !near(have, want) {
				t.Fatalf("group %d: rate %v, the definition says %v", g, have, want)
			}
		}
	})
}

// A rate of r accesses a day, kept up, is what a Tracker says in the end.
func TestSteadyUseShowsItsRate(t *testing.T) {
	for _, perDay := range []float64{1, 24, 1000, 86400} {
		tracker := New(Options{Start: epoch})
		class := tracker.Class("c")
		step := 86400 / perDay
		now := 0.0
		for ; now < 20*86400; now += step {
			tracker.Touch(group(1), class, at(now), 1)
		}
		have := tracker.Rate(group(1), at(now-step/2))
		if math.Abs(have-perDay) > 0.03*perDay {
			t.Errorf("%v accesses a day are taken for %v", perDay, have)
		}
	}
}

// However the time in between is cut, the rate halves with every half-life, never grows, and is never below zero.
func TestDecayComposesAndIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tracker := New(Options{Start: epoch})
		tracker.SetHalfLife("c", 100*time.Second, epoch)
		class := tracker.Class("c")
		weight := rapid.Float64Range(1, 1000).Draw(t, "weight")
		tracker.Touch(group(0), class, epoch, weight)
		first := tracker.Rate(group(0), epoch)
		before, clock := first, 0.0
		for _, step := range rapid.SliceOfN(rapid.Float64Range(0, 400), 1, 8).Draw(t, "steps") {
			clock += step
			tracker.Touch(group(1), class, at(clock), 1) // others move the clock too
			now := tracker.Rate(group(0), at(clock))
			if now > before || now < 0 || math.IsNaN(now) {
				t.Fatalf("from %v to %v without an access", before, now)
			}
			if want := first * math.Exp2(-clock/100); now != 0 && !near(now, want) {
				t.Fatalf("after %v s: %v, want %v", clock, now, want)
			}
			before = now
		}
		tracker.Touch(group(0), class, at(clock), 1)
		if after := tracker.Rate(group(0), at(clock)); after <= before {
			t.Fatalf("an access took the rate from %v to %v", before, after)
		}
	})
}

// A clock set back and forth never makes a group hotter than it was, unless it is used, and never odd numbers.
func TestClockThatJumpsNeverHeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tracker := New(Options{Start: epoch})
		tracker.SetHalfLife("c", 100*time.Second, epoch)
		class := tracker.Class("c")
		used, bound := 0.0, 0.0
		before := 0.0
		steps := rapid.IntRange(1, 40).Draw(t, "steps")
		for range steps {
			clock := at(rapid.Float64Range(-1e6, 1e6).Draw(t, "clock"))
			if rapid.Bool().Draw(t, "touch") {
				tracker.Touch(group(0), class, clock, 1)
				used++
				bound = used * math.Ln2 * 864
				before = math.Inf(1)
			}
			rate := tracker.Rate(group(0), clock)
			if !(rate >= 0) || rate > before*(1+1e-12) || rate > bound*(1+1e-9) {
				t.Fatalf("rate %v after %v, %v accesses", rate, before, used)
			}
			before = rate
		}
	})
}

// After the clock was set back, time goes on from there: what is not used cools.
func TestTimeGoesOnAfterAJumpBack(t *testing.T) {
	tracker := New(Options{Start: epoch})
	tracker.SetHalfLife("c", 100*time.Second, epoch)
	tracker.Touch(group(0), tracker.Class("c"), at(1e6), 8)
	first := tracker.Rate(group(0), at(1e6))
	if same := tracker.Rate(group(0), at(10)); same != first {
		t.Errorf("the jump itself took the rate from %v to %v", first, same)
	}
	if half := tracker.Rate(group(0), at(110)); !near(half, first/2) {
		t.Errorf("a half-life after the jump: %v of %v", half, first)
	}
}

func TestAnotherHalfLifeKeepsRates(t *testing.T) {
	tracker := New(Options{Start: epoch})
	tracker.SetHalfLife("c", 100*time.Second, epoch)
	class := tracker.Class("c")
	for g := range 50 {
		tracker.Touch(group(g), class, at(float64(g)), float64(1+g))
	}
	before := tracker.Rate(group(7), at(60))
	tracker.SetHalfLife("c", 1000*time.Second, at(60))
	if after := tracker.Rate(group(7), at(60)); !near(before, after) {
		t.Errorf("from %v to %v", before, after)
	}
	if later := tracker.Rate(group(7), at(1060)); !near(later, before/2) {
		t.Errorf("after the new half-life: %v of %v", later, before)
	}
	if tracker.SetHalfLife("d", -time.Second, at(60)); tracker.classes.Load().lives[tracker.Class("d")] != api.MinHalfLife.Seconds() {
		t.Error("a half-life below the least was taken")
	}
}

func TestOddAccessesAreNotCounted(t *testing.T) {
	tracker := New(Options{Start: epoch})
	class := tracker.Class("c")
	for _, weight := range []float64{0, -1, math.NaN(), math.Inf(-1)} {
		tracker.Touch(group(0), class, epoch, weight)
	}
	tracker.Touch(block.GroupID{}, class, epoch, 1)
	if groups, _ := tracker.Len(); groups != 0 {
		t.Errorf("%d groups are tracked", groups)
	}
	tracker.Touch(group(0), class, epoch, math.Inf(1))
	if rate := tracker.Rate(group(0), epoch); math.IsInf(rate, 0) || math.IsNaN(rate) {
		t.Errorf("rate %v", rate)
	}
}

// Landmarks move on; groups that were not used for long are forgotten on the way, others keep their rates.
func TestCountersOutliveManyHalfLives(t *testing.T) {
	tracker := New(Options{Start: epoch})
	tracker.SetHalfLife("c", time.Second, epoch)
	class := tracker.Class("c")
	for g := range 1000 {
		tracker.Touch(group(g), class, epoch, 1)
	}
	for second := range 3000 {
		tracker.Touch(group(0), class, at(float64(second)), 1)
	}
	for g := range 1000 { // every shard is used again
		tracker.Touch(group(10_000+g), class, at(3000), 1)
	}
	// Used every half-life, and last one half-life ago: the sum of 2^-1, 2^-2, ... is 1.
	if rate := tracker.Rate(group(0), at(3000)); !near(rate, math.Ln2*86400) {
		t.Errorf("a group used every half-life has the rate %v, want %v", rate, math.Ln2*86400)
	}
	if groups, _ := tracker.Len(); groups > 1001 {
		t.Errorf("%d groups are tracked, 1001 are used", groups)
	}
	tracker.Touch(group(0), class, at(1e9), 1) // an age too great for any float
	if rate := tracker.Rate(group(0), at(1e9)); !near(rate, math.Ln2*86400) {
		t.Errorf("one access has the rate %v", rate)
	}
}

// The coldest make room: none that is forgotten was hotter, by more than a sixteenth, than one of its shard that stays.
func TestColdestMakeRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const limit = 32 * Parts
		tracker := New(Options{Groups: limit, Start: epoch})
		class, cold := tracker.Class("c"), tracker.Class("d")
		tracker.SetHalfLife("d", 100*time.Hour, epoch)
		seed := rapid.Float64Range(0.1, 1).Draw(t, "seed")
		for count := range 4 * limit {
			use := class
			if count%2 == 0 {
				use = cold
			}
			tracker.Touch(group(count), use, epoch, 1+math.Mod(float64(count)*seed*7.31, 1000))
		}
		groups, bytes := tracker.Len()
		if groups > limit || groups < limit/2 {
			t.Fatalf("%d groups are tracked, the limit is %d", groups, limit)
		}
		if bytes > 64*int64(limit) {
			t.Fatalf("%d bytes for %d groups", bytes, groups)
		}
		s := &tracker.shards[0]
		s.evict(3)
		hottestGone, coldestKept := 0.0, math.Inf(1)
		kept := map[key]float64{}
		for i := range s.table.slots {
			if e := &s.table.slots[i]; e.sequence != 0 {
				kept[e.key()] = tracker.rateLocked(s, e)
			}
		}
		s.evict(5)
		for k, rate := range kept {
			if s.table.get(k) == nil {
				hottestGone = max(hottestGone, rate)
			} else {
				coldestKept = min(coldestKept, rate)
			}
		}
		if hottestGone > coldestKept*(1+1.0/8) {
			t.Fatalf("%v was forgotten and %v kept", hottestGone, coldestKept)
		}
		if have := len(kept) - s.table.used; have != 5 {
			t.Fatalf("%d were forgotten, want 5", have)
		}
	})
}

func (t *Tracker) rateLocked(s *shard, e *entry) float64 {
	c := s.classes[e.class]
	return rateOf(e.value()*math.Exp2(c.landmark-s.clock*c.perSecond), c.perSecond)
}

func TestDeadGroupsAreForgotten(t *testing.T) {
	tracker := New(Options{Start: epoch})
	class := tracker.Class("c")
	for g := range 300 {
		tracker.Touch(group(g), class, epoch, 1)
	}
	tracker.Forget(group(0))
	tracker.Forget(group(0))
	if tracker.Rate(group(0), epoch) != 0 {
		t.Error("a group that was forgotten is known")
	}
	walk := tracker.Begin()
	for g := 1; g < 200; g++ {
		if walk.See(group(g), epoch).Rate == 0 {
			t.Fatalf("group %d is unknown", g)
		}
	}
	tracker.Touch(group(1000), class, epoch, 1) // born while the walk was on its way
	if gone := walk.End(); gone != 100 {
		t.Errorf("%d groups were forgotten, 100 were not seen", gone)
	}
	for g := 1; g < 200; g++ {
		if tracker.Rate(group(g), epoch) == 0 {
			t.Errorf("group %d was seen and forgotten", g)
		}
	}
	if tracker.Rate(group(1000), epoch) == 0 {
		t.Error("a group that was born during the walk was forgotten")
	}
}

// The table behind the counters against a map: inserts and removals in any order.
func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var have table
		want := map[key]float64{}
		for range rapid.IntRange(1, 300).Draw(t, "operations") {
			k := key{uint64(rapid.IntRange(1, 60).Draw(t, "sequence")), uint32(rapid.IntRange(0, 2).Draw(t, "index"))}
			switch rapid.IntRange(0, 3).Draw(t, "operation") {
			case 0, 1:
				if have.get(k) == nil {
					want[k] = float64(len(want) + 1)
					have.insert(entry{sequence: k.sequence, index: k.index, own: want[k]})
				}
			case 2:
				if have.get(k) != nil {
					have.remove(have.find(k))
					delete(want, k)
				}
			case 3:
				odd := func(own float64) bool { return math.Mod(own, 3) == 1 }
				seen := map[key]int{}
				have.removeIf(func(e *entry) bool {
					seen[e.key()]++
					return odd(e.own)
				})
				for k, own := range want {
					if seen[k] != 1 {
						t.Fatalf("%v was visited %d times", k, seen[k])
					}
					if odd(own) {
						delete(want, k)
					}
				}
			}
			if have.used != len(want) {
				t.Fatalf("%d entries, want %d", have.used, len(want))
			}
			for k, own := range want {
				if e := have.get(k); e == nil || e.own != own {
					t.Fatalf("%v: have %v, want %v", k, e, own)
				}
			}
		}
	})
}

func TestConcurrentAccessesAreAllCounted(t *testing.T) {
	tracker := New(Options{Start: epoch})
	class := tracker.Class("c")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 5000 {
				tracker.Touch(group(i%100), class, epoch, 1)
				if i%500 == 0 {
					tracker.Class("other")
					tracker.Part(i%Parts, epoch)
					tracker.SetHalfLife("more", time.Duration(1+i)*time.Second, epoch)
				}
			}
		})
	}
	all.Go(func() {
		walk := tracker.Begin()
		for range 50 {
			for g := range 100 {
				walk.See(group(g), epoch)
			}
		}
	})
	all.Wait()
	for g := range 100 {
		if rate := tracker.Rate(group(g), epoch); !near(rate, 400*math.Ln2) {
			t.Fatalf("group %d: rate %v, want that of 400 accesses", g, rate)
		}
	}
}

// trackedBytes is what a tracked group may cost.
const trackedBytes = 64

func TestMemoryOfATrackedGroup(t *testing.T) {
	if size := unsafe.Sizeof(entry{}); size != entryBytes {
		t.Fatalf("an entry has %d bytes, not %d", size, entryBytes)
	}
	for _, groups := range []int{100_000, 200_000, 300_000, 1_000_000} {
		heapBefore := heap()
		tracker := New(Options{Groups: groups, Start: epoch})
		class := tracker.Class("c")
		for g := range 2 * groups { // more than there is room for
			tracker.Touch(group(g), class, epoch, 1)
		}
		used := heap() - heapBefore
		tracked, counted := tracker.Len()
		perGroup := float64(used) / float64(tracked)
		t.Logf("%d groups: %.1f bytes of heap each, %.1f of them in tables", tracked, perGroup, float64(counted)/float64(tracked))
		if perGroup > trackedBytes {
			t.Errorf("%d groups cost %.1f bytes each, at most %d are allowed", tracked, perGroup, trackedBytes)
		}
		runtime.KeepAlive(tracker)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func TestTouchAllocatesNothing(t *testing.T) {
	tracker := New(Options{Start: epoch})
	class := tracker.Class("c")
	now := time.Now()
	tracker.Touch(group(1), class, now, 1)
	if allocations := testing.AllocsPerRun(1000, func() {
		tracker.Touch(group(1), tracker.Class("c"), now, 1)
		tracker.Rate(group(1), now)
	}); allocations != 0 {
		t.Errorf("%v allocations per access", allocations)
	}
}

// What is carried to a group counts as if it had happened to it, from the first of it on.
func TestCarry(t *testing.T) {
	tracker := New(Options{Start: epoch})
	class := tracker.Class("c")
	tracker.Touch(group(1), class, at(0), 8)
	used := tracker.Used(group(1), at(1000))
	if used.Own != used.Counted {
		t.Errorf("%v of %v are its own", used.Own, used.Counted)
	}
	tracker.Touch(group(2), class, at(500), 1)
	alone := tracker.Used(group(2), at(1000))
	tracker.Carry(group(2), class, at(1000), used.Counted, used.First)
	tracker.Carry(group(3), class, at(1000), 0, used.First)
	both := tracker.Used(group(2), at(1000))
	if !near(both.Counted, used.Counted+alone.Counted) || !both.First.Equal(used.First) {
		t.Errorf("%+v and %+v together are %+v", used, alone, both)
	}
	if nothing := tracker.Used(group(3), at(1000)); nothing != (Use{}) {
		t.Errorf("nothing carried is %+v", nothing)
	}
}

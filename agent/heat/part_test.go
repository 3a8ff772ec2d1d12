package heat

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// parts returns all parts of a Tracker, nil where there is nothing to keep.
func parts(tracker *Tracker, now time.Time) [Parts][]byte {
	var list [Parts][]byte
	for i := range list {
		if part, ok := tracker.Part(i, now); ok {
			list[i] = part.Raw
			tracker.Saved(part)
		}
	}
	return list
}

func newTracker(halfLife time.Duration) *Tracker {
	tracker := New(Options{Start: epoch})
	tracker.SetHalfLife("c", halfLife, epoch)
	return tracker
}

// Gateways that each count a share of the accesses see, together, what one would that counts them all, in whatever order
// their parts are merged.
func TestMergingIsTheSumInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const halfLife, groups = 1000, 40
		list := accesses(t, groups)
		last := 0.0
		gateways := []*Tracker{newTracker(halfLife * time.Second), newTracker(halfLife * time.Second), newTracker(halfLife * time.Second)}
		for _, a := range list {
			who := gateways[rapid.IntRange(0, 2).Draw(t, "gateway")]
			who.Touch(group(a.group), who.Class("c"), at(a.seconds), a.weight)
			last = a.seconds
		}
		saved := last + rapid.Float64Range(0, 500).Draw(t, "saving")
		merged := saved + rapid.Float64Range(0, 500).Draw(t, "merging")
		var all [3][Parts][]byte
		for i, gateway := range gateways {
			all[i] = parts(gateway, at(saved))
		}
		var rates [2][groups]float64
		for round, order := range [][]int{{1, 2}, {2, 1}} {
			for range 2 { // merging once more changes nothing
				for index := range Parts {
					var others [][]byte
					for _, i := range order {
						if all[i][index] != nil {
							others = append(others, all[i][index])
						}
					}
					if _, err := gateways[0].Merge(index, others, at(merged)); err != nil {
						t.Fatal(err)
					}
				}
			}
			for g := range groups {
				rates[round][g] = gateways[0].Rate(group(g), at(merged))
			}
		}
		if rates[0] != rates[1] {
			t.Fatalf("the order matters: %v, %v", rates[0], rates[1])
		}
		for g := range groups {
			want := rateByDefinition(list, g, halfLife, merged)
			if have := rates[0][g]; math.Abs(have-want) > 1e-5*want+3*negligible*86400/halfLife {
				t.Fatalf("group %d: %v, one gateway alone would say %v", g, have, want)
			}
		}
		for index := range Parts {
			if _, err := gateways[0].Merge(index, nil, at(merged)); err != nil {
				t.Fatal(err)
			}
		}
		for g := range groups { // the others left: its own part is as it was
			if own := gateways[0].Rate(group(g), at(merged)); own > rates[0][g] {
				t.Fatalf("group %d: %v alone, %v with others", g, own, rates[0][g])
			}
		}
	})
}

// What is restored is what was saved, aged by the time in between; a clock that was set back meanwhile ages nothing and
// heats nothing.
func TestCountersSurviveARestart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const halfLife = 1000
		before := newTracker(halfLife * time.Second)
		for _, a := range accesses(t, 30) {
			before.Touch(group(a.group), before.Class("c"), at(a.seconds), a.weight)
		}
		saved := 400_000.0
		kept := parts(before, at(saved))
		gap := rapid.Float64Range(-1e6, 5000).Draw(t, "gap")
		after := New(Options{Start: at(saved + gap)})
		if rapid.Bool().Draw(t, "known") {
			after.SetHalfLife("c", halfLife*time.Second, at(saved+gap))
		}
		for index, raw := range kept {
			if raw == nil {
				continue
			}
			if err := after.Restore(index, raw, at(saved+gap)); err != nil {
				t.Fatal(err)
			}
		}
		for g := range 30 {
			was, is := before.Rate(group(g), at(saved)), after.Rate(group(g), at(saved+gap))
			want := was * math.Exp2(-max(0, gap)/halfLife)
			if is > was || math.IsNaN(is) || is < 0 || math.Abs(is-want) > 1e-5*want+3*negligible*86400/halfLife {
				t.Fatalf("group %d: %v before, %v after %v s, want %v", g, was, is, gap, want)
			}
		}
	})
}

func TestPartsAreSavedWhereTheyChanged(t *testing.T) {
	tracker := newTracker(time.Second * 10)
	for index := range Parts {
		if _, ok := tracker.Part(index, epoch); ok {
			t.Fatal("an unused part wants to be saved")
		}
	}
	tracker.Touch(group(1), tracker.Class("c"), epoch, 1)
	index := int(keyOf(group(1)).hash() >> (64 - shardBits))
	part, ok := tracker.Part(index, epoch)
	if !ok || part.Raw == nil {
		t.Fatal("a used part does not want to be saved")
	}
	if _, again := tracker.Part(index, epoch); !again {
		t.Error("what was not saved was taken for saved")
	}
	tracker.Touch(group(1), tracker.Class("c"), epoch, 1)
	tracker.Saved(part)
	if part, ok = tracker.Part(index, epoch); !ok {
		t.Error("an access after the part was taken was taken for saved")
	}
	tracker.Saved(part)
	if _, again := tracker.Part(index, at(5)); again {
		t.Error("time alone wants to be saved")
	}
	tracker.Forget(group(1))
	if part, ok = tracker.Part(index, at(5)); !ok || part.Raw != nil {
		t.Error("a part without groups is kept")
	}
}

func TestPartsOfTheColdAreSpent(t *testing.T) {
	tracker := newTracker(10 * time.Second)
	tracker.Touch(group(1), tracker.Class("c"), epoch, 1)
	index := int(keyOf(group(1)).hash() >> (64 - shardBits))
	part, _ := tracker.Part(index, epoch)
	other := New(Options{Start: epoch})
	if spent, err := other.Merge(index, [][]byte{part.Raw}, at(100)); err != nil || len(spent) != 0 || other.Rate(group(1), at(100)) == 0 {
		t.Errorf("after ten half-lives: spent %v, %v", spent, err)
	}
	if spent, err := other.Merge(index, [][]byte{{9}, part.Raw}, at(1000)); !errors.Is(err, ErrPart) || len(spent) != 1 || spent[0] != 1 {
		t.Errorf("after a hundred half-lives, beside a damaged one: spent %v, %v", spent, err)
	}
	if rate := other.Rate(group(1), at(1000)); rate != 0 {
		t.Errorf("rate %v", rate)
	}
}

// Damaged parts are errors and change nothing; what is read is finite and written as it was.
func FuzzPart(f *testing.F) {
	tracker := newTracker(10 * time.Second)
	for g := range 200 {
		tracker.Touch(group(g), tracker.Class("c"), epoch, float64(g+1))
	}
	for index := range 3 {
		part, _ := tracker.Part(index, epoch)
		f.Add(index, part.Raw)
	}
	f.Add(0, []byte{partVersion, 0, 1, 1, 'c', 1, 1, 1, 0, 0, 0, 0, 0x80, 0x7f})
	f.Fuzz(func(t *testing.T, index int, raw []byte) {
		index = (index%Parts + Parts) % Parts
		read := New(Options{Start: epoch})
		err := read.Restore(index, raw, epoch)
		groups, _ := read.Len()
		if err != nil {
			if !errors.Is(err, ErrPart) || groups > 0 {
				t.Fatalf("%v, and %d groups", err, groups)
			}
			return
		}
		s := &read.shards[index]
		for i := range s.table.slots {
			if e := &s.table.slots[i]; e.sequence != 0 && !(e.own > 0 && !math.IsInf(e.own, 0)) {
				t.Fatalf("%+v", e)
			}
		}
		s.touched++
		part, _ := read.Part(index, epoch)
		if part.Raw == nil {
			return
		}
		again := New(Options{Start: epoch})
		if err := again.Restore(index, part.Raw, epoch); err != nil {
			t.Fatal(err)
		}
		again.shards[index].touched++
		if twice, _ := again.Part(index, epoch); !bytes.Equal(part.Raw, twice.Raw) {
			t.Fatalf("%x became %x", part.Raw, twice.Raw)
		}
	})
}

// When a group was first used is what the first gateway knows that used it, after a restart too; a part of version 1 says
// nothing of it.
func TestTheFirstUseIsKnown(t *testing.T) {
	const halfLife = 1e6 * time.Second
	here, there := newTracker(halfLife), newTracker(halfLife)
	there.Touch(group(1), there.Class("c"), at(100), 1)
	here.Touch(group(1), here.Class("c"), at(500), 1)
	index := int(keyOf(group(1)).hash() >> (64 - shardBits))
	early, _ := there.Part(index, at(600))
	late, _ := here.Part(index, at(600))
	if _, err := here.Merge(index, [][]byte{early.Raw}, at(700)); err != nil {
		t.Fatal(err)
	}
	if used := here.Used(group(1), at(700)); !used.First.Equal(at(100)) || math.Abs(used.Counted-2) > 0.01 {
		t.Errorf("used first at %v, want %v; counted %v, want 2", used.First, at(100), used.Counted)
	}
	if used := here.Used(group(2), at(700)); used != (Use{}) {
		t.Errorf("a group that was not used: %+v", used)
	}
	again := newTracker(halfLife)
	if err := again.Restore(index, late.Raw, at(900)); err != nil {
		t.Fatal(err)
	}
	if used := again.Used(group(1), at(900)); !used.First.Equal(at(500)) {
		t.Errorf("after a restart it was used first at %v, want %v", used.First, at(500))
	}
	// Version 1 is the same without the last number of each group.
	old := append([]byte{partWithoutFirst}, late.Raw[1:len(late.Raw)-1]...)
	again = newTracker(halfLife)
	if err := again.Restore(index, old, at(900)); err != nil {
		t.Fatal(err)
	}
	if used := again.Used(group(1), at(900)); !used.First.Equal(at(600).Add(-firstUnknown)) || used.Rate == 0 {
		t.Errorf("of an earlier release: %+v, want first used at %v", used, at(600).Add(-firstUnknown))
	}
}

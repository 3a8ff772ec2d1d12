package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/restripe/restripe/operator/replay"
)

// synthetic are traces of a thousand objects of 1 MiB, written within the first half day, that are hard in one way each.
func synthetic(days float64) []*replay.Trace {
	// popular is how many times a day an object of a rank is used, as web objects are.
	popular := func(rank int) float64 { return 300 / float64(rank+1) }
	always := func(rate float64) func(int, float64) float64 { return func(int, float64) float64 { return rate } }
	kinds := []struct {
		name string
		rate func(object int, day float64) float64 // uses a day
	}{
		{"all used once in two days", always(0.5)},
		{"all used twice a day", always(2)},
		{"all used 20 times a day", always(20)},
		{"popular ones", func(object int, _ float64) float64 { return popular(object) }},
		{"popular ones, all read in one hour each day", func(object int, day float64) float64 {
			if math.Mod(day, 1) < 1.0/24 {
				return popular(object) + 24
			}
			return popular(object)
		}},
		{"popular ones, others every four days", func(object int, day float64) float64 {
			return popular((object*7919 + int(day/4)*331) % 1000)
		}},
		{"popular ones, by day and not by night", func(object int, day float64) float64 {
			return popular(object) * (1 + math.Sin(2*math.Pi*day))
		}},
		{"one in twenty for one day each", func(object int, day float64) float64 {
			if object%20 == int(day)%20 {
				return 50
			}
			return 0.05
		}},
	}
	traces := make([]*replay.Trace, len(kinds))
	for i, kind := range kinds {
		traces[i] = drawn(kind.name, days, uint64(i), kind.rate)
	}
	return traces
}

// drawn is a trace whose uses are those of Poisson processes with the given rates.
func drawn(name string, days float64, seed uint64, rate func(object int, day float64) float64) *replay.Trace {
	random := rand.New(rand.NewPCG(seed, 0))
	t := &replay.Trace{Name: name}
	use := func(object int, day float64) {
		if day < days {
			t.Accesses = append(t.Accesses, replay.Access{At: time.Duration(day * 24 * float64(time.Hour)), Group: object})
		}
	}
	for object := range 1000 {
		t.Bytes = append(t.Bytes, 1<<20)
		first := random.Float64() / 2
		use(object, first)
		for hour := first; hour < days; hour += 1.0 / 24 {
			expected := rate(object, hour) / 24
			for passed := random.ExpFloat64(); passed < expected; passed += random.ExpFloat64() {
				use(object, hour+random.Float64()/24)
			}
		}
	}
	slices.SortStableFunc(t.Accesses, func(a, b replay.Access) int { return cmp.Compare(a.At, b.At) })
	return t
}

// halvesOf are the first and the second half of a trace, each stretched over as many days as all of it.
func halvesOf(t *replay.Trace, days float64) []*replay.Trace {
	middle := time.Duration(days * 12 * float64(time.Hour))
	parts := []*replay.Trace{{Name: t.Name + ", first half"}, {Name: t.Name + ", second half"}}
	known := []replay.Numbering[int]{{}, {}}
	for _, a := range t.Accesses {
		half := 0
		if a.At >= middle {
			half, a.At = 1, a.At-middle
		}
		p := parts[half]
		p.Accesses = append(p.Accesses, replay.Access{At: 2 * a.At, Group: known[half].Of(p, a.Group, t.Bytes[a.Group])})
	}
	return parts
}

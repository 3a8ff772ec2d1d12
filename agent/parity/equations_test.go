package parity

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/stripe"
)

func equations(t rapid.TB, ladder string, scheme stripe.Scheme) *Equations {
	t.Helper()
	parsed, err := stripe.ParseLadder(ladder)
	if err != nil {
		t.Fatal(err)
	}
	layout, err := stripe.NewLayout(parsed, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(layout, scheme)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// right makes fingerprints of chance that fulfil every equation.
func right(e *Equations, source *rand.Rand) Prints {
	prints := e.Unknown()
	for slot := range e.Columns() {
		for unit := range prints[slot] {
			prints[slot][unit] = Unit{Known: true, Print: chance(source)}
		}
	}
	for index, cells := range e.partition.Stripes {
		for p := range e.scheme.M {
			var coefficients []byte
			var known []block.Fingerprint
			for _, cell := range cells {
				column := int(cell) % e.layout.Columns
				coefficients = append(coefficients, stripe.Coefficient(p, column))
				known = append(known, prints[column][int(cell)/e.layout.Columns].Print)
			}
			prints[e.Columns()+p][index] = Unit{Known: true, Print: kernel.Combine(coefficients, known)}
		}
	}
	return prints
}

func chance(source *rand.Rand) (print block.Fingerprint) {
	for i := range print {
		print[i] = byte(source.Uint32())
	}
	return print
}

func comparePlaces(a, b Place) int {
	if a.Slot != b.Slot {
		return a.Slot - b.Slot
	}
	return a.Unit - b.Unit
}

// TestWrongUnitsAreFound breaks units of a stripe and hides others: as long as they are fewer than the parities, exactly
// the broken ones are found; with as many or more the stripe is known to be broken, if any equation is left.
func TestWrongUnitsAreFound(t *testing.T) {
	schemes := []struct {
		ladder string
		scheme stripe.Scheme
	}{
		{"rep(3),rs(3,2),rs(6,2)", stripe.Replicas(3)}, {"rep(3),rs(3,2),rs(6,2)", stripe.RS(3, 2)},
		{"rs(4,2),rs(5,2)", stripe.RS(4, 2)}, {"rs(4,1)", stripe.RS(4, 1)}, {"rs(6,3)", stripe.RS(6, 3)}, {"rs(8,4),rs(12,4)", stripe.RS(8, 4)},
	}
	rapid.Check(t, func(t *rapid.T) {
		chosen := rapid.SampledFrom(schemes).Draw(t, "scheme")
		e := equations(t, chosen.ladder, chosen.scheme)
		source := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		prints := right(e, source)
		if stripes := e.Judge(prints); len(stripes) != 0 {
			t.Fatalf("what is right is judged %+v", stripes)
		}
		index := rapid.IntRange(0, e.Stripes()-1).Draw(t, "stripe")
		members := e.Members(index)
		source.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		wrong := rapid.IntRange(0, min(len(members), e.scheme.M+1)).Draw(t, "wrong")
		hidden := rapid.IntRange(0, min(len(members)-wrong, e.scheme.M)).Draw(t, "hidden")
		for i, place := range members[:wrong+hidden] {
			if i < wrong {
				prints[place.Slot][place.Unit].Print = chance(source)
			} else {
				prints[place.Slot][place.Unit] = Unit{}
			}
		}
		stripes := e.Judge(prints)
		if wrong+hidden == 0 {
			if len(stripes) != 0 {
				t.Fatalf("what is right is judged %+v", stripes)
			}
			return
		}
		if len(stripes) != 1 || stripes[0].Index != index {
			t.Fatalf("judged %+v, want stripe %d alone", stripes, index)
		}
		got := stripes[0]
		want := slices.Clone(members[:wrong])
		slices.SortFunc(want, comparePlaces)
		slices.SortFunc(got.Wrong, comparePlaces)
		switch {
		case hidden >= e.scheme.M || wrong == 0:
			if got.Broken || len(got.Wrong) > 0 {
				t.Fatalf("judged %+v where no equation is left, or none is broken", got)
			}
		case wrong+hidden < e.scheme.M:
			if !got.Broken || !slices.Equal(got.Wrong, want) {
				t.Fatalf("found %v, want %v", got.Wrong, want)
			}
		default:
			if !got.Broken || len(got.Wrong) > 0 {
				t.Fatalf("judged %+v with %d wrong and %d unknown units of %s", got, wrong, hidden, e.scheme)
			}
		}
		if len(got.Unknown) != hidden || e.Holds(prints) != !got.Broken {
			t.Fatalf("%d units are unknown, judged %+v", hidden, got)
		}
	})
}

// TestOneParityOnlyDetects: with m = 1 a wrong unit is noticed and cannot be told from the others.
func TestOneParityOnlyDetects(t *testing.T) {
	e := equations(t, "rs(4,1)", stripe.RS(4, 1))
	prints := right(e, rand.New(rand.NewPCG(7, 7)))
	prints[2][0].Print[3] ^= 1
	stripes := e.Judge(prints)
	if len(stripes) != 1 || !stripes[0].Broken || stripes[0].Wrong != nil || stripes[0].Checks != 1 {
		t.Fatalf("judged %+v, want one broken stripe and no wrong unit", stripes)
	}
}

// TestWithoutParityNothingIsChecked: rep(1) has no equations.
func TestWithoutParityNothingIsChecked(t *testing.T) {
	e := equations(t, "rep(1)", stripe.Replicas(1))
	prints := right(e, rand.New(rand.NewPCG(8, 8)))
	prints[0][0].Print[3] ^= 1
	if stripes := e.Judge(prints); len(stripes) != 0 {
		t.Fatalf("judged %+v", stripes)
	}
}

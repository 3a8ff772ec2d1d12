package parity

import (
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/stripe"
)

// Equations are the parity equations of a group under one scheme: m for each stripe. Immutable.
type Equations struct {
	layout    *stripe.Layout
	scheme    stripe.Scheme
	partition *stripe.Partition
}

// New returns the equations of a group with this layout under a scheme of its ladder.
func New(layout *stripe.Layout, scheme stripe.Scheme) (*Equations, error) {
	partition, err := layout.Partition(scheme.K)
	if err != nil {
		return nil, fmt.Errorf("parity equations of %s: %w", scheme, err)
	}
	return &Equations{layout: layout, scheme: scheme, partition: partition}, nil
}

// Slots is the number of slots: data columns, then parity rows.
func (e *Equations) Slots() int { return e.layout.Columns + e.scheme.M }

// Stripes is the number of stripes, which is that of the units of a parity row.
func (e *Equations) Stripes() int { return len(e.partition.Stripes) }

// Columns is the number of data columns, which is the slot of the first parity row.
func (e *Equations) Columns() int { return e.layout.Columns }

// Scheme is the scheme of the equations.
func (e *Equations) Scheme() stripe.Scheme { return e.scheme }

// MaxParity is the largest number of parity rows that the ladder of the group has.
func (e *Equations) MaxParity() int { return e.layout.Ladder.MaxParity() }

// SameStripes reports whether the parities of two groups of equal rows and columns are of the same stripes.
func (e *Equations) SameStripes(other *Equations) bool {
	return e.scheme.K == other.scheme.K && e.layout.SameStripes(other.layout, e.scheme.K)
}

// Units is the number of units of a slot that are stored: none of an empty column.
func (e *Equations) Units(slot int) int {
	if e.layout.IsEmpty(slot) {
		return 0
	}
	if slot < e.layout.Columns {
		return e.layout.Rows
	}
	return len(e.partition.Stripes)
}

// Place is one unit of a group: a cell, or the parity block of one stripe in one row.
type Place struct {
	Slot int `json:"slot"`
	Unit int `json:"unit"`
}

// Unit is what is known of the unit at a place.
type Unit struct {
	Known bool
	Print block.Fingerprint // of the whole unit, where it is known
}

// Prints hold what is known of a group: [slot][unit], of the numbers that Slots and Units give.
type Prints [][]Unit

// Unknown returns Prints of which nothing is known yet.
func (e *Equations) Unknown() Prints {
	prints := make(Prints, e.Slots())
	for slot := range prints {
		prints[slot] = make([]Unit, e.Units(slot))
	}
	return prints
}

// Stripe is what the equations say of one stripe whose equations do not all hold, or cannot all be checked.
type Stripe struct {
	Index   int
	Unknown []Place // units of which nothing is known
	Broken  bool    // the equations contradict what is known
	// Wrong are the units that contradict the others, found by the syndromes; none where Broken is set and they cannot be
	// told: there are as many unknown and wrong units as parities, or more.
	Wrong []Place
	// Checks is how many equations were left to check by: m less the unknown units.
	Checks int
}

// Judge checks every equation and returns the stripes that are not known to be right, by index.
//
// Wrong units are found from the syndromes, the differences between each parity's fingerprint and what the cells say it
// should be. An error in one unit makes the syndromes multiples of that unit's column of the parity-check matrix, and any m
// of those columns are independent. So the columns that lie in the space that the syndromes and the columns of unknown
// units span are those of the wrong units, as long as there are fewer of both than m and the errors do not depend on each
// other linearly; the latter is all but certain of 16 bytes of chance, and false of errors that are made to.
func (e *Equations) Judge(prints Prints) []Stripe {
	var stripes []Stripe
	for index := range e.partition.Stripes {
		if s := e.judge(prints, index); s.Broken || len(s.Unknown) > 0 {
			stripes = append(stripes, s)
		}
	}
	return stripes
}

// Holds reports whether nothing that is known contradicts the equations.
func (e *Equations) Holds(prints Prints) bool {
	return !slices.ContainsFunc(e.Judge(prints), func(s Stripe) bool { return s.Broken })
}

// Members are the units of a stripe that are stored: its cells, but for those of empty columns, which are zeros in every equation; then
// its parity blocks.
func (e *Equations) Members(index int) []Place {
	var places []Place
	for _, cell := range e.partition.Stripes[index] {
		if e.layout.IsEmpty(int(cell) % e.layout.Columns) {
			continue
		}
		places = append(places, Place{Slot: int(cell) % e.layout.Columns, Unit: int(cell) / e.layout.Columns})
	}
	for p := range e.scheme.M {
		places = append(places, Place{Slot: e.layout.Columns + p, Unit: index})
	}
	return places
}

func (e *Equations) judge(prints Prints, index int) Stripe {
	s := Stripe{Index: index, Checks: e.scheme.M}
	members := e.Members(index)
	var space space
	for _, place := range members {
		if !prints[place.Slot][place.Unit].Known {
			s.Unknown = append(s.Unknown, place)
			s.Checks--
			space.add(e.column(place))
		}
	}
	if s.Checks <= 0 {
		s.Checks = 0
		return s
	}
	for _, syndrome := range e.syndromes(prints, members) {
		if syndrome != (vector{}) && space.add(syndrome) {
			s.Broken = true
		}
	}
	if !s.Broken || space.rank() >= e.scheme.M {
		return s
	}
	for _, place := range members {
		if prints[place.Slot][place.Unit].Known && space.has(e.column(place)) {
			s.Wrong = append(s.Wrong, place)
		}
	}
	if len(s.Wrong)+len(s.Unknown) != space.rank() {
		s.Wrong = nil
	}
	return s
}

// column is a unit's column of the parity-check matrix: what it is multiplied by in each equation.
func (e *Equations) column(place Place) (column vector) {
	if place.Slot >= e.layout.Columns {
		column[place.Slot-e.layout.Columns] = 1
		return column
	}
	for p := range e.scheme.M {
		column[p] = stripe.Coefficient(p, place.Slot)
	}
	return column
}

// syndromes returns, for each byte of a fingerprint, the m differences between what is and what should be; units that are
// not known count as zero.
func (e *Equations) syndromes(prints Prints, members []Place) [16]vector {
	var syndromes [16]vector
	coefficients := make([]byte, len(members))
	known := make([]block.Fingerprint, len(members))
	for i, place := range members {
		if unit := prints[place.Slot][place.Unit]; unit.Known {
			known[i] = unit.Print
		}
	}
	for p := range e.scheme.M {
		for i, place := range members {
			coefficients[i] = e.column(place)[p]
		}
		for i, value := range kernel.Combine(coefficients, known) {
			syndromes[i][p] = value
		}
	}
	return syndromes
}

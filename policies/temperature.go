package policies

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// coverage looks for rules that never hold, heats with two rules, and heats between rules with none.
func (r *ruler) coverage(bands []band) {
	for i, b := range bands {
		left := []band{b}
		for _, earlier := range bands[:i] {
			left = without(left, earlier)
		}
		if len(left) == 0 {
			r.wrongAt(b.path, "never holds: the rules above it take everything %s; take it out, or change the bounds", b.words())
			continue
		}
		for j, earlier := range bands[:i] {
			if low, high := max(b.atLeast, earlier.atLeast), min(b.below, earlier.below); low < high {
				r.warn(b.path, "overlaps rules[%d] %s; the first rule wins: make the bounds meet", j, band{atLeast: low, below: high}.words())
			}
		}
	}
	edges := slices.Clone(bands)
	slices.SortFunc(edges, func(a, b band) int { return cmp.Compare(a.atLeast, b.atLeast) })
	reached := math.Inf(-1)
	for i, b := range edges {
		if i > 0 && b.atLeast > reached {
			r.warn(b.path, "leaves a gap: what is used %s matches no rule and stays where it is; make the bounds meet, or keep the gap if that is meant",
				band{atLeast: reached, below: b.atLeast}.words())
		}
		reached = max(reached, b.below)
	}
}

// without takes a band out of others.
func without(bands []band, out band) []band {
	var left []band
	for _, b := range bands {
		if low := (band{atLeast: b.atLeast, below: min(b.below, out.atLeast)}); low.atLeast < low.below {
			left = append(left, low)
		}
		if high := (band{atLeast: max(b.atLeast, out.below), below: b.below}); high.atLeast < high.below {
			left = append(left, high)
		}
	}
	return left
}

// words says a band for people.
func (b band) words() string {
	switch bounded := !math.IsInf(b.below, 1); {
	case bounded && b.atLeast > 0:
		return fmt.Sprintf("at least %g and less than %g times a day", b.atLeast, b.below)
	case bounded:
		return fmt.Sprintf("less than %g times a day", b.below)
	case b.atLeast > 0:
		return fmt.Sprintf("at least %g times a day", b.atLeast)
	}
	return "however often"
}

// order warns of rules that send hotter groups further down the ladder than colder ones.
func (r *ruler) order(bands []band, ladder []v1alpha1.SchemeName) {
	for _, hot := range bands {
		for _, cold := range bands {
			up, down := slices.Index(ladder, hot.scheme), slices.Index(ladder, cold.scheme)
			if hot.atLeast >= cold.below && up >= 0 && down >= 0 && up > down {
				r.warn(hot.path, "puts what is used %s under %s, further down the ladder than %s for what is used %s; swap the schemes",
					hot.words(), hot.scheme, cold.scheme, cold.words())
			}
		}
	}
}

// leastHeat is the heat below which the gateways' histogram has one bucket.
const leastHeat = 1.0 / 64

// defaultHysteresisPercent is the default of the API.
const defaultHysteresisPercent = 25

// resolution warns of bounds so low that the histogram cannot tell what is below them.
func (r *ruler) resolution(bands []band, temperature *v1alpha1.Temperature) {
	hysteresis := int32(defaultHysteresisPercent)
	if temperature.HysteresisPercent != nil {
		hysteresis = *temperature.HysteresisPercent
	}
	for _, b := range bands {
		if lowest := b.atLeast * float64(100-hysteresis) / 100; b.atLeast > 0 && lowest < leastHeat {
			r.warn(b.path+".atLeast", "is %g; heat below %.4f accesses a day (once in 64 days) is not told apart, so with a hysteresis of %d %% nothing cools out of this step; give at least %.2g",
				b.atLeast, leastHeat, hysteresis, math.Ceil(leastHeat*10000/float64(100-hysteresis))/100)
		}
	}
}

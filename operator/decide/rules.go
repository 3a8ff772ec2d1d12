package decide

import (
	"math"
	"slices"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// Rules are temperature rules as bands: which heat belongs on which rung. Heats between the bands belong where they are. Or
// they are those of a candidate.
type Rules struct {
	bands      []band // ascending, disjoint
	hysteresis float64
	candidate  *followed // in place of bands
}

type band struct {
	HeatRange
	to stripe.Scheme
}

// defaultHysteresisPercent is the default of the API.
const defaultHysteresisPercent = 25

func newRules(temperature *v1alpha1.Temperature, schemes Schemes, ladder stripe.Ladder) (*Rules, *Problem) {
	rules := Rules{hysteresis: defaultHysteresisPercent / 100.0}
	if temperature.HysteresisPercent != nil {
		rules.hysteresis = float64(*temperature.HysteresisPercent) / 100
	}
	if len(temperature.Rules) == 0 {
		return nil, problem(ReasonInvalidRules, "temperature.rules is missing; give rules, or mode auto, which needs none")
	}
	var wanted []band
	edges := []float64{0, math.Inf(1)}
	for i, rule := range temperature.Rules {
		scheme, wrong := schemes.Resolve(rule.Scheme)
		if wrong != nil {
			return nil, wrong
		}
		if !ladder.Contains(scheme) {
			return nil, problem(ReasonInvalidRules, "temperature.rules[%d] names %s, which is not on the ladder %s; name a step of the ladder", i, rule.Scheme, ladder)
		}
		bounds := Everything()
		if rule.AtLeast != nil {
			bounds.AtLeast = rule.AtLeast.AsApproximateFloat64()
		}
		if rule.Below != nil {
			bounds.Below = rule.Below.AsApproximateFloat64()
		}
		if bounds.AtLeast < 0 || bounds.Below <= bounds.AtLeast {
			return nil, problem(ReasonInvalidRules, "temperature.rules[%d] holds for no heat: atLeast must not be negative, and below must be more than atLeast", i)
		}
		wanted = append(wanted, band{bounds, scheme})
		edges = append(edges, bounds.AtLeast, bounds.Below)
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	for i := range len(edges) - 1 {
		piece := HeatRange{AtLeast: edges[i], Below: edges[i+1]}
		first := slices.IndexFunc(wanted, func(rule band) bool { return piece.within(rule.HeatRange) })
		if first >= 0 {
			rules.add(band{piece, wanted[first].to})
		}
	}
	return &rules, nil
}

// add appends a band, to the last one where it goes on.
func (r *Rules) add(next band) {
	if last := len(r.bands) - 1; last >= 0 && r.bands[last].to == next.to && r.bands[last].Below == next.AtLeast {
		r.bands[last].Below = next.Below
		return
	}
	r.bands = append(r.bands, next)
}

// keeps reports whether a group under a scheme with a heat in the range must stay for hysteresis: the scheme's own bands
// reach past their bounds by it.
func (r *Rules) keeps(scheme stripe.Scheme, heat HeatRange) bool {
	return slices.ContainsFunc(r.bands, func(b band) bool {
		wide := HeatRange{AtLeast: b.AtLeast * (1 - r.hysteresis), Below: b.Below * (1 + r.hysteresis)}
		return b.to == scheme && wide.Overlaps(heat)
	})
}

// Target returns where groups under a scheme belong whose heat is somewhere in the range, if all of them must leave. A
// range that lies across a bound between two other rungs goes to the one nearer to where it comes from: from there, it
// may still go on.
func (r *Rules) Target(from stripe.Scheme, heat HeatRange) (to stripe.Scheme, leaves bool) {
	if r.candidate != nil {
		return r.candidate.target(from, heat)
	}
	if r.keeps(from, heat) {
		return stripe.Scheme{}, false
	}
	reached := heat.AtLeast
	var over []band
	for _, b := range r.bands {
		if b.Overlaps(heat) && b.AtLeast <= reached {
			over, reached = append(over, b), b.Below
		}
	}
	if len(over) == 0 || reached < heat.Below {
		return stripe.Scheme{}, false // some of it belongs where it is
	}
	if r.above(from, heat) {
		return over[0].to, true
	}
	return over[len(over)-1].to, true
}

// above reports whether a heat is above the bands of a scheme.
func (r *Rules) above(scheme stripe.Scheme, heat HeatRange) bool {
	return slices.ContainsFunc(r.bands, func(b band) bool { return b.to == scheme && b.Below <= heat.AtLeast })
}

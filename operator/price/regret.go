package price

import (
	"strconv"
	"strings"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// Regret is what the choices that were carried out for a class cost, beside what others would have cost over the same time.
type Regret struct {
	Days  float64 // over which all of it was paid; 0: nothing is known yet
	Paid  float64 // where groups really were, with their moves
	Ways  []Way   // to choose
	Fixed *Way    // the cheapest that has everything on one code; nil: nothing is known yet
	// Rules: the policy's rules choose, and none of Ways leads.
	Rules bool
	// SavedPerMonth is how much less was paid than by Fixed; negative: more.
	SavedPerMonth float64
}

// Way is one way to choose the steps of groups, and what it would have cost.
type Way struct {
	Text  string
	Paid  float64
	Leads bool
	Fixed bool // everything is on one code
}

// RegretOf reads the books of mode auto.
func RegretOf(status *v1alpha1.TemperatureStatus) Regret {
	var r Regret
	if status.LookedAt != nil {
		r.Days = max(0, status.LookedAt.Sub(status.CountedSince.Time).Hours()/24)
	}
	r.Paid, r.Rules = amountOf(status.Done), status.Candidate == v1alpha1.TemperatureByRules
	for i := range status.Candidates {
		one := &status.Candidates[i]
		r.Ways = append(r.Ways, Way{
			Text: one.Text, Paid: amountOf(one.Cost), Leads: one.Name == status.Candidate, Fixed: strings.HasPrefix(one.Name, "always "),
		})
	}
	if r.Days < 1.0/24 || r.Paid == 0 { // the books were opened, and nothing is in them
		r.Days = 0
		return r
	}
	for i := range r.Ways {
		if way := &r.Ways[i]; way.Fixed && (r.Fixed == nil || way.Paid < r.Fixed.Paid) {
			r.Fixed = way
		}
	}
	if r.Fixed != nil {
		r.SavedPerMonth = (r.Fixed.Paid - r.Paid) / r.Days * daysOfMonth
	}
	return r
}

// amountOf is an amount of the books, which are in bytes by the prices of Rungs.
func amountOf(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return Bytes(n)
}

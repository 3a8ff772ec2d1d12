package decide

import (
	"fmt"
	"math"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/heat/shadow"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
)

// Leader is the candidate that leads a class under temperature.mode auto, with the books by which it does. The status of the
// policy keeps it.
type Leader struct {
	Lead
	Rules    bool      // nobody leads: the policy's rules choose, and the books say what that costs
	Since    time.Time // leads since then
	Reason   string    // why, in words
	Counted  time.Time // since when Total and Cost go
	LookedAt time.Time // when candidates were compared last; zero: not yet
	Books    time.Time // since when the gateway's books go that Seen is of
	Done     float64   // what it cost where groups really were
	doneSeen float64   // the gateway's figure at the last look
	// GroupBytes is what groups have, by which their rungs are priced.
	GroupBytes int64

	ladder     stripe.Ladder
	candidates []shadow.Candidate
}

// lookEvery is how often candidates are compared.
const lookEvery = 24 * time.Hour

// LeaderOf returns the leader of a class as a status has it; where that has none, or one of other candidates or of another ladder,
// the first one leads from now on, or rules do.
func LeaderOf(status *v1alpha1.TemperatureStatus, ladder stripe.Ladder, rules bool, now time.Time) Leader {
	l := Leader{ladder: ladder, candidates: shadow.Candidates(len(ladder)), GroupBytes: api.DefaultGroupBytes, Rules: rules}
	l.Candidate = shadow.First
	l.Since, l.Counted = now, now
	l.Reason = "nothing is known of the class yet; with this one no group gets colder than they are on average"
	if rules {
		l.Reason = "the policy has temperature rules"
	}
	if status == nil || status.Ladder != ladder.String() || len(status.Candidates) != len(l.candidates) {
		return l
	}
	known := l
	for _, list := range []*[]float64{&known.Paid, &known.Total, &known.Seen} {
		*list = make([]float64, len(l.candidates))
	}
	known.Candidate = -1
	if rules && status.Candidate == v1alpha1.TemperatureByRules {
		known.Candidate = shadow.First
	}
	for i := range l.candidates {
		one := &status.Candidates[i]
		if one.Name != l.candidates[i].Name() {
			return l
		}
		if one.Name == status.Candidate && !rules {
			known.Candidate = i
		}
		known.Paid[i], known.Total[i], known.Seen[i] = amountOf(one.Lately), amountOf(one.Cost), amountOf(one.Seen)
	}
	if known.Candidate < 0 {
		return l
	}
	known.Cost, known.Ways, known.Days = amountOf(status.Cost), amountOf(status.Ways), amountOf(status.Days)
	known.Done, known.doneSeen = amountOf(status.Done), amountOf(status.DoneSeen)
	known.Since, known.Reason, known.Counted = status.Since.Time, status.Reason, status.CountedSince.Time
	if status.LookedAt != nil {
		known.LookedAt = status.LookedAt.Time
	}
	if status.BooksSince != nil {
		known.Books = status.BooksSince.Time
	}
	if status.GroupBytes > 0 {
		known.GroupBytes = status.GroupBytes
	}
	return known
}

// amountOf reads what text has written.
func amountOf(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0) {
		return 0
	}
	return n
}

func numberText(n float64) string { return strconv.FormatFloat(n, 'g', 10, 64) }

// Look compares the candidates by what gateways report of a class, where that is due: once a day. money puts an amount into words.
// changed is whether another one leads from now on.
func (l *Leader) Look(now time.Time, heat *ClassHeat, money func(amount float64) string) (changed bool) {
	if heat == nil || !heat.Complete || heat.Shadows == nil {
		return false
	}
	costs, way, same := l.booksOf(heat.Shadows)
	since := heat.Shadows.Since.Truncate(time.Second)
	switch first := l.Books.IsZero(); {
	case !same: // of another release, or not yet of the ladder
		return false
	case first:
		l.Seen, l.doneSeen = costs, heat.Shadows.Done
		l.Books, l.LookedAt, l.GroupBytes = since, now, groupBytes(heat, l.GroupBytes)
		return false
	case now.Sub(l.LookedAt).Abs() < lookEvery:
		return false
	case l.Books.Equal(since):
	case since.After(l.LookedAt): // begun anew by a gateway that started: all that is in them is of after the last look
		l.Seen, l.doneSeen = nil, 0
	default: // of another gateway: what they say of the time before the last look cannot be told apart
		l.Seen, l.doneSeen = costs, heat.Shadows.Done
	}
	l.Done, l.doneSeen = l.Done+max(0, heat.Shadows.Done-l.doneSeen), heat.Shadows.Done
	counted := l.count(costs)
	if l.Lead = counted; !l.Rules {
		l.Lead = counted.elect(way)
	}
	l.Books, l.LookedAt, l.GroupBytes = since, now, groupBytes(heat, l.GroupBytes)
	if l.Candidate == counted.Candidate {
		return false
	}
	l.Reason = fmt.Sprintf("it would have cost %s since %s, where %s cost %s; the way there costs at most %s",
		money(counted.Paid[l.Candidate]), words.Time(l.Since), l.text(counted.Candidate), money(counted.Paid[counted.Candidate]),
		money(way[l.Candidate]))
	l.Since = now
	return true
}

// booksOf returns what candidates cost so far and what the way to them would, in their order; ok is false where a gateway reports
// others.
func (l *Leader) booksOf(shadows *api.Shadows) (costs, way []float64, ok bool) {
	if len(shadows.Candidates) != len(l.candidates) {
		return nil, nil, false
	}
	for i := range l.candidates {
		one := &shadows.Candidates[i]
		if one.Name != l.candidates[i].Name() {
			return nil, nil, false
		}
		costs, way = append(costs, one.Cost), append(way, one.Way)
	}
	return costs, way, true
}

// groupBytes is what the groups of a class have on average, to a power of two. What differs little stays as it was, so that
// prices do not change each day.
func groupBytes(heat *ClassHeat, was int64) int64 {
	var groups, bytes int64
	for i := range heat.Rungs {
		groups, bytes = groups+heat.Rungs[i].Groups, bytes+heat.Rungs[i].Bytes
	}
	if groups == 0 || bytes == 0 {
		return was
	}
	mean := float64(bytes) / float64(groups)
	if ratio := mean / float64(was); ratio > 0.6 && ratio < 1.7 {
		return was
	}
	return int64(math.Exp2(math.Round(math.Log2(mean))))
}

func (l *Leader) text(i int) string { return CandidateText(l.candidates[i], l.ladder) }

// CandidateText is a candidate in words.
func CandidateText(c shadow.Candidate, ladder stripe.Ladder) string {
	if c.Always != shadow.ByUse {
		return "everything on " + ladder[c.Always].String()
	}
	floor := ""
	if c.Floor {
		floor = ", none below the mean"
	}
	return fmt.Sprintf("by use (half-life %s, slack %g, hotter where it pays within %s%s)", words.Span(c.HalfLife), c.Slack,
		words.Span(c.Within().Round(time.Hour)), floor)
}

// Status is the leader as the status of a policy has it.
func (l *Leader) Status(money func(amount float64) string) *v1alpha1.TemperatureStatus {
	status := &v1alpha1.TemperatureStatus{
		Ladder: l.ladder.String(), Leader: l.text(l.Candidate), Candidate: l.candidates[l.Candidate].Name(), Since: metav1.NewTime(l.Since),
		Reason: l.Reason, CountedSince: metav1.NewTime(l.Counted), GroupBytes: l.GroupBytes, Cost: numberText(l.Cost),
		Ways: numberText(l.Ways), Days: numberText(l.Days), Paid: money(l.Done), Done: numberText(l.Done), DoneSeen: numberText(l.doneSeen),
	}
	if l.Rules {
		status.Leader, status.Candidate = "the rules of the policy", v1alpha1.TemperatureByRules
	}
	if !l.LookedAt.IsZero() {
		status.LookedAt, status.BooksSince = &metav1.Time{Time: l.LookedAt}, &metav1.Time{Time: l.Books}
	}
	at := func(list []float64, i int) float64 {
		if i < len(list) {
			return list[i]
		}
		return 0
	}
	for i := range l.candidates {
		status.Candidates = append(status.Candidates, v1alpha1.TemperatureCandidate{
			Name: l.candidates[i].Name(), Text: l.text(i), Paid: money(at(l.Total, i)), Cost: numberText(at(l.Total, i)),
			Lately: numberText(at(l.Paid, i)), Seen: numberText(at(l.Seen, i)),
		})
	}
	return status
}

// Follow returns the declaration with the prices at which candidates are followed. Under mode auto it has the rules, half-life and
// dwell of the leader; before candidates were compared for the first time, groups only get colder.
func (d *Declaration) Follow(l *Leader, prices api.RungPrices) *Declaration {
	led := *d
	led.Class.Prices = &prices
	if !d.Auto {
		return &led
	}
	candidate := l.candidates[l.Candidate]
	led.Class.Expected, led.Class.ExpectMean = candidate.Always == shadow.ByUse, candidate.Floor
	if !d.Pinned {
		led.Rules = RulesOf(candidate, d.Class.Ladder, (*shadow.Prices)(&prices), l.Cost == 0)
	}
	if candidate.Always == shadow.ByUse {
		led.Class.HalfLife, led.Class.Dwell = candidate.HalfLife, candidate.Dwell
	} else {
		led.Class.HalfLife, led.Class.Dwell = l.candidates[shadow.First].HalfLife, l.candidates[shadow.First].Dwell
	}
	return &led
}

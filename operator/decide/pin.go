package decide

import (
	"slices"
	"time"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
)

// Pin is a scheme that a person keeps a class on until a time.
type Pin struct {
	Scheme stripe.Scheme
	Until  time.Time
	Reason string
	By     string
}

// String is "rs(4,2) until 2026-03-10 08:00 UTC by ada: the audit".
func (p *Pin) String() string {
	text := p.Scheme.String() + " until " + words.Time(p.Until)
	if p.By != "" {
		text += " by " + p.By
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

func newPin(spec *v1alpha1.RedundancyPolicySpec, schemes Schemes, ladder stripe.Ladder) (*Pin, *Problem) {
	pin := spec.Pin
	if pin == nil {
		return nil, nil
	}
	if spec.Temperature == nil {
		return nil, problem(ReasonInvalidPin, "pin: the policy has no temperature that a pin could hold against; set default instead")
	}
	scheme, wrong := schemes.Resolve(pin.Scheme)
	if wrong != nil {
		return nil, wrong
	}
	if !ladder.Contains(scheme) {
		return nil, problem(ReasonInvalidPin, "pin.scheme names %s, which is not on the ladder %s; name a step of the ladder", pin.Scheme, ladder)
	}
	if pin.Until.IsZero() {
		return nil, problem(ReasonInvalidPin, "pin.until is missing; give the time at which the pin ends, such as 2026-01-31T12:00:00Z")
	}
	return &Pin{Scheme: scheme, Until: pin.Until.Time, Reason: pin.Reason, By: pin.By}, nil
}

// TooLong is what is wrong with a pin that lasts longer than a pin may; nil if nothing is.
func (p *Pin) TooLong(now time.Time) *Problem {
	latest := now.Add(v1alpha1.LongestPin)
	if p == nil || !p.Until.After(latest) {
		return nil
	}
	return problem(ReasonInvalidPin, "pin.until is %s, and a pin lasts a year at most; give a time before %s, or set default for good", words.Time(p.Until), words.Time(latest))
}

// Ended is what is wrong with a pin that would have no effect when it is set; nil if nothing is.
func (p *Pin) Ended(now time.Time) *Problem {
	if p == nil || now.Before(p.Until) {
		return nil
	}
	return problem(ReasonInvalidPin, "pin.until is %s, which has passed, and it is %s; give a time in the future", words.Time(p.Until), words.Time(now))
}

// At is the declaration as it is in force at a time. Until its pin ends all of the class belongs under the pinned scheme,
// new objects and hot keys too, as under a policy without temperature that has it for its default.
func (d *Declaration) At(now time.Time) *Declaration {
	if d == nil || d.Pin == nil || !now.Before(d.Pin.Until) {
		return d
	}
	pinned := *d
	pinned.Pinned, pinned.Rules, pinned.Class.Default, pinned.Class.HotKeys = true, nil, d.Pin.Scheme, nil
	return &pinned
}

// onDefault reports whether everything belongs under the default, and stays where people move it.
func (d *Declaration) onDefault() bool { return d != nil && d.Rules == nil && !d.Auto && !d.Pinned }

// Supersedes is why a transition that a policy made is ended: what is declared now wants something else. It is nil where
// the transition may end as it began. to is the transition's target, in canonical spelling.
func (d *Declaration) Supersedes(t *v1alpha1.Transition, to string) *Problem {
	const stay = "groups already moved stay until it moves them on"
	is := func(scheme stripe.Scheme) bool { return scheme.String() == to }
	switch policy := t.Spec.PolicyRef; {
	case t.Spec.RollbackOf != "":
		return nil
	case !slices.ContainsFunc(d.Class.Ladder, is):
		return problem(ReasonSuperseded, "%s left the ladder of policy %s, which is %s now; %s", to, policy, d.Class.Ladder, stay)
	case d.Pinned && !is(d.Pin.Scheme):
		return problem(ReasonSuperseded, "policy %s is pinned to %s; %s", policy, d.Pin, stay)
	case !d.Pinned && t.Spec.Pinned:
		return problem(ReasonSuperseded, "the pin of policy %s that it was made for has ended; %s", policy, stay)
	}
	return nil
}

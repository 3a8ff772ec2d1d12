package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/operator/words"
)

// Forecast is what a policy would move if it were in force now.
type Forecast struct {
	Declaration *decide.Declaration // nil if the policy is refused
	Refusal     *decide.Problem     // why it would not be carried out
	Unknown     *decide.Problem     // why nothing can be said of what would move
	Warnings    []*decide.Problem
	HeatAt      time.Time // of the report behind it
	Ending      []string  // transitions of the policy that would be ended, as it wants something else
	Choice      decide.Choice
	Later       []decide.Move     // what would move when it has been under its scheme for the dwell, besides Choice
	notes       []*decide.Problem // what else a person should know
}

// Preview asks the gateways of a backend what a policy would move and what that would cost, as the controllers do, and
// changes nothing. codes are the declared schemes; moving are the transitions of the class that have not ended, whose
// groups are not counted again. A class that the gateways do not know has no objects, so that nothing moves.
func Preview(ctx context.Context, now time.Time, dial gateways.Dialer, policy *v1alpha1.RedundancyPolicy, backend *v1alpha1.StorageBackend, codes decide.Schemes, moving []v1alpha1.Transition) (*Forecast, error) {
	f := &Forecast{}
	ladder, choice, wrong := targetLadder(policy, backend)
	if wrong != nil {
		f.Refusal = wrong
		return f, nil
	}
	f.Declaration, f.Refusal = decide.Declare(policy, codes, func(v1alpha1.Reliability) (stripe.Ladder, error) { return ladder, nil })
	if f.Refusal != nil {
		return f, nil
	}
	f.Declaration.Choice = choice
	if f.Refusal = f.Declaration.Pin.TooLong(now); f.Refusal != nil {
		return f, nil
	}
	if f.Declaration = f.Declaration.At(now); f.Declaration.Auto {
		leader := decide.LeaderOf(policy.Status.Temperature, f.Declaration.Class.Ladder, false, now)
		rungs, err := rungsOf(policy, f.Declaration.Class.Ladder, leader.GroupBytes)
		if err != nil {
			return nil, err
		}
		f.Declaration = f.Declaration.Follow(&leader, rungs)
	}
	preflight := decide.Preflight{Class: &f.Declaration.Class, BackendName: policy.Spec.BackendRef, Backend: backend}
	if f.feasible(preflight); f.Refusal != nil {
		return f, nil
	}
	place := decide.Place{Backend: backend.Name, Class: &f.Declaration.Class, Rules: f.Declaration.Rules, Asked: true}
	if f.Declaration.Pinned {
		place.Pin = f.Declaration.Pin
	}
	for i := range moving {
		if to, wrong := codes.Resolve(moving[i].Spec.To); wrong == nil && moving[i].Spec.PolicyRef == policy.Name && f.Declaration.Supersedes(&moving[i], to.String()) != nil {
			f.Ending = append(f.Ending, moving[i].Name)
			continue
		}
		if selection, wrong := decide.SelectionOf(&moving[i].Spec, codes); wrong == nil {
			place.Active = append(place.Active, selection)
		}
	}
	g, err := dial(backend.GatewayAddresses())
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", backend.Name, err)
	}
	defer gateways.Close(g)
	candidates, err := f.candidates(ctx, g, place)
	f.feasible(preflight)
	if err != nil || f.Unknown != nil {
		return f, err
	}
	judge, err := judgeOf(policy, f.Declaration)
	if err != nil {
		return nil, err
	}
	f.Choice = decide.Select(candidates, judge, decide.ConsentOf(policy, f.Declaration), math.MaxInt, 0)
	for i := range f.Choice.Create {
		preflight.PeakBytes += f.Choice.Create[i].Estimate.PeakBytes
	}
	f.feasible(preflight)
	return f, nil
}

// feasible holds the policy against its backend, and says what else a person should know.
func (f *Forecast) feasible(preflight decide.Preflight) {
	f.Refusal, f.Warnings = decide.Feasible(preflight)
	f.Warnings = append(f.Warnings, f.notes...)
}

// Foreseen is what a transition that somebody is about to make would cost, and whether a person has to approve it.
type Foreseen struct {
	Estimate      decide.Estimate
	Verdict       decide.Verdict
	NeedsApproval bool
	Why           string
	Unknown       error // why nothing is known of the cost: the gateways do not say
}

// Lines say what the transition would move and cost.
func (f *Foreseen) Lines(t *v1alpha1.Transition) []string {
	e := &f.Estimate
	if f.Unknown != nil {
		return []string{
			fmt.Sprintf("transition/%s would take groups of class %s from %s to %s", t.Name, t.Spec.Class, t.Spec.From, t.Spec.To),
			"  what it costs cannot be told: " + f.Unknown.Error(),
		}
	}
	lines := []string{
		fmt.Sprintf("transition/%s would take %s (%s) of class %s from %s to %s", t.Name, words.Count(e.Groups, "group"), words.Bytes(e.Bytes),
			t.Spec.Class, t.Spec.From, t.Spec.To),
		fmt.Sprintf("  sends %s (re-encoding %s), reads %s, writes %s; at most %s more stored meanwhile", words.Bytes(e.BytesSent),
			words.Bytes(e.ReencodeBytesSent), words.Bytes(e.BytesRead), words.Bytes(e.BytesWritten), words.Bytes(e.PeakBytes)),
		fmt.Sprintf("  stored %s before, %s after", words.Bytes(e.StoredBefore), words.Bytes(e.StoredAfter)),
	}
	lines = append(lines, offLadder(e, string(t.Spec.To))...)
	if f.NeedsApproval {
		lines = append(lines, "  waits for `restripe approve`: "+f.Why)
	}
	return lines
}

// offLadder says how groups come under a ladder that they were not written for.
func offLadder(e *decide.Estimate, to string) []string {
	switch {
	case e.GroupsOffLadder == 0:
		return nil
	case e.GroupsOffLadder > e.Groups: // of a gateway of the release before
		return []string{fmt.Sprintf("  %s were written for a ladder without %s and stay", words.Count(e.GroupsOffLadder, "group"), to)}
	case e.GroupsReshaped > 0:
		line := fmt.Sprintf("  %s were written for a ladder without %s; %d take columns of others, give them back, or are dissolved for that",
			words.Count(e.GroupsOffLadder, "group"), to, e.GroupsReshaped)
		if e.GroupsCopied > 0 {
			line += fmt.Sprintf(", of %s the objects are copied", words.Count(e.GroupsCopied, "group"))
		}
		return []string{line}
	case e.GroupsCopied == 0:
		return []string{fmt.Sprintf("  %s were written for a ladder without %s and come under that of the class where they are",
			words.Count(e.GroupsOffLadder, "group"), to)}
	}
	return []string{fmt.Sprintf("  %s were written for a ladder without %s; of %s the objects are copied, the others come under that of the class where they are",
		words.Count(e.GroupsOffLadder, "group"), to, words.Count(e.GroupsCopied, "group"))}
}

// Foresee asks the gateways of a backend what a transition would cost, as the controllers do, and changes nothing. policy is
// the one it names, nil for none.
func Foresee(
	ctx context.Context, dial gateways.Dialer, t *v1alpha1.Transition, policy *v1alpha1.RedundancyPolicy,
	backend *v1alpha1.StorageBackend, codes decide.Schemes,
) (*Foreseen, error) {
	selection, wrong := decide.SelectionOf(&t.Spec, codes)
	if wrong != nil {
		return nil, wrong
	}
	to, wrong := codes.Resolve(t.Spec.To)
	switch {
	case wrong != nil:
		return nil, wrong
	case backend == nil:
		return nil, fmt.Errorf("there is no StorageBackend %s", t.Spec.BackendRef)
	}
	g, err := dial(backend.GatewayAddresses())
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", backend.Name, err)
	}
	defer gateways.Close(g)
	f := &Foreseen{}
	answer, err := g.Estimate(ctx, requestOf(t, selection.From.String(), to.String()))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		f.Unknown = fmt.Errorf("asking what transition %s costs: %w", t.Name, err)
		if policy != nil && policy.Spec.Approval != nil && policy.Spec.Approval.Mode != v1alpha1.ApprovalAuto {
			f.NeedsApproval, f.Why = true, "what it costs is not known"
		}
		return f, nil
	}
	f.Estimate = estimateOf(&answer)
	if policy == nil {
		return f, nil
	}
	ladder, _, wrong := targetLadder(policy, backend)
	if wrong == nil {
		var declaration *decide.Declaration
		declaration, wrong = decide.Declare(policy, codes, func(v1alpha1.Reliability) (stripe.Ladder, error) { return ladder, nil })
		if wrong == nil {
			judge, err := judgeOf(policy, declaration)
			if err != nil {
				return nil, err
			}
			f.Verdict = judge(decide.Move{Selection: selection, To: to}, f.Estimate)
		}
	}
	f.NeedsApproval, f.Why = decide.ConsentOf(policy, nil).Needed(f.Estimate, f.Verdict)
	return f, nil
}

// forecaster tells what a forecast needs of the gateways of one backend.
type forecaster interface {
	gateways.Estimator
	Heat(ctx context.Context) (api.HeatReport, error)
	Classes(ctx context.Context) ([]api.ClassInfo, error)
}

// candidates are the moves there would be, with what they cost.
func (f *Forecast) candidates(ctx context.Context, g forecaster, place decide.Place) ([]decide.Candidate, error) {
	report, err := g.Heat(ctx)
	if errors.Is(err, api.ErrUnavailable) {
		f.Unknown = &decide.Problem{Reason: decide.ReasonHeatUnknown, Message: oneLine(err)}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking the gateways of %s for the heat: %w", place.Backend, err)
	}
	if err := f.count(ctx, g, &report, place.Class); err != nil {
		return nil, err
	}
	if place.Rules != nil {
		if report, err = f.judged(ctx, g, report, place.Class); err != nil || f.Unknown != nil {
			return nil, err
		}
	}
	f.HeatAt = report.At
	if place.Heat, err = heatOf(gateways.NewSnapshot(report.At, api.Status{}, report, nil), place.Class.Name); err != nil || place.Heat == nil {
		return nil, err
	}
	if f.Unknown = place.Unknown(); f.Unknown != nil {
		return nil, nil
	}
	f.Later = decide.Unsettled(place)
	var candidates []decide.Candidate
	for _, move := range decide.Moves(place) {
		estimate, err := g.Estimate(ctx, requestFor(&move))
		if err != nil {
			return nil, fmt.Errorf("asking what %s to %s of class %s costs: %w", move.From, move.To, move.Class, err)
		}
		candidates = append(candidates, decide.Candidate{Move: move, Estimate: estimateOf(&estimate)})
	}
	return candidates, nil
}

// note takes note of something that a person should know; nil is nothing.
func (f *Forecast) note(problem *decide.Problem) {
	if problem != nil {
		f.notes = append(f.notes, problem)
	}
}

// judged is the heat of a class as the policy would see it. Groups are settled by the dwell that the policy gives, which need not be
// that of the class as it is. How often they are used is counted under the half-life that is in force: another one keeps these
// rates when it comes into force, and lets them fall faster or slower from then on.
func (f *Forecast) judged(ctx context.Context, g forecaster, report api.HeatReport, class *decide.Class) (api.HeatReport, error) {
	at := slices.IndexFunc(report.Classes, func(c api.ClassHeat) bool { return c.Class == class.Name })
	if at < 0 {
		return report, nil
	}
	inForce := &report.Classes[at]
	if class.Expected && inForce.Estimate == nil {
		f.note(&decide.Problem{Reason: decide.ReasonHeatUnknown, Message: "how often groups are used was counted group by group; when the " +
			"policy is in force it is estimated from the use of the whole class, and less moves"})
	} else if !sameDuration(inForce.HalfLife, class.HalfLife) {
		f.note(&decide.Problem{Reason: decide.ReasonHeatUnknown, Message: fmt.Sprintf(
			"how often groups are used was counted with the half-life %s; with %s they cool otherwise from now on", inForce.HalfLife, class.HalfLife)})
	}
	if sameDuration(inForce.Dwell, class.Dwell) {
		return report, nil
	}
	foreteller, can := g.(gateways.HeatForeteller)
	if !can {
		f.Unknown = &decide.Problem{Reason: decide.ReasonHeatUnknown, Message: fmt.Sprintf(
			"the gateways tell what is settled for the dwell in force, %s, and the policy has %s", inForce.Dwell, class.Dwell)}
		return report, nil
	}
	under, err := foreteller.HeatUnder(ctx, class.Name, class.Dwell)
	if err != nil {
		return report, fmt.Errorf("asking for the heat of class %s with a dwell of %s: %w", class.Name, class.Dwell, err)
	}
	return under, nil
}

// Objects looked at one by one where the gateways have not counted them for the prefixes that a policy would have.
const (
	mostListed = 20_000
	listedPage = 1_000
)

// count finds out what of the objects that the policy would select is of other classes.
func (f *Forecast) count(ctx context.Context, g forecaster, report *api.HeatReport, class *decide.Class) error {
	counted := elsewhereOf(report, class)
	if counted != nil && counted.Current {
		f.note(decide.Strays(counted.Others, ""))
		return nil
	}
	lister, can := g.(gateways.ObjectLister)
	if !can {
		return nil
	}
	classes, err := g.Classes(ctx)
	if err != nil {
		return fmt.Errorf("asking for the classes: %w", err)
	}
	counts, cut := map[string]decide.ClassCount{}, ""
	looked := 0
	for _, prefix := range class.Prefixes {
		for after, more := "", true; more; {
			if looked >= mostListed {
				cut = "; no more than " + words.Count(mostListed, "object") + " were looked at"
				break
			}
			page, err := lister.List(ctx, prefix, after, listedPage)
			if err != nil {
				return fmt.Errorf("listing the objects under %q: %w", prefix, err)
			}
			looked += len(page.Objects)
			for i := range page.Objects {
				if object := &page.Objects[i]; object.Class != class.Name && selects(class, prefix, object, classes) {
					count := counts[object.Class]
					counts[object.Class] = decide.ClassCount{Class: object.Class, Objects: count.Objects + 1, Bytes: count.Bytes + object.Size}
				}
			}
			more = page.Next != ""
			if after, err = api.DecodeKey(page.Next); err != nil {
				return fmt.Errorf("listing the objects under %q: %w", prefix, err)
			}
		}
	}
	f.note(decide.Strays(slices.Collect(maps.Values(counts)), cut))
	return nil
}

// selects reports whether a class selects an object by a prefix, and neither it nor another class by a longer one.
func selects(class *decide.Class, prefix string, object *api.Object, others []api.ClassInfo) bool {
	key, err := api.DecodeKey(object.Key64)
	longer := func(p string) bool { return len(p) > len(prefix) && strings.HasPrefix(key, p) }
	return err == nil && !slices.ContainsFunc(class.Prefixes, longer) && !slices.ContainsFunc(others, func(other api.ClassInfo) bool {
		return slices.ContainsFunc(other.Prefixes, longer)
	})
}

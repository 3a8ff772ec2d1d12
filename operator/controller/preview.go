package controller

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
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
}

// Preview asks the gateways of a backend what a policy would move and what that would cost, as the controllers do, and
// changes nothing. codes are the declared schemes; moving are the transitions of the class that have not ended, whose
// groups are not counted again. A class that the gateways do not know has no objects, so that nothing moves.
func Preview(ctx context.Context, now time.Time, dial gateways.Dialer, policy *v1alpha1.RedundancyPolicy, backend *v1alpha1.StorageBackend, codes decide.Schemes, moving []v1alpha1.Transition) (*Forecast, error) {
	f := &Forecast{}
	ladder, wrong := targetLadder(policy, backend)
	if wrong != nil {
		f.Refusal = wrong
		return f, nil
	}
	f.Declaration, f.Refusal = decide.Declare(policy, codes, func(v1alpha1.Reliability) (stripe.Ladder, error) { return ladder, nil })
	if f.Refusal != nil {
		return f, nil
	}
	if f.Refusal = f.Declaration.Pin.TooLong(now); f.Refusal != nil {
		return f, nil
	}
	f.Declaration = f.Declaration.At(now)
	preflight := decide.Preflight{Class: &f.Declaration.Class, BackendName: policy.Spec.BackendRef, Backend: backend}
	if f.Refusal, f.Warnings = decide.Feasible(preflight); f.Refusal != nil {
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
	if err != nil || f.Unknown != nil {
		return f, err
	}
	judge, err := judgeOf(policy, f.Declaration)
	if err != nil {
		return nil, err
	}
	f.Choice = decide.Select(candidates, judge, policy.Spec.Approval, math.MaxInt, 0)
	for i := range f.Choice.Create {
		preflight.PeakBytes += f.Choice.Create[i].Estimate.PeakBytes
	}
	f.Refusal, f.Warnings = decide.Feasible(preflight)
	return f, nil
}

// forecaster tells what a forecast needs of the gateways of one backend.
type forecaster interface {
	gateways.Estimator
	Heat(ctx context.Context) (api.HeatReport, error)
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
	f.HeatAt = report.At
	if place.Heat, err = heatOf(gateways.NewSnapshot(report.At, api.Status{}, report, nil), place.Class.Name); err != nil || place.Heat == nil {
		return nil, err
	}
	if f.Unknown = place.Unknown(); f.Unknown != nil {
		return nil, nil
	}
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

package console

import (
	"context"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/agent/stripe"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/console/contract"
	"github.com/restripe/restripe/operator/decide"
)

// pinView is the pin of a policy at a time; nil if there is none.
func pinView(p *v1alpha1.RedundancyPolicy, now time.Time) *consolev1.Pin {
	pin := p.Spec.Pin
	if pin == nil {
		return nil
	}
	scheme := string(pin.Scheme)
	if i := slices.Index(p.Spec.Ladder, pin.Scheme); i >= 0 && len(p.Status.Ladder) == len(p.Spec.Ladder) {
		scheme = p.Status.Ladder[i] // the code of a scheme that has a name, as rungs have it
	}
	return &consolev1.Pin{
		Scheme: scheme, Until: contract.Time(pin.Until.Time), Reason: pin.Reason, By: pin.By, Ended: !now.Before(pin.Until.Time),
	}
}

// pinned is the audit log's record of a pin; empty where there is none.
type pinned struct {
	Pin *v1alpha1.Pin `json:"pin,omitempty"`
}

// PinPolicy keeps a class on one scheme until a time.
func (s *policies) PinPolicy(ctx context.Context, request *consolev1.PinPolicyRequest) (*consolev1.PinPolicyResponse, error) {
	policy, err := s.livePolicy(ctx, request.Name)
	if err != nil {
		return nil, err
	}
	var declared *decide.Pin
	err = s.act(ctx, subject{object: "RedundancyPolicy/" + policy.Name, before: pinned{policy.Spec.Pin}}, func(ctx context.Context) (any, error) {
		before := policy.DeepCopy()
		pin, err := withPin(policy, request.Scheme, request.Until, s.world.scene(nil).codes, s.now())
		if err != nil {
			return nil, err
		}
		declared, policy.Spec.Pin.Reason, policy.Spec.Pin.By = pin, request.Reason, callerOf(ctx).user.Name
		declared.Reason, declared.By = policy.Spec.Pin.Reason, policy.Spec.Pin.By
		err = s.world.client.Patch(ctx, policy, client.MergeFrom(before), client.FieldOwner(fieldOwner))
		return pinned{policy.Spec.Pin}, err
	})
	if err != nil {
		return nil, err
	}
	s.world.policies.put(policy)
	return &consolev1.PinPolicyResponse{Policy: s.view(policy), Said: policy.Name + " is pinned to " + declared.String()}, nil
}

// UnpinPolicy takes the pin of a policy out.
func (s *policies) UnpinPolicy(ctx context.Context, request *consolev1.UnpinPolicyRequest) (*consolev1.UnpinPolicyResponse, error) {
	policy, err := s.livePolicy(ctx, request.Name)
	if err != nil {
		return nil, err
	}
	err = s.act(ctx, subject{object: "RedundancyPolicy/" + policy.Name, before: pinned{policy.Spec.Pin}}, func(ctx context.Context) (any, error) {
		if policy.Spec.Pin == nil {
			return nil, refuse(connect.CodeFailedPrecondition, "policy %s is not pinned", policy.Name)
		}
		before := policy.DeepCopy()
		policy.Spec.Pin = nil
		return pinned{}, s.world.client.Patch(ctx, policy, client.MergeFrom(before), client.FieldOwner(fieldOwner))
	})
	if err != nil {
		return nil, err
	}
	s.world.policies.put(policy)
	return &consolev1.UnpinPolicyResponse{Policy: s.view(policy), Said: policy.Name + " is not pinned any more; its temperature decides again"}, nil
}

// withPin sets the pin of a policy, as its ladder spells the scheme, and refuses one that would not be carried out.
func withPin(policy *v1alpha1.RedundancyPolicy, scheme string, until *timestamppb.Timestamp, codes decide.Schemes, now time.Time) (*decide.Pin, error) {
	if until == nil {
		return nil, refuse(connect.CodeInvalidArgument, "pin.until is missing; say until when %s is pinned", policy.Name)
	}
	pin := &v1alpha1.Pin{Scheme: v1alpha1.SchemeName(scheme), Until: metav1.NewTime(until.AsTime().Truncate(time.Second))}
	if wanted, unknown := codes.Resolve(pin.Scheme); unknown == nil {
		for _, name := range policy.Spec.Ladder {
			if code, wrong := codes.Resolve(name); wrong == nil && code == wanted {
				pin.Scheme = name
				break
			}
		}
	}
	policy.Spec.Pin = pin
	declaration, wrong := decide.Declare(policy, codes, func(v1alpha1.Reliability) (stripe.Ladder, error) { return statusLadder(policy) })
	if wrong == nil {
		wrong = declaration.Pin.Ended(now)
	}
	if wrong == nil {
		wrong = declaration.Pin.TooLong(now)
	}
	if wrong != nil {
		return nil, refuse(connect.CodeInvalidArgument, "policy %s: %w", policy.Name, wrong)
	}
	return declaration.Pin, nil
}

// statusLadder is the ladder that the operator has worked out for a reliability target.
func statusLadder(policy *v1alpha1.RedundancyPolicy) (stripe.Ladder, error) {
	var ladder stripe.Ladder
	for _, text := range policy.Status.Ladder {
		scheme, err := stripe.ParseScheme(text)
		if err != nil {
			return nil, err
		}
		ladder = append(ladder, scheme)
	}
	return ladder, nil
}

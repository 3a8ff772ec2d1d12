package console

import (
	"context"
	"time"

	"connectrpc.com/connect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/console/contract"
	"github.com/restripe/restripe/operator/decide"
)

// policies shows policies, pins, holds and deletes them.
type policies struct {
	*sources
	*auditing
	*watching
	compiler Compiler
}

// ListPolicies lists the policies of all backends, or of one.
func (s *policies) ListPolicies(_ context.Context, request *consolev1.ListPoliciesRequest) (*consolev1.PolicyList, error) {
	now := s.policyPicture(request.Backend)
	list := &consolev1.PolicyList{Whole: true, Sources: now.sources}
	for _, one := range now.items {
		list.Policies = append(list.Policies, one.view)
	}
	return list, nil
}

// WatchPolicies does so whenever one changes.
func (s *policies) WatchPolicies(ctx context.Context, request *consolev1.WatchPoliciesRequest, stream *connect.ServerStream[consolev1.PolicyList]) error {
	take := func() picture[*consolev1.Policy] { return s.policyPicture(request.Backend) }
	return watchList(ctx, s.watching, take, func(d delta[*consolev1.Policy]) error {
		return stream.Send(&consolev1.PolicyList{Whole: d.whole, Partial: d.partial, Policies: d.items, Removed: d.removed, Sources: d.sources})
	})
}

func (s *policies) policyPicture(backend string) (now picture[*consolev1.Policy]) {
	now.sources = s.freshness(backend)
	for _, policy := range s.world.policies.all() {
		if backend == "" || policy.Spec.BackendRef == backend {
			now.items = append(now.items, item[*consolev1.Policy]{policy.Name, s.view(policy)})
		}
	}
	return now
}

// view is policyView with what is on each rung, and what that saves, as the gateways said last: as heat and overview have it.
// What the policy's status says of it may be a while older; it stands where no gateway has said anything yet.
func (s *policies) view(p *v1alpha1.RedundancyPolicy) *consolev1.Policy {
	view := policyView(p, s.now())
	seen, err := s.backendNamed(p.Spec.BackendRef)
	if err != nil {
		return view
	}
	class := seen.class(view.Class)
	if class == nil {
		return view
	}
	now := overviewOf(seen, class, p)
	view.Rungs = nil
	for _, is := range now.view.Rungs {
		rung := &consolev1.Rung{Scheme: is.Scheme, Groups: is.Groups, Bytes: is.Bytes, StoredBytes: is.StoredBytes}
		view.Rungs = append(view.Rungs, rung)
	}
	view.SavedBytes, view.SavedPerMonth = now.view.SavedBytes, now.perMonth
	return view
}

func policyView(p *v1alpha1.RedundancyPolicy, now time.Time) *consolev1.Policy {
	view := &consolev1.Policy{
		Name: p.Name, Backend: p.Spec.BackendRef, Class: decide.ClassName(p), Prefixes: p.Spec.Selector.Prefixes, Ladder: p.Status.Ladder,
		StopPolicy: string(p.Spec.StopPolicy), Approval: string(v1alpha1.ApprovalAuto), ActiveTransitions: p.Status.ActiveTransitions,
		Stored: p.Status.Summary.Stored, Conditions: conditionViews(p.Status.Conditions), Created: contract.Time(p.CreationTimestamp.Time),
		Generation: p.Generation, Deleting: p.DeletionTimestamp != nil, Rules: ruleViews(p), Pin: pinView(p, now), Prices: pricesView(p),
	}
	if view.StopPolicy == "" {
		view.StopPolicy = string(v1alpha1.StopNone)
	}
	if p.Spec.Approval != nil {
		view.Approval = string(p.Spec.Approval.Mode)
	}
	if len(view.Ladder) == 0 {
		for _, scheme := range p.Spec.Ladder {
			view.Ladder = append(view.Ladder, string(scheme))
		}
	}
	for _, rung := range p.Status.Rungs {
		view.Rungs = append(view.Rungs, &consolev1.Rung{Scheme: rung.Scheme, Groups: rung.Groups, Bytes: rung.Bytes, StoredBytes: rung.StoredBytes})
	}
	if saved := p.Status.Savings; saved != nil {
		view.SavedBytes, view.SavedPerMonth, view.Spent = saved.SavedBytes, amountOf(saved.PerMonth), amountOf(saved.Spent)
	}
	if p.Status.NextWindow != nil {
		view.NextWindow = contract.Time(p.Status.NextWindow.Time)
	}
	if t := p.Spec.Temperature; t != nil && t.HysteresisPercent != nil {
		view.HysteresisPercent = *t.HysteresisPercent
	}
	if b := p.Spec.Budget; b != nil && b.BytesPerSecond != nil {
		view.BytesPerSecond = b.BytesPerSecond.Value()
	}
	return view
}

// GetPolicy returns a policy, and how it is written.
func (s *policies) GetPolicy(_ context.Context, request *consolev1.GetPolicyRequest) (*consolev1.PolicyDetail, error) {
	policy, found := s.world.policies.get(request.Name)
	if !found {
		return nil, noPolicy(request.Name)
	}
	text, err := s.compiler.Render(policy.DeepCopy())
	if err != nil {
		return nil, refuse(connect.CodeInternal, "writing the policy: %w", err)
	}
	return &consolev1.PolicyDetail{Policy: s.view(policy), Yaml: text, Sources: s.freshness(policy.Spec.BackendRef)}, nil
}

func noPolicy(name string) error {
	return refuse(connect.CodeNotFound, "there is no policy %q", name)
}

// livePolicy reads a policy from the API server itself, for a change.
func (s *policies) livePolicy(ctx context.Context, name string) (*v1alpha1.RedundancyPolicy, error) {
	policy := &v1alpha1.RedundancyPolicy{}
	err := s.world.client.Get(ctx, client.ObjectKey{Name: name}, policy)
	if apierrors.IsNotFound(err) {
		return nil, noPolicy(name)
	}
	return policy, refusalOf(err)
}

// DeletePolicy deletes a policy; what is stored stays as it is.
func (s *policies) DeletePolicy(ctx context.Context, request *consolev1.DeletePolicyRequest) (*consolev1.DeletePolicyResponse, error) {
	if request.Confirm != request.Name {
		return nil, refuse(connect.CodeInvalidArgument, "deleting a policy wants its name twice: confirm is %q, the policy is %q", request.Confirm, request.Name)
	}
	policy, err := s.livePolicy(ctx, request.Name)
	if err != nil {
		return nil, err
	}
	err = s.act(ctx, subject{object: "RedundancyPolicy/" + policy.Name, before: policy.Spec}, func(ctx context.Context) (any, error) {
		s.world.outside.deletes(policy)
		return nil, s.world.client.Delete(ctx, policy, client.Preconditions{UID: &policy.UID})
	})
	if err != nil {
		return nil, err
	}
	said := request.Name + " is deleted; what is stored stays as it is"
	if len(policy.Finalizers) > 0 {
		said = request.Name + " is being deleted; it goes when nothing of it runs, and what is stored stays as it is"
	}
	return &consolev1.DeletePolicyResponse{Said: said}, nil
}

// holds are the stop policies, and what to say of each.
var holds = map[consolev1.Hold]struct {
	stop v1alpha1.StopPolicy
	said string
}{
	consolev1.Hold_HOLD_NONE:  {v1alpha1.StopNone, "goes on"},
	consolev1.Hold_HOLD_HOLD:  {v1alpha1.StopHold, "is on hold: what runs goes on, nothing new is started"},
	consolev1.Hold_HOLD_DRAIN: {v1alpha1.StopHoldAndDrain, "is on hold, and what runs is cancelled; groups already moved stay"},
}

// HoldPolicy stops a policy, or lets it go on.
func (s *policies) HoldPolicy(ctx context.Context, request *consolev1.HoldPolicyRequest) (*consolev1.HoldPolicyResponse, error) {
	hold, known := holds[request.Hold]
	if !known {
		return nil, refuse(connect.CodeInvalidArgument, "say how to hold the policy: HOLD_NONE, HOLD_HOLD or HOLD_DRAIN")
	}
	policy, err := s.livePolicy(ctx, request.Name)
	if err != nil {
		return nil, err
	}
	type stopped struct {
		StopPolicy v1alpha1.StopPolicy `json:"stopPolicy"`
	}
	what := subject{object: "RedundancyPolicy/" + policy.Name, before: stopped{policy.Spec.StopPolicy}}
	err = s.act(ctx, what, func(ctx context.Context) (any, error) {
		before := policy.DeepCopy()
		policy.Spec.StopPolicy = hold.stop
		err := s.world.client.Patch(ctx, policy, client.MergeFrom(before), client.FieldOwner(fieldOwner))
		return stopped{policy.Spec.StopPolicy}, err
	})
	if err != nil {
		return nil, err
	}
	s.world.policies.put(policy)
	return &consolev1.HoldPolicyResponse{Policy: s.view(policy), Said: policy.Name + " " + hold.said}, nil
}

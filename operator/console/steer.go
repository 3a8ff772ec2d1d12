package console

import (
	"context"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/agent/gateway/api"
	gatewayclient "github.com/restripe/restripe/agent/gateway/client"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/console/contract"
	"github.com/restripe/restripe/operator/controller"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/operator/words"
)

func stampOf(t *metav1.Time) *timestamppb.Timestamp {
	if t == nil {
		return nil
	}
	return contract.Time(t.Time)
}

// steering is a change of a transition. declared changes the spec of an object; hand steers one that was started at a
// gateway, nil where that makes no sense.
type steering struct {
	declared func(t *v1alpha1.Transition) (said string, err error)
	hand     func(ctx context.Context, c *gatewayclient.Client, id string) (api.Transition, error)
	handSaid string
}

// steerTries is how often a change is tried that somebody else's came before.
const steerTries = 5

// steer changes a transition and records it.
func (s *transitions) steer(ctx context.Context, name string, how steering) (*consolev1.TransitionChange, error) {
	if backend, id, is := strings.Cut(name, "/"); is {
		return s.steerByHand(ctx, backend, id, how)
	}
	transition, err := s.liveTransition(ctx, name)
	if err != nil {
		return nil, err
	}
	said := ""
	what := subject{object: "Transition/" + name, before: transition.Spec, planHash: transition.Status.PlanHash}
	err = s.act(ctx, what, func(ctx context.Context) (any, error) {
		for try := 1; ; try++ {
			before := transition.DeepCopy()
			if said, err = how.declared(transition); err != nil {
				return nil, err
			}
			err = s.world.client.Patch(ctx, transition, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(fieldOwner))
			if !apierrors.IsConflict(err) || try == steerTries {
				return transition.Spec, err
			}
			if transition, err = s.liveTransition(ctx, name); err != nil {
				return nil, err
			}
		}
	})
	if err != nil {
		return nil, err
	}
	s.world.transitions.put(transition)
	return &consolev1.TransitionChange{Transition: transitionView(transition, nil), Said: name + " " + said}, nil
}

// steerByHand steers a transition that was started at a gateway.
func (s *transitions) steerByHand(ctx context.Context, backend, id string, how steering) (*consolev1.TransitionChange, error) {
	if how.hand == nil {
		return nil, refuse(connect.CodeFailedPrecondition, "%s was started at a gateway by hand; this is for transitions that policies make", handName(backend, id))
	}
	seen, err := s.backendNamed(backend)
	if err != nil {
		return nil, err
	}
	job, err := gateways.Ask(ctx, seen.pool, quickPatience, func(ctx context.Context, c *gatewayclient.Client) (api.Transition, error) {
		return c.Transition(ctx, id)
	})
	if err != nil {
		return nil, refusalOf(err)
	}
	err = s.act(ctx, subject{object: "Transition/" + handName(backend, id), before: job}, func(ctx context.Context) (any, error) {
		job, err = gateways.Ask(ctx, seen.pool, changePatience, func(ctx context.Context, c *gatewayclient.Client) (api.Transition, error) {
			return how.hand(ctx, c, id)
		})
		return job, err
	})
	if err != nil {
		return nil, err
	}
	seen.wanted.Notify()
	return &consolev1.TransitionChange{Transition: handView(backend, &job), Said: handName(backend, id) + " " + how.handSaid}, nil
}

// liveTransition reads a transition from the API server itself, for a change.
func (s *transitions) liveTransition(ctx context.Context, name string) (*v1alpha1.Transition, error) {
	transition := &v1alpha1.Transition{}
	err := s.world.client.Get(ctx, client.ObjectKey{Name: name}, transition)
	if apierrors.IsNotFound(err) || name == "" {
		return nil, noTransition(name)
	}
	return transition, refusalOf(err)
}

// ended refuses transitions that have ended.
func ended(t *v1alpha1.Transition) error {
	if t.Status.CompletionTime == nil {
		return nil
	}
	return refuse(connect.CodeFailedPrecondition, "%s has ended (%s)", t.Name, strings.ToLower(t.Status.Summary.State))
}

// ApproveTransition lets a transition start that waits for a person.
func (s *transitions) ApproveTransition(ctx context.Context, request *consolev1.ApproveTransitionRequest) (*consolev1.TransitionChange, error) {
	return s.steer(ctx, request.Name, steering{declared: func(t *v1alpha1.Transition) (string, error) {
		if err := ended(t); err != nil {
			return "", err
		}
		switch {
		case t.Spec.Cancelled:
			return "", refuse(connect.CodeFailedPrecondition, "%s was cancelled; its policy makes another if it is still wanted", t.Name)
		case request.PlanHash != "" && request.PlanHash != t.Status.PlanHash:
			return "", refuse(connect.CodeAborted, "the plan of %s is another by now; look at it again", t.Name)
		case !t.Spec.NeedsApproval:
			return "needs no approval", nil
		case t.Spec.Approved:
			return "was approved already", nil
		}
		t.Spec.Approved, t.Spec.ApprovedBy = true, callerOf(ctx).user.Name
		return "is approved", nil
	}})
}

// PauseTransition stops a transition after the groups under way.
func (s *transitions) PauseTransition(ctx context.Context, request *consolev1.PauseTransitionRequest) (*consolev1.TransitionChange, error) {
	const said = "is paused; groups under way are finished first"
	return s.steer(ctx, request.Name, steering{handSaid: said, hand: func(ctx context.Context, c *gatewayclient.Client, id string) (api.Transition, error) {
		return c.Pause(ctx, id)
	}, declared: func(t *v1alpha1.Transition) (string, error) {
		if err := ended(t); err != nil {
			return "", err
		}
		t.Spec.Paused = true
		return said, nil
	}})
}

// ResumeTransition goes on with a paused transition.
func (s *transitions) ResumeTransition(ctx context.Context, request *consolev1.ResumeTransitionRequest) (*consolev1.TransitionChange, error) {
	const said = "goes on"
	return s.steer(ctx, request.Name, steering{handSaid: said, hand: func(ctx context.Context, c *gatewayclient.Client, id string) (api.Transition, error) {
		return c.Resume(ctx, id, nil)
	}, declared: func(t *v1alpha1.Transition) (string, error) {
		if err := ended(t); err != nil {
			return "", err
		}
		t.Spec.Paused = false
		return said, nil
	}})
}

// CancelTransition ends a transition for good; groups already moved stay.
func (s *transitions) CancelTransition(ctx context.Context, request *consolev1.CancelTransitionRequest) (*consolev1.TransitionChange, error) {
	const said = "is cancelled; groups already moved stay where they are"
	return s.steer(ctx, request.Name, steering{handSaid: said, hand: func(ctx context.Context, c *gatewayclient.Client, id string) (api.Transition, error) {
		return c.Cancel(ctx, id)
	}, declared: func(t *v1alpha1.Transition) (string, error) {
		if err := ended(t); err != nil {
			return "", err
		}
		t.Spec.Cancelled = true
		return said, nil
	}})
}

// ThrottleTransition changes the limit of a transition while it runs.
func (s *transitions) ThrottleTransition(ctx context.Context, request *consolev1.ThrottleTransitionRequest) (*consolev1.TransitionChange, error) {
	rate := request.BytesPerSecond
	if rate < 0 {
		return nil, refuse(connect.CodeInvalidArgument, "a limit of %d bytes per second; give 0 or more, 0 for none", rate)
	}
	said := "has no limit of its own"
	if rate > 0 {
		said = "is limited to " + words.Rate(rate)
	}
	return s.steer(ctx, request.Name, steering{handSaid: said, hand: func(ctx context.Context, c *gatewayclient.Client, id string) (api.Transition, error) {
		return c.Throttle(ctx, id, api.ThrottleRequest{BytesPerSecond: &rate})
	}, declared: func(t *v1alpha1.Transition) (string, error) {
		if err := ended(t); err != nil {
			return "", err
		}
		if t.Spec.BytesPerSecond = nil; rate > 0 {
			t.Spec.BytesPerSecond = resource.NewQuantity(rate, resource.BinarySI)
		}
		return said, nil
	}})
}

// PlanRollback says what taking a transition back would move and cost.
func (s *transitions) PlanRollback(ctx context.Context, request *consolev1.PlanRollbackRequest) (*consolev1.PlanRollbackResponse, error) {
	original, err := s.liveTransition(ctx, request.Name)
	if err != nil {
		return nil, err
	}
	back := decide.Reverse(original, "")
	foreseen, err := s.foresee(ctx, back)
	if err != nil {
		return nil, err
	}
	return &consolev1.PlanRollbackResponse{Lines: foreseen.Lines(back)}, nil
}

// RollbackTransition makes the transition that takes another one back.
func (s *transitions) RollbackTransition(ctx context.Context, request *consolev1.RollbackTransitionRequest) (*consolev1.TransitionChange, error) {
	if strings.Contains(request.Name, "/") {
		return nil, refuse(connect.CodeFailedPrecondition, "%s was started at a gateway by hand; start another one the other way", request.Name)
	}
	original, err := s.liveTransition(ctx, request.Name)
	if err != nil {
		return nil, err
	}
	reason := request.Reason
	if reason == "" {
		reason = "takes back " + original.Name
	}
	back := decide.Reverse(original, reason)
	foreseen, err := s.foresee(ctx, back)
	if err != nil {
		return nil, err
	}
	what := subject{object: "Transition/" + original.Name, before: original.Spec, planHash: original.Status.PlanHash}
	err = s.act(ctx, what, func(ctx context.Context) (any, error) {
		if original.Spec.RollbackOf != "" {
			return nil, refuse(connect.CodeFailedPrecondition, "%s takes %s back itself: cancel it, or lift the hold of its policy", original.Name, original.Spec.RollbackOf)
		}
		err := s.world.client.Create(ctx, back, client.FieldOwner(fieldOwner))
		if apierrors.IsAlreadyExists(err) {
			return nil, refuse(connect.CodeAlreadyExists, "%s was taken back already, by %s", original.Name, back.Name)
		}
		return back.Spec, err
	})
	if err != nil {
		return nil, err
	}
	s.world.transitions.put(back)
	said := back.Name + " is made: " + string(back.Spec.From) + " to " + string(back.Spec.To) + " of class " + back.Spec.Class
	if back.Spec.PolicyRef != "" {
		said += "; the policy " + back.Spec.PolicyRef + " is put on hold"
	}
	if back.Spec.NeedsApproval {
		said += "; it waits for approval: " + foreseen.Why
	}
	return &consolev1.TransitionChange{Transition: transitionView(back, nil), Said: said}, nil
}

// foresee says what a transition that a person makes costs, and has it wait for approval where its policy leaves such to people.
func (s *transitions) foresee(ctx context.Context, t *v1alpha1.Transition) (*controller.Foreseen, error) {
	within, stop := context.WithTimeout(ctx, actPatience)
	defer stop()
	scene := s.world.scene(nil)
	policy, _ := s.world.policies.get(t.Spec.PolicyRef)
	dial := gateways.Dial(s.backends.credentials)
	foreseen, err := controller.Foresee(within, dial, t, policy, scene.backends[t.Spec.BackendRef], scene.codes)
	if err != nil {
		return nil, refusalOf(err)
	}
	t.Spec.NeedsApproval = foreseen.NeedsApproval
	return foreseen, nil
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
)

// transitionGateway is what a transition needs of the gateways of its backend.
type transitionGateway interface {
	gateways.Estimator
	gateways.TransitionKeeper
}

// transitionLook is one look at one transition.
type transitionLook struct {
	*TransitionReconciler
	pool     *budgetPool
	backend  *v1alpha1.StorageBackend // nil: there is none
	observer *gateways.Observer       // nil as the gateway is
	gateway  transitionGateway        // nil: there is none
	siblings []v1alpha1.Transition    // those that share the pool, itself among them
	limits   decide.Limits
	load     decide.Load
	view     decide.TransitionView
}

// gather finds out all that a decision depends on.
func (l *transitionLook) gather(ctx context.Context) error {
	l.view.Now, l.view.Approver = l.clock.Now(), decide.Approver(l.view.Transition)
	for _, step := range []func(context.Context) error{l.findPolicy, l.findCodes, l.findSiblings, l.findBackend} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if l.gateway == nil || l.view.Transition.Status.CompletionTime != nil {
		return nil
	}
	t := l.view.Transition
	if err := l.findJob(ctx, decide.JobID(t, t.Status.Retries)); err != nil {
		return err
	}
	return l.findLoad(ctx)
}

func (l *transitionLook) findPolicy(ctx context.Context) error {
	t := l.view.Transition
	var err error
	if l.view.Policy, err = l.policy(ctx, t.Spec.PolicyRef); err != nil {
		return err
	}
	if l.view.Original, err = l.transition(ctx, t.Spec.RollbackOf); err != nil {
		return err
	}
	if l.backend, err = l.base.backend(ctx, t.Spec.BackendRef); err != nil {
		return err
	}
	l.view.Permission = decide.Windows(nil).At(l.view.Now)
	l.limits = limitsOf(nil)
	if l.view.Policy == nil {
		return nil
	}
	l.limits = limitsOf(l.view.Policy.Spec.Budget)
	declaration, wrong, err := l.declarations.read(ctx, &l.base, l.view.Policy, l.backend)
	if err != nil || wrong != nil {
		return err
	}
	l.view.Declaration, l.limits = declaration.At(l.view.Now), declaration.Limits
	l.view.Permission = declaration.Windows.At(l.view.Now)
	return nil
}

// limitsOf reads a budget; one that makes no sense limits nothing, as its policy starts nothing.
func limitsOf(budget *v1alpha1.Budget) decide.Limits {
	limits, wrong := decide.NewLimits(budget)
	if wrong != nil {
		limits, _ = decide.NewLimits(nil)
	}
	return limits
}

func (l *transitionLook) findCodes(ctx context.Context) error {
	spec := &l.view.Transition.Spec
	codes, err := l.schemes(ctx, spec.From, spec.To)
	if err != nil {
		return err
	}
	from, wrong := codes.Resolve(spec.From)
	if wrong == nil {
		l.view.From = from.String()
		to, unknown := codes.Resolve(spec.To)
		l.view.To, wrong = to.String(), unknown
	}
	if l.view.Unresolved = wrong; wrong != nil {
		l.view.From, l.view.To = "", ""
	}
	return nil
}

// findSiblings finds the transitions that share the budget and those that may touch the same groups.
func (l *transitionLook) findSiblings(ctx context.Context) error {
	t := l.view.Transition
	l.siblings = []v1alpha1.Transition{*t}
	var err error
	if t.Spec.PolicyRef != "" {
		if l.siblings, err = transitionsOf(ctx, l.client, transitionsByPolicy, t.Spec.PolicyRef); err != nil {
			return err
		}
	}
	if l.view.Unresolved != nil {
		return nil
	}
	others, err := transitionsOf(ctx, l.client, transitionsByClass, classKey(t.Spec.BackendRef, t.Spec.Class))
	if err != nil {
		return err
	}
	var names []v1alpha1.SchemeName
	for i := range others {
		names = append(names, others[i].Spec.From)
	}
	codes, err := l.schemes(ctx, append(names, t.Spec.From)...)
	if err != nil {
		return err
	}
	l.view.Overlap = decide.Overlapping(t, others, codes)
	return nil
}

// findBackend finds the gateways, and whether the backend can do it. Without a backend there is nobody to ask: what is
// deleted may go.
func (l *transitionLook) findBackend(ctx context.Context) error {
	t := l.view.Transition
	if l.backend == nil {
		missing := &decide.Problem{
			Reason:  decide.ReasonBackendMissing,
			Message: fmt.Sprintf("there is no StorageBackend %s; declare it, or delete the transition", t.Spec.BackendRef),
		}
		if l.view.Infeasible = missing; t.DeletionTimestamp == nil && t.Status.StartTime != nil {
			l.view.Unreachable = missing
		}
		return nil
	}
	var err error
	if l.observer, err = l.observers.Of(l.backend); err != nil {
		l.view.Unreachable = unreachable(l.backend.Name, err)
		return nil
	}
	l.gateway = l.observer.Gateway()
	if l.view.Declaration == nil {
		return nil
	}
	check := decide.Preflight{Class: &l.view.Declaration.Class, BackendName: l.backend.Name, Backend: l.backend}
	if t.Status.Cost != nil {
		check.PeakBytes = t.Status.Cost.PeakBytes
	}
	l.view.Infeasible, _ = decide.Feasible(check)
	return nil
}

// findJob asks the gateways for a job.
func (l *transitionLook) findJob(ctx context.Context, id string) error {
	found, err := l.gateway.Transition(ctx, id)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, api.ErrNotFound):
		l.view.Job = nil
	case err != nil:
		l.view.Unreachable = unreachable(l.view.Transition.Spec.BackendRef, err)
	default:
		l.have(&found)
	}
	return nil
}

// have takes note of a job.
func (l *transitionLook) have(found *api.Transition) {
	l.view.Job = jobOf(found)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	rates, uid := l.rates[l.view.Transition.UID], l.view.Transition.UID
	if found.State == api.TransitionRunning {
		rates = rates.Add(l.clock.Now(), found.BytesDone)
	} else {
		rates = rates.Skip(l.clock.Now(), found.BytesDone)
	}
	l.rates[uid], l.view.Rates = rates, rates
}

// loadAge is how old a load may be that transitions give way to.
const loadAge = time.Second

// findLoad asks how long clients wait, where that matters.
func (l *transitionLook) findLoad(ctx context.Context) error {
	if l.limits.Latency <= 0 || l.view.Job == nil || l.view.Job.State != decide.JobRunning {
		return nil
	}
	load, err := l.observer.AskLoad(ctx, loadAge)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		l.view.Unreachable = unreachable(l.backend.Name, err)
		return nil
	}
	l.load = loadOf(load)
	return nil
}

// call makes the one call of a decision.
func (l *transitionLook) call(ctx context.Context, d *decide.TransitionDecision) error {
	limits := func() api.ThrottleRequest {
		total, node, domain := rateOf(d.Grant.Total), rateOf(d.Grant.Node), rateOf(d.Grant.Domain)
		return api.ThrottleRequest{BytesPerSecond: &total, NodeBytesPerSecond: &node, DomainBytesPerSecond: &domain}
	}
	var answer api.Transition
	var err error
	switch d.Action {
	case decide.ActionEstimate:
		return l.estimate(ctx)
	case decide.ActionCreate:
		request := requestOf(l.view.Transition, l.view.From, l.view.To)
		request.ID = d.Job
		request.BytesPerSecond, request.NodeBytesPerSecond, request.DomainBytesPerSecond = rateOf(d.Grant.Total), rateOf(d.Grant.Node), rateOf(d.Grant.Domain)
		answer, err = l.gateway.StartTransition(ctx, request)
	case decide.ActionPause:
		answer, err = l.gateway.Pause(ctx, d.Job)
	case decide.ActionResume:
		answer, err = l.gateway.Resume(ctx, d.Job, nil)
	case decide.ActionCancel:
		answer, err = l.gateway.Cancel(ctx, d.Job)
	case decide.ActionThrottle:
		lower := d.Grant.Total < l.view.Job.Applied.Total || d.Grant.Node < l.view.Job.Applied.Node || d.Grant.Domain < l.view.Job.Applied.Domain
		if answer, err = l.gateway.Throttle(ctx, d.Job, limits()); err == nil && lower {
			l.notify()
		}
	default:
		return fmt.Errorf("there is no action %q", d.Action)
	}
	if err != nil {
		return err
	}
	l.have(&answer)
	return nil
}

// estimate asks what the transition will cost.
func (l *transitionLook) estimate(ctx context.Context) error {
	answer, err := l.gateway.Estimate(ctx, requestOf(l.view.Transition, l.view.From, l.view.To))
	if err != nil {
		return err
	}
	estimate := estimateOf(&answer)
	l.view.Estimate = &estimate
	if l.view.Policy == nil || l.view.Declaration == nil {
		return nil
	}
	move, err := moveOf(&l.view)
	if err != nil {
		return err
	}
	judge, err := judgeOf(l.view.Policy, l.view.Declaration)
	if err != nil {
		return err
	}
	l.view.Verdict = judge(*move, estimate)
	return nil
}

// notify makes the others of the pool look again, for whom there is room now.
func (l *transitionLook) notify() {
	for i := range l.siblings {
		if sibling := &l.siblings[i]; sibling.UID != l.view.Transition.UID && sibling.Status.CompletionTime == nil {
			select {
			case l.wakes <- event.GenericEvent{Object: sibling}:
			default: // it looks again by itself
			}
		}
	}
}

// unapprove asks a person again.
func (l *transitionLook) unapprove(ctx context.Context, d *decide.TransitionDecision) error {
	was := l.view.Transition
	asked := was.DeepCopy()
	asked.Spec.Approved, asked.Spec.ApprovedBy = false, ""
	if err := l.client.Patch(ctx, asked, runtimeclient.MergeFrom(was), runtimeclient.FieldOwner(v1alpha1.FieldOwner)); err != nil {
		return fmt.Errorf("asking again for approval of transition %s: %w", was.Name, err)
	}
	asked.Status.Approval = d.Status.Approval
	l.view.Transition = asked
	return nil
}

// holdPolicy stops the policy whose work is being taken back.
func (l *transitionLook) holdPolicy(ctx context.Context) error {
	was := l.view.Policy
	held := was.DeepCopy()
	held.Spec.StopPolicy = v1alpha1.StopHold
	if err := l.client.Patch(ctx, held, runtimeclient.MergeFrom(was), runtimeclient.FieldOwner(v1alpha1.FieldOwner)); err != nil {
		return fmt.Errorf("putting policy %s on Hold: %w", was.Name, err)
	}
	l.view.Policy = held
	return nil
}

func (l *transitionLook) cancelOriginal(ctx context.Context) error {
	was := l.view.Original
	cancelled := was.DeepCopy()
	cancelled.Spec.Cancelled = true
	if err := l.client.Patch(ctx, cancelled, runtimeclient.MergeFrom(was), runtimeclient.FieldOwner(v1alpha1.FieldOwner)); err != nil {
		return fmt.Errorf("cancelling transition %s: %w", was.Name, err)
	}
	l.view.Original = cancelled
	return nil
}

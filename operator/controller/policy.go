package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
)

// PolicyReconciler carries out RedundancyPolicies: it tells the gateways of classes and creates Transitions.
type PolicyReconciler struct {
	base
	estimates estimateCaches
}

func addPolicies(m manager.Manager, b base) error {
	r := &PolicyReconciler{base: b}
	return ctrl.ControllerManagedBy(m).Named("redundancypolicy").
		For(&v1alpha1.RedundancyPolicy{}, ctrl.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.RedundancyPolicy{}, handler.EnqueueRequestsFromMapFunc(r.competitorsOf), ctrl.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.RedundancyScheme{}, handler.EnqueueRequestsFromMapFunc(r.usersOfScheme), ctrl.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(r.usersOfBackend), ctrl.WithPredicates(backendTurns)).
		Watches(&v1alpha1.Transition{}, handler.EnqueueRequestsFromMapFunc(r.ownerOf), ctrl.WithPredicates(transitionTurns)).
		WithOptions(b.settings()).Complete(r)
}

// competitorsOf are the other policies that claim something that a policy claims or claimed.
func (r *PolicyReconciler) competitorsOf(ctx context.Context, object client.Object) []reconcile.Request {
	policy := object.(*v1alpha1.RedundancyPolicy)
	list, err := competitors(ctx, r.client, policy)
	if err != nil {
		return nil // the informer is stopping
	}
	return requests(namesOf(list, policy.Name)...)
}

func (r *PolicyReconciler) usersOfScheme(ctx context.Context, object client.Object) []reconcile.Request {
	return r.users(ctx, policiesByScheme, object.GetName())
}

func (r *PolicyReconciler) usersOfBackend(ctx context.Context, object client.Object) []reconcile.Request {
	return r.users(ctx, policiesByBackend, object.GetName())
}

func (r *PolicyReconciler) users(ctx context.Context, index, name string) []reconcile.Request {
	list, err := policiesOf(ctx, r.client, index, name)
	if err != nil {
		return nil // the informer is stopping
	}
	return requests(namesOf(list, "")...)
}

func (r *PolicyReconciler) ownerOf(_ context.Context, object client.Object) []reconcile.Request {
	return requests(object.(*v1alpha1.Transition).Spec.PolicyRef)
}

func namesOf(list []v1alpha1.RedundancyPolicy, without string) []string {
	var names []string
	for i := range list {
		if list[i].Name != without {
			names = append(names, list[i].Name)
		}
	}
	return names
}

// Reconcile looks at one policy.
func (r *PolicyReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	policy, err := r.policy(ctx, request.Name)
	if err != nil || policy == nil {
		return reconcile.Result{}, err
	}
	if policy.DeletionTimestamp != nil {
		return r.leave(ctx, policy)
	}
	if err := holdBack(ctx, r.client, policy); err != nil {
		return reconcile.Result{RequeueAfter: defaultLook}, client.IgnoreNotFound(err)
	}
	look := &policyLook{PolicyReconciler: r, policy: policy}
	if err := look.look(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if err := look.act(ctx); err != nil {
		return reconcile.Result{}, err
	}
	return look.report(ctx)
}

// policyLook is one look at one policy, from what is to what should be.
type policyLook struct {
	*PolicyReconciler
	policy  *v1alpha1.RedundancyPolicy
	backend *v1alpha1.StorageBackend // nil: there is none
	seen    *gateways.Snapshot       // nil: nobody answered
	view    decide.PolicyView
}

// look finds out how things are and what should move.
func (l *policyLook) look(ctx context.Context) error {
	l.view = decide.PolicyView{Now: l.clock.Now(), Policy: l.policy}
	var err error
	if l.backend, err = l.base.backend(ctx, l.policy.Spec.BackendRef); err != nil {
		return err
	}
	if l.view.Transitions, err = transitionsOf(ctx, l.client, transitionsByPolicy, l.policy.Name); err != nil {
		return err
	}
	slices.SortFunc(l.view.Transitions, func(a, b v1alpha1.Transition) int { return byAge(&a, &b) })
	if err := l.accept(ctx); err != nil || l.view.Declined != nil {
		return err
	}
	if l.view.Declined = l.view.Declaration.Pin.TooLong(l.view.Now); l.view.Declined != nil {
		return nil
	}
	l.view.Declaration = l.view.Declaration.At(l.view.Now)
	l.view.Permission = l.view.Declaration.Windows.At(l.view.Now)
	l.preflight(0)
	if l.view.Refusal != nil {
		return nil
	}
	var failure error
	if l.seen, failure = l.observe(ctx, l.backend); ctx.Err() != nil {
		return ctx.Err()
	}
	if failure != nil {
		l.view.Unknown = unreachable(l.backend.Name, failure)
		l.view.Degraded = l.view.Unknown
		return nil
	}
	l.view.Degraded = decide.Impaired(&l.view.Declaration.Class, l.backend, l.notWhole())
	if l.view.Heat, err = heatOf(l.seen, l.view.Declaration.Class.Name); err != nil {
		return err
	}
	if l.view.Declined = l.lead(); l.view.Declined != nil {
		return nil
	}
	if err := l.pushClass(ctx, l.policy, l.backend, &l.view.Declaration.Class, l.seen); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.view.NotPushed = &decide.Problem{Reason: decide.ReasonClassNotPushed, Message: oneLine(err)}
		return nil
	}
	if old := l.policy.Status.Class; old != "" && old != l.view.Declaration.Class.Name {
		if err := l.dropClass(ctx, l.backend, old); err != nil { // the status remembers it until it is done
			return err
		}
	}
	return l.choose(ctx)
}

// lead compares the candidates of a class with temperature, where that is due, and under mode auto has the one that leads rule.
func (l *policyLook) lead() *decide.Problem {
	if l.policy.Spec.Temperature == nil {
		return nil
	}
	leader := decide.LeaderOf(l.policy.Status.Temperature, l.view.Declaration.Class.Ladder, !l.view.Declaration.Auto, l.view.Now)
	leader.Look(l.view.Now, l.view.Heat, moneyOf)
	rungs, err := rungsOf(l.policy, l.view.Declaration.Class.Ladder, leader.GroupBytes)
	if err != nil {
		return &decide.Problem{Reason: decide.ReasonInvalidBudget, Message: oneLine(err)}
	}
	l.view.Declaration, l.view.Temperature = l.view.Declaration.Follow(&leader, rungs), leader.Status(moneyOf)
	return nil
}

// notWhole is how many groups of the class missed blocks at the last count.
func (l *policyLook) notWhole() int64 {
	observer, err := l.observers.Of(l.backend)
	if err != nil {
		return 0 // which the look has told already
	}
	walk, _, _ := observer.Walked.Get()
	for _, class := range walk.Status.Classes {
		if class.Name == l.view.Declaration.Class.Name {
			return class.NotWhole
		}
	}
	return 0
}

// accept holds the policy against itself and against the others.
func (l *policyLook) accept(ctx context.Context) error {
	var err error
	if l.view.Declaration, l.view.Declined, err = l.declarations.read(ctx, &l.base, l.policy, l.backend); err != nil || l.view.Declined != nil {
		return err
	}
	others, err := competitors(ctx, l.client, l.policy)
	if err != nil {
		return err
	}
	var claims []decide.Claim
	for i := range others {
		if others[i].Name != l.policy.Name {
			_, wrong, err := l.declarations.read(ctx, &l.base, &others[i], l.backend)
			if err != nil {
				return err
			}
			if wrong != nil {
				continue // it claims nothing
			}
		}
		claims = append(claims, decide.NewClaim(&others[i]))
	}
	l.view.Declined = decide.Conflicts(claims)[l.policy.Name]
	return nil
}

// preflight holds the policy against its backend.
func (l *policyLook) preflight(peak int64) {
	l.view.Refusal, l.view.Warnings = decide.Feasible(decide.Preflight{
		Class: &l.view.Declaration.Class, BackendName: l.policy.Spec.BackendRef, Backend: l.backend, PeakBytes: peak,
	})
}

// choose finds the moves, asks what they cost and chooses among them.
func (l *policyLook) choose(ctx context.Context) error {
	declaration := l.view.Declaration
	l.view.Elsewhere = elsewhereOf(&l.seen.Heat, &declaration.Class)
	place := decide.Place{
		Backend: l.backend.Name, Class: &declaration.Class, Rules: declaration.Rules, Heat: l.view.Heat, Asked: decide.Asked(l.policy),
	}
	if declaration.Pinned {
		place.Pin = declaration.Pin
	}
	var err error
	if place.Active, place.LastEnded, err = l.neighbours(ctx); err != nil {
		return err
	}
	if l.view.Unknown = place.Unknown(); l.view.Unknown != nil {
		return nil
	}
	moves := decide.Moves(place)
	candidates, err := l.estimate(ctx, moves)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.view.Unknown = unreachable(l.backend.Name, err)
		return nil
	}
	judge, err := judgeOf(l.policy, declaration)
	if err != nil {
		l.view.Declined = &decide.Problem{Reason: decide.ReasonInvalidBudget, Message: oneLine(err)}
		return nil
	}
	l.view.Choice = decide.Select(candidates, judge, decide.ConsentOf(l.policy, declaration), declaration.Limits.Concurrency, l.busy())
	var peak int64
	for i := range l.view.Choice.Create {
		peak += l.view.Choice.Create[i].Estimate.PeakBytes
	}
	l.preflight(peak)
	return nil
}

// neighbours returns what the transitions of the class touch that have not ended, and when the last one ended.
func (l *policyLook) neighbours(ctx context.Context) (active []decide.Selection, lastEnded time.Time, err error) {
	list, err := transitionsOf(ctx, l.client, transitionsByClass, classKey(l.backend.Name, l.view.Declaration.Class.Name))
	if err != nil {
		return nil, time.Time{}, err
	}
	for i := range list {
		t := &list[i]
		if ended := t.Status.CompletionTime; ended != nil {
			// Objects keep whole seconds.
			if at := ended.Add(time.Second); at.After(lastEnded) {
				lastEnded = at
			}
			continue
		}
		codes, err := l.schemes(ctx, t.Spec.From, t.Spec.To)
		if err != nil {
			return nil, time.Time{}, err
		}
		if selection, wrong := decide.SelectionOf(&t.Spec, codes); wrong == nil {
			active = append(active, selection)
		}
	}
	return active, lastEnded, nil
}

// busy counts the transitions that take part in the concurrency: those that do not wait for a person.
func (l *policyLook) busy() int {
	n := 0
	for i := range l.view.Transitions {
		t := &l.view.Transitions[i]
		if t.Status.CompletionTime == nil && (t.Spec.Approved || !t.Spec.NeedsApproval) {
			n++
		}
	}
	return n
}

// estimate asks the gateways what moves cost, once per move and heat report.
func (l *policyLook) estimate(ctx context.Context, moves []decide.Move) ([]decide.Candidate, error) {
	cache := l.estimates.of(l.policy.UID, l.seen.Heat.At)
	var candidates []decide.Candidate
	for i := range moves {
		request := requestFor(&moves[i])
		key := fmt.Sprintf("%s %s %s %v", request.Class, request.From, request.To, moves[i].Heat)
		estimate, known := cache.estimates[key]
		if !known {
			observer, err := l.observers.Of(l.backend)
			if err != nil {
				return nil, err
			}
			answer, err := observer.Gateway().Estimate(ctx, request)
			if err != nil {
				return nil, fmt.Errorf("asking what %s to %s of class %s costs: %w", request.From, request.To, request.Class, err)
			}
			estimate = estimateOf(&answer)
			cache.estimates[key] = estimate
		}
		candidates = append(candidates, decide.Candidate{Move: moves[i], Estimate: estimate})
	}
	return candidates, nil
}

// act creates the transitions that were chosen and forgets the oldest that have ended.
func (l *policyLook) act(ctx context.Context) error {
	if l.mayStart() {
		for i := range l.view.Choice.Create {
			if err := l.create(ctx, &l.view.Choice.Create[i]); err != nil {
				return err
			}
		}
	}
	for _, name := range decide.Surplus(l.policy, l.view.Transitions) {
		i := slices.IndexFunc(l.view.Transitions, func(t v1alpha1.Transition) bool { return t.Name == name })
		if err := l.remove(ctx, &l.view.Transitions[i]); err != nil {
			return err
		}
	}
	return nil
}

// create makes a Transition of a chosen move.
func (l *policyLook) create(ctx context.Context, chosen *decide.Selected) error {
	names := make([]string, 0, len(l.view.Transitions))
	for i := range l.view.Transitions {
		names = append(names, l.view.Transitions[i].Name)
	}
	transition := decide.NewTransition(l.policy, chosen, names)
	transition.Labels = map[string]string{v1alpha1.GroupVersion.Group + "/policy": l.policy.Name}
	transition.Finalizers = []string{v1alpha1.Finalizer}
	transition.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(l.policy, v1alpha1.GroupVersion.WithKind("RedundancyPolicy"))}
	spec, err := withoutSwitches(&transition.Spec)
	if err != nil {
		return err
	}
	if err := applyOwned(ctx, l.client, transition, spec); err != nil {
		return err
	}
	l.view.Transitions = append(l.view.Transitions, *transition)
	return nil
}

// withoutSwitches is the spec of a transition without the fields that people set: whoever applies a field owns it.
func withoutSwitches(spec *v1alpha1.TransitionSpec) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding a transition: %w", err)
	}
	for _, name := range []string{"approved", "paused", "cancelled"} {
		delete(fields, name)
	}
	return fields, nil
}

func (l *policyLook) mayStart() bool {
	stop := l.policy.Spec.StopPolicy
	return l.view.Declined == nil && l.view.Refusal == nil && l.view.NotPushed == nil && l.view.Unknown == nil && l.view.Permission.Start &&
		(stop == "" || stop == v1alpha1.StopNone)
}

func (r *PolicyReconciler) remove(ctx context.Context, t *v1alpha1.Transition) error {
	if t.DeletionTimestamp != nil {
		return nil
	}
	if err := r.client.Delete(ctx, t, client.Preconditions{UID: &t.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting transition %s: %w", t.Name, err)
	}
	return nil
}

// report writes the status.
func (l *policyLook) report(ctx context.Context) (reconcile.Result, error) {
	l.view.Savings = savingsOf(&l.view)
	status := decide.PolicyStatus(l.view)
	next := l.view.Now.Add(spread(l.intervals.Look))
	turns := []time.Time{l.view.Permission.Until, l.view.Permission.Next}
	if d := l.view.Declaration; d != nil && d.Pinned {
		turns = append(turns, d.Pin.Until)
	}
	for _, at := range turns {
		if at.After(l.view.Now) && at.Before(next) {
			next = at
		}
	}
	cache := l.estimates.of(l.policy.UID, time.Time{})
	if onlyFigures(&l.policy.Status, &status) && l.view.Now.Sub(cache.written).Abs() < heartbeat {
		return l.again(next), nil
	}
	if equal(&l.policy.Status, &status) {
		return l.again(next), nil
	}
	if err := applyStatus(ctx, l.client, l.policy, &l.policy.Status, &status); err != nil {
		return reconcile.Result{RequeueAfter: defaultLook}, client.IgnoreNotFound(err)
	}
	cache.written = l.view.Now
	l.announcer.changed(l.policy, l.policy.Status.Conditions, status.Conditions)
	l.announcer.led(l.policy, l.policy.Status.Temperature, status.Temperature)
	return l.again(next), nil
}

// onlyFigures reports whether nothing but what grows and shrinks with every put is different.
func onlyFigures(was, is *v1alpha1.RedundancyPolicyStatus) bool {
	plain := is.DeepCopy()
	plain.Rungs, plain.Savings, plain.Summary.Stored = was.Rungs, was.Savings, was.Summary.Stored
	keepMessages(plain.Conditions, was.Conditions)
	return equal(was, plain)
}

// leave takes a deleted policy's transitions with it, and its class where that is empty.
func (r *PolicyReconciler) leave(ctx context.Context, policy *v1alpha1.RedundancyPolicy) (reconcile.Result, error) {
	list, err := transitionsOf(ctx, r.client, transitionsByPolicy, policy.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	for i := range list {
		if err := r.remove(ctx, &list[i]); err != nil {
			return reconcile.Result{}, err
		}
	}
	if len(list) > 0 {
		return r.again(r.clock.Now().Add(spread(r.intervals.Look))), r.reportLeaving(ctx, policy, list)
	}
	backend, err := r.backend(ctx, policy.Spec.BackendRef)
	if err != nil {
		return reconcile.Result{}, err
	}
	if backend != nil && policy.Status.Class != "" {
		if err := r.dropClass(ctx, backend, policy.Status.Class); err != nil {
			return reconcile.Result{}, errors.Join(err, r.reportLeaving(ctx, policy, nil))
		}
	}
	r.declarations.forget(policy.UID)
	r.estimates.forget(policy.UID)
	return reconcile.Result{}, letGo(ctx, r.client, policy)
}

// reportLeaving says what a deleted policy waits for.
func (r *PolicyReconciler) reportLeaving(ctx context.Context, policy *v1alpha1.RedundancyPolicy, list []v1alpha1.Transition) error {
	status := decide.PolicyStatus(decide.PolicyView{
		Now: r.clock.Now(), Policy: policy, Transitions: list, Permission: decide.Permission{Start: true, Run: true}, Savings: policy.Status.Savings,
		Declined: &decide.Problem{Reason: decide.ReasonDeleting, Message: "the policy is being deleted; its objects stay as they are"},
	})
	return client.IgnoreNotFound(applyStatus(ctx, r.client, policy, &policy.Status, &status))
}

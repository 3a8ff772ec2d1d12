package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/keymutex"
	ctrl "sigs.k8s.io/controller-runtime/pkg/builder"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
)

// TransitionReconciler carries out Transitions: each is a job at the gateways.
type TransitionReconciler struct {
	base
	pools   budgetPools
	classes keymutex.KeyMutex // of a class: whether a transition may start depends on the others
	wakes   chan event.GenericEvent

	mutex   sync.Mutex // of what follows
	rates   map[types.UID]decide.Rates
	written map[types.UID]time.Time // the status
}

// wakeRoom is how many wakes wait at most; whom none reaches looks again by itself a little later.
const wakeRoom = 1024

// mostClasses is how many classes have a lock of their own; of more, some wait for each other.
const mostClasses = 1024

func addTransitions(m manager.Manager, b base) error {
	r := &TransitionReconciler{base: b, classes: keymutex.NewHashed(mostClasses), wakes: make(chan event.GenericEvent, wakeRoom), rates: map[types.UID]decide.Rates{}, written: map[types.UID]time.Time{}}
	return ctrl.ControllerManagedBy(m).Named("transition").
		For(&v1alpha1.Transition{}, ctrl.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Transition{}, handler.EnqueueRequestsFromMapFunc(r.siblingsOf), ctrl.WithPredicates(transitionTurns)).
		Watches(&v1alpha1.RedundancyPolicy{}, handler.EnqueueRequestsFromMapFunc(r.ownedBy), ctrl.WithPredicates(policyTurns)).
		Watches(&v1alpha1.StorageBackend{}, handler.EnqueueRequestsFromMapFunc(r.ongoingOn), ctrl.WithPredicates(backendTurns)).
		WatchesRawSource(source.Channel(r.wakes, &handler.EnqueueRequestForObject{})).
		WithOptions(b.settings()).Complete(r)
}

// siblingsOf are the transitions that wait for others: of the same class, or of the same policy.
func (r *TransitionReconciler) siblingsOf(ctx context.Context, object runtimeclient.Object) []reconcile.Request {
	t := object.(*v1alpha1.Transition)
	siblings := r.ongoing(ctx, transitionsByClass, classKey(t.Spec.BackendRef, t.Spec.Class))
	if t.Spec.PolicyRef != "" {
		siblings = append(siblings, r.ongoing(ctx, transitionsByPolicy, t.Spec.PolicyRef)...)
	}
	var names []string
	for _, name := range siblings {
		if name != t.Name {
			names = append(names, name)
		}
	}
	return requests(names...)
}

func (r *TransitionReconciler) ownedBy(ctx context.Context, object runtimeclient.Object) []reconcile.Request {
	return requests(r.ongoing(ctx, transitionsByPolicy, object.GetName())...)
}

func (r *TransitionReconciler) ongoingOn(ctx context.Context, object runtimeclient.Object) []reconcile.Request {
	return requests(r.ongoing(ctx, transitionsOngoing, object.GetName())...)
}

// ongoing are the names of the transitions of an index that have not ended.
func (r *TransitionReconciler) ongoing(ctx context.Context, index, value string) []string {
	list, err := transitionsOf(ctx, r.client, index, value)
	if err != nil {
		return nil // the informer is stopping
	}
	var names []string
	for i := range list {
		if list[i].Status.CompletionTime == nil {
			names = append(names, list[i].Name)
		}
	}
	return names
}

func (b *base) transition(ctx context.Context, name string) (*v1alpha1.Transition, error) {
	if name == "" {
		return nil, nil
	}
	var transition v1alpha1.Transition
	err := b.client.Get(ctx, types.NamespacedName{Name: name}, &transition)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading transition %s: %w", name, err)
	}
	return &transition, nil
}

// Reconcile takes one transition on.
func (r *TransitionReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	t, err := r.transition(ctx, request.Name)
	if err != nil || t == nil {
		return reconcile.Result{}, err
	}
	class := classKey(t.Spec.BackendRef, t.Spec.Class)
	r.classes.LockKey(class)
	defer r.classes.UnlockKey(class) //nolint:errcheck // it has none
	// Another transition of the class may have changed what this one may do while it waited.
	if t, err = r.transition(ctx, request.Name); err != nil || t == nil {
		return reconcile.Result{}, err
	}
	if t.Status.CompletionTime == nil {
		if err := holdBack(ctx, r.client, t); err != nil {
			return reconcile.Result{RequeueAfter: defaultLook}, runtimeclient.IgnoreNotFound(err)
		}
	}
	look := &transitionLook{TransitionReconciler: r, pool: r.pools.of(t), view: decide.TransitionView{Transition: t}}
	if err := look.gather(ctx); err != nil {
		return reconcile.Result{}, err
	}
	decision, err := look.takeOn(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	return look.report(ctx, decision)
}

// mostActions is how many calls one look makes at most: an estimate, a start, a throttle and so on follow each other at
// once, and whatever is left is done in the next look.
const mostActions = 6

// takeOn decides and acts until nothing is left to do now.
func (l *transitionLook) takeOn(ctx context.Context) (*decide.TransitionDecision, error) {
	for range mostActions {
		decision, err := l.decide(ctx)
		if err != nil {
			return nil, err
		}
		acted, err := l.act(ctx, decision)
		if err != nil {
			return nil, err
		}
		if !acted {
			return decision, nil
		}
	}
	return l.decide(ctx)
}

// decide asks what comes next, given what the budget has for the transition.
func (l *transitionLook) decide(ctx context.Context) (*decide.TransitionDecision, error) {
	l.view.Now = l.clock.Now()
	l.view.Grant = decide.Grant{}
	if l.view.Unreachable == nil && l.view.Transition.Status.CompletionTime == nil {
		wants := decide.DecideTransition(l.view).Wants
		if err := l.budget(ctx, wants); err != nil {
			return nil, err
		}
	}
	decision := decide.DecideTransition(l.view)
	return &decision, nil
}

// budget asks the pool for a grant.
func (l *transitionLook) budget(ctx context.Context, wants bool) error {
	t := l.view.Transition
	l.pool.mutex.Lock()
	defer l.pool.mutex.Unlock()
	if l.gateway != nil {
		err := l.pool.fill(ctx, l.gateway, l.siblings)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			l.view.Unreachable = unreachable(t.Spec.BackendRef, err)
			return nil
		}
	}
	l.pool.keep(l.siblings, t)
	l.pool.observe(t, l.view.Job)
	l.pool.giveWay(l.limits, l.load, l.view.Now)
	l.view.Grant = l.pool.grant(t, l.limits, wants)
	return nil
}

// act carries a decision out, and reports whether there was anything to do.
func (l *transitionLook) act(ctx context.Context, d *decide.TransitionDecision) (bool, error) {
	switch {
	case d.Unapprove:
		return true, l.unapprove(ctx, d)
	case d.HoldPolicy:
		return true, l.holdPolicy(ctx)
	case d.CancelOriginal:
		if err := l.cancelOriginal(ctx); err != nil {
			return false, err
		}
		l.view.Original.Spec.Cancelled = true
		return true, nil
	case d.Action == decide.ActionNone:
		return false, nil
	}
	err := l.call(ctx, d)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return true, l.answered(ctx, d, err)
}

// answered deals with the answer of the gateways. That they refuse is for the decision to say, and that they have no
// answer. What became of the call then nobody knows: the next look asks.
func (l *transitionLook) answered(ctx context.Context, d *decide.TransitionDecision, err error) error {
	switch {
	case err == nil:
	case gateways.Refused(err) && (d.Action == decide.ActionCreate || d.Action == decide.ActionEstimate):
		l.view.Refused = oneLine(err)
	case gateways.Refused(err):
		return l.findJob(ctx, d.Job) // it is in another state by now
	default:
		l.view.Unreachable = unreachable(l.view.Transition.Spec.BackendRef, err)
	}
	return nil
}

// report writes the status, and lets a transition go of which nothing runs any more.
func (l *transitionLook) report(ctx context.Context, d *decide.TransitionDecision) (reconcile.Result, error) {
	t := l.view.Transition
	gone := d.Release && t.DeletionTimestamp != nil
	if !gone && l.worthWriting(&t.Status, &d.Status) {
		if err := applyStatus(ctx, l.client, t, &t.Status, &d.Status); err != nil {
			return reconcile.Result{RequeueAfter: defaultLook}, runtimeclient.IgnoreNotFound(err)
		}
		l.announcer.changed(t, t.Status.Conditions, d.Status.Conditions)
		l.wrote(t)
	}
	if !d.Release {
		return l.again(l.next(d)), nil
	}
	l.TransitionReconciler.forget(t)
	l.pool.mutex.Lock()
	l.pool.leave(t)
	l.pool.mutex.Unlock()
	current, err := l.transition(ctx, t.Name) // as the status was just written
	if err != nil || current == nil || current.UID != t.UID {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, letGo(ctx, l.client, current)
}

// next is when to look again: what runs is looked at as often as the options say.
func (l *transitionLook) next(d *decide.TransitionDecision) time.Time {
	if d.Again.IsZero() || l.view.Job == nil || l.view.Job.State != decide.JobRunning {
		return d.Again
	}
	if soon := l.view.Now.Add(spread(l.intervals.Progress)); soon.Before(d.Again) || l.intervals.Progress > defaultProgress {
		return soon
	}
	return d.Again
}

// worthWriting reports whether more than the progress has changed, or the progress that is written is old.
func (l *transitionLook) worthWriting(was, is *v1alpha1.TransitionStatus) bool {
	if equal(was, is) {
		return false
	}
	l.mutex.Lock()
	since := l.view.Now.Sub(l.written[l.view.Transition.UID])
	l.mutex.Unlock()
	if since < 0 || since >= l.intervals.Look {
		return true
	}
	plain := is.DeepCopy()
	plain.Progress, plain.Summary.Done, plain.Summary.ETA, plain.Summary.Sent = was.Progress, was.Summary.Done, was.Summary.ETA, was.Summary.Sent
	keepMessages(plain.Conditions, was.Conditions)
	return !equal(was, plain)
}

// wrote takes note of when a status was written.
func (l *transitionLook) wrote(t *v1alpha1.Transition) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.written[t.UID] = l.view.Now
}

func (r *TransitionReconciler) forget(t *v1alpha1.Transition) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.rates, t.UID)
	delete(r.written, t.UID)
}

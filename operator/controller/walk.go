package controller

import (
	"context"
	"errors"

	ctrl "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// WalkReconciler walks over the groups of StorageBackends. That may take long, so nothing else waits for it: what was found
// is with the observer.
type WalkReconciler struct{ base }

func addWalks(m manager.Manager, b base) error {
	return ctrl.ControllerManagedBy(m).Named("walk").
		For(&v1alpha1.StorageBackend{}, ctrl.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(b.settings()).Complete(&WalkReconciler{b})
}

// Reconcile walks over the groups of one backend, if it is time to. A walk that takes longer than Reconcile may goes on by
// itself.
func (r *WalkReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	backend, err := r.backend(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if backend == nil {
		r.observers.Forget(request.Name)
		return reconcile.Result{}, nil
	}
	// Gateways that do not answer are the backend's condition, and are asked again.
	if seen, _ := r.observe(ctx, backend); seen != nil {
		err := r.walk(ctx, backend)
		if errors.Is(ctx.Err(), context.Canceled) { // the operator ends, which is no failure of the walk
			return reconcile.Result{}, nil
		}
		if err != nil && ctx.Err() == nil {
			return reconcile.Result{}, err
		}
	}
	return r.again(r.clock.Now().Add(spread(r.intervals.Look))), nil
}

func (r *WalkReconciler) walk(ctx context.Context, backend *v1alpha1.StorageBackend) error {
	observer, err := r.observers.Of(backend)
	if err != nil {
		return err
	}
	return observer.Walk(ctx, r.intervals.Look/2)
}

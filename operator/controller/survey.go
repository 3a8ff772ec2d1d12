package controller

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// surveys have the groups of StorageBackends walked over. That may take long, so nothing else waits for it: what was found
// is in the lookout.
type surveys struct{ base }

func addSurveys(m manager.Manager, b base) error {
	return ctrl.ControllerManagedBy(m).Named("survey").
		For(&v1alpha1.StorageBackend{}, ctrl.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(b.settings()).Complete(&surveys{b})
}

// Reconcile has the groups of one backend walked over, if it is time to.
func (r *surveys) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	backend, err := r.backend(ctx, request.Name)
	if err != nil || backend == nil {
		r.lookout.forget(request.Name)
		return reconcile.Result{}, err
	}
	// Gateways that do not answer are the backend's condition, and are asked again.
	if seen, _ := r.lookout.look(ctx, backend, r.intervals.Look/2); seen != nil {
		err := r.lookout.walk(ctx, backend, seen.status.Nodes)
		if ctx.Err() != nil { // the operator ends, which is no failure of the walk
			return reconcile.Result{}, nil
		}
		if err != nil {
			return reconcile.Result{}, err
		}
	}
	return r.again(r.clock.Now().Add(spread(r.intervals.Look))), nil
}

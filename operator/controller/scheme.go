package controller

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
)

// SchemeReconciler keeps the status of RedundancySchemes.
type SchemeReconciler struct{ base }

func addSchemes(m manager.Manager, b base) error {
	return ctrl.ControllerManagedBy(m).Named("redundancyscheme").
		For(&v1alpha1.RedundancyScheme{}, ctrl.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.RedundancyPolicy{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
			return requests(schemesOf(object.(*v1alpha1.RedundancyPolicy))...)
		}), ctrl.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(b.settings()).Complete(&SchemeReconciler{b})
}

// Reconcile says what follows from one scheme.
func (r *SchemeReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var scheme v1alpha1.RedundancyScheme
	err := r.client.Get(ctx, request.NamespacedName, &scheme)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading scheme %s: %w", request.Name, err)
	}
	if err := holdBack(ctx, r.client, &scheme); err != nil {
		return reconcile.Result{RequeueAfter: defaultLook}, client.IgnoreNotFound(err)
	}
	policies, err := policiesOf(ctx, r.client, policiesByScheme, scheme.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if scheme.DeletionTimestamp != nil && len(policies) == 0 {
		return reconcile.Result{}, letGo(ctx, r.client, &scheme)
	}
	status := decide.SchemeStatus(&scheme, len(policies), r.clock.Now())
	if err := applyStatus(ctx, r.client, &scheme, &scheme.Status, &status); err != nil {
		return reconcile.Result{RequeueAfter: defaultLook}, client.IgnoreNotFound(err)
	}
	r.announcer.changed(&scheme, scheme.Status.Conditions, status.Conditions)
	return reconcile.Result{}, nil
}

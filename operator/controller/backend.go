package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
)

// BackendReconciler keeps the status of StorageBackends.
type BackendReconciler struct {
	base
	joining *joining
}

func addBackends(m manager.Manager, b base) error {
	return ctrl.ControllerManagedBy(m).Named("storagebackend").
		For(&v1alpha1.StorageBackend{}, ctrl.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.RedundancyPolicy{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
			return requests(object.(*v1alpha1.RedundancyPolicy).Spec.BackendRef)
		}), ctrl.WithPredicates(predicate.GenerationChangedPredicate{}, leaves)).
		WithOptions(b.settings()).Complete(&BackendReconciler{b, newJoining()})
}

// heartbeat is how old a status may be whose figures alone have changed. Conditions and nodes are written at once.
const heartbeat = time.Minute

// Reconcile looks at the gateways of one backend.
func (r *BackendReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	backend, err := r.backend(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if backend == nil {
		r.joining.forget(request.Name)
		r.observers.Forget(request.Name)
		return reconcile.Result{}, nil
	}
	if err := holdBack(ctx, r.client, backend); err != nil {
		return reconcile.Result{}, err
	}
	seen, failure := r.observe(ctx, backend)
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err()
	}
	repair, declined := decide.DeclareRepair(backend)
	var untold, notAdded *decide.Problem
	var repairs decide.RepairSight
	if seen != nil && backend.DeletionTimestamp == nil {
		notAdded = r.addNodes(ctx, backend, seen)
		untold = r.place(ctx, backend, seen)
		if declined == nil {
			repairs, untold = r.limitRepair(ctx, backend, &repair, untold)
		}
	}
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err()
	}
	status, found := r.status(backend, seen)
	uses, err := r.uses(ctx, backend, status)
	if err != nil {
		return reconcile.Result{}, err
	}
	if backend.DeletionTimestamp != nil && uses == "" {
		r.observers.Forget(backend.Name)
		return reconcile.Result{}, letGo(ctx, r.client, backend)
	}
	unmanaged, err := r.unmanaged(ctx, backend, seen)
	if err != nil {
		return reconcile.Result{}, err
	}
	view := decide.BackendView{
		Now: r.clock.Now(), Backend: backend, Nodes: status.Nodes, Unreachable: unreachable(backend.Name, failure),
		Declined: declined, Untold: untold, NotAdded: notAdded, Moved: decide.MovedNodes(backend.Spec.Nodes, status.Nodes), Repair: repairs,
		CanLose: status.CanLose, Counted: found.current, NotWhole: found.notWhole, Unmanaged: unmanaged, InUse: uses,
	}
	if seen != nil {
		view.Behind = seen.Status.CatalogBehind
	}
	status.Conditions = decide.BackendConditions(view)
	if !r.worthWriting(&backend.Status, status) {
		return r.again(r.clock.Now().Add(spread(r.intervals.Look))), nil
	}
	if err := applyStatus(ctx, r.client, backend, &backend.Status, status); err != nil {
		return reconcile.Result{}, err
	}
	r.announcer.changed(backend, backend.Status.Conditions, status.Conditions)
	return r.again(r.clock.Now().Add(spread(r.intervals.Look))), nil
}

// place tells the gateways what is declared of nodes that they know otherwise. What they do not take is told again at the
// next look.
func (r *BackendReconciler) place(ctx context.Context, backend *v1alpha1.StorageBackend, seen *gateways.Snapshot) *decide.Problem {
	places := decide.NodePlaces(backend.Spec.Nodes, nodesOf(&v1alpha1.StorageBackend{}, seen.Status.Nodes))
	if len(places) == 0 {
		return nil
	}
	observer, err := r.observers.Of(backend)
	if err != nil {
		return unreachable(backend.Name, err)
	}
	var placer gateways.NodePlacer = observer.Gateway()
	var failures []error
	for _, place := range places {
		if _, err := placer.PlaceNode(ctx, place.Node, api.PlaceRequest{Domain: place.FailureDomain, Spare: place.Spare}); err != nil {
			failures = append(failures, fmt.Errorf("node %s: %w", place.Node, err))
		}
	}
	if len(failures) == 0 {
		return nil
	}
	return &decide.Problem{Reason: decide.ReasonNodesNotPlaced, Message: "the gateways do not take what spec.nodes declares: " + oneLine(errors.Join(failures...))}
}

// limitRepair tells the gateways what is declared of repair and they have otherwise, and returns how they have it then. Of two
// problems the other one is told first.
func (r *BackendReconciler) limitRepair(ctx context.Context, backend *v1alpha1.StorageBackend, declared *decide.Repair, other *decide.Problem) (decide.RepairSight, *decide.Problem) {
	observer, err := r.observers.Of(backend)
	if err != nil {
		return decide.RepairSight{}, unreachable(backend.Name, err)
	}
	var keeper gateways.RepairKeeper = observer.Gateway()
	status, err := keeper.RepairStatus(ctx)
	if err == nil {
		orders := declared.Orders(r.clock.Now(), repairSight(&status))
		limits := api.ThrottleRequest{BytesPerSecond: orders.Total, NodeBytesPerSecond: orders.Node, DomainBytesPerSecond: orders.Domain}
		if limits != (api.ThrottleRequest{}) {
			status, err = keeper.ThrottleRepair(ctx, limits)
		}
		if err == nil && orders.DeferUntil != nil {
			status, err = keeper.DeferRepair(ctx, api.DeferRequest{Until: *orders.DeferUntil, By: orders.By})
		}
	}
	if err != nil && other == nil {
		other = &decide.Problem{Reason: decide.ReasonRepairNotLimited, Message: "the gateways do not take what spec.repair declares: " + oneLine(err)}
	}
	return repairSight(&status), other
}

func repairSight(status *api.RepairStatus) decide.RepairSight {
	sight := decide.RepairSight{
		Total: status.BytesPerSecond, Node: status.NodeBytesPerSecond, Domain: status.DomainBytesPerSecond,
		DeferredBy: status.DeferredBy, Waiting: status.Waiting,
	}
	if status.DeferredUntil != nil {
		sight.DeferredUntil = *status.DeferredUntil
	}
	return sight
}

// unreachable says that no gateway answers; nil if one did.
func unreachable(backend string, failure error) *decide.Problem {
	if failure == nil {
		return nil
	}
	return &decide.Problem{Reason: decide.ReasonGatewayDown, Message: fmt.Sprintf("no gateway of backend %s answers: %s", backend, oneLine(failure))}
}

// oneLine is an error without line breaks: those of several gateways are joined by them.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// count is what is known of missing blocks.
type count struct {
	current  bool  // counted with the nodes in the states they are in
	notWhole int64 // groups, at the last count
}

// status is what the gateways said; what they did not say now is as it was.
func (r *BackendReconciler) status(backend *v1alpha1.StorageBackend, seen *gateways.Snapshot) (*v1alpha1.StorageBackendStatus, count) {
	status := backend.Status.DeepCopy()
	status.ObservedGeneration = backend.Generation
	if seen == nil {
		return status, count{}
	}
	status.Nodes = decide.WithMissing(backend.Spec.Nodes, nodesOf(backend, seen.Status.Nodes))
	status.UsedBytes, status.CapacityBytes = api.Capacity(seen.Status.Nodes)
	var found count
	status.CanLose = nil
	if last := r.walked(backend); last != nil {
		found = count{last.Holds(seen.Status.Nodes), last.Status.NotWhole}
		if found.current && last.Status.CanLose >= 0 {
			losses := int32(last.Status.CanLose)
			status.CanLose = &losses
		}
	}
	status.Groups, status.Objects = seen.Status.Groups, seen.Status.Objects
	status.Capabilities = capabilities(seen.Status.Nodes)
	status.Summary = v1alpha1.BackendSummary{
		Nodes: decide.NodesSummary(status.Nodes), Used: decide.UsedSummary(status.UsedBytes, status.CapacityBytes),
	}
	at := metav1.NewTime(seen.At.Truncate(time.Second))
	status.LastSeen = &at
	return status, found
}

// walked returns what the last walk over the groups of a backend found; nil before the first one.
func (r *BackendReconciler) walked(backend *v1alpha1.StorageBackend) *gateways.Walk {
	observer, err := r.observers.Of(backend)
	if err != nil {
		return nil // which the look has told already
	}
	if walk, known, _ := observer.Walked.Get(); known {
		return &walk
	}
	return nil
}

func nodesOf(backend *v1alpha1.StorageBackend, seen []api.NodeStatus) []v1alpha1.NodeStatus {
	domains := map[string]string{}
	for _, node := range backend.Spec.Nodes {
		domains[node.Name] = node.FailureDomain
	}
	nodes := make([]v1alpha1.NodeStatus, 0, len(seen))
	for _, node := range seen {
		name, domain := string(node.ID), node.Domain
		if declared := domains[name]; declared != "" {
			domain = declared
		}
		nodes = append(nodes, v1alpha1.NodeStatus{
			Name: name, Address: node.Address, FailureDomain: domain, State: node.State, Spare: node.Spare,
			UsedBytes: node.UsedBytes, CapacityBytes: node.CapacityBytes, Warnings: node.Warnings,
		})
	}
	return nodes
}

// evicting are the kinds of stores that drop items by themselves when they are full.
var evicting = []string{"memcached"}

// capabilities are the least that all nodes can do, of those that have said.
func capabilities(nodes []api.NodeStatus) v1alpha1.Capabilities {
	least := v1alpha1.Capabilities{Durable: true}
	said := false
	for _, node := range nodes {
		if node.StoreKind == "" {
			continue
		}
		said = true
		least.Evicts = least.Evicts || slices.Contains(evicting, node.StoreKind)
		least.Durable = least.Durable && node.Durable
		if limit := node.ValueLimit; limit > 0 && (least.MaxItemBytes == 0 || limit < least.MaxItemBytes) {
			least.MaxItemBytes = limit
		}
	}
	least.Durable = least.Durable && said
	return least
}

// uses is what would be orphaned without a backend that is being deleted: policies, and what it stores.
func (r *BackendReconciler) uses(ctx context.Context, backend *v1alpha1.StorageBackend, status *v1alpha1.StorageBackendStatus) (string, error) {
	if backend.DeletionTimestamp == nil {
		return "", nil // nobody asks
	}
	policies, err := policiesOf(ctx, r.client, policiesByBackend, backend.Name)
	if err != nil {
		return "", err
	}
	var uses []string
	if n := len(policies); n > 0 {
		uses = append(uses, fmt.Sprintf("policy %s and %d more", policies[0].Name, n-1))
		if n == 1 {
			uses[0] = "policy " + policies[0].Name
		}
	}
	if status.Groups > 0 {
		uses = append(uses, fmt.Sprintf("%d groups of objects that it holds", status.Groups))
	}
	return strings.Join(uses, ", and of "), nil
}

// unmanaged counts the objects of classes that no policy manages; nil while they have not been counted. What a class file
// declares is managed by that.
func (r *BackendReconciler) unmanaged(
	ctx context.Context, backend *v1alpha1.StorageBackend, seen *gateways.Snapshot,
) ([]decide.ClassCount, error) {
	if seen == nil || seen.Heat.ObjectsAt.IsZero() {
		return nil, nil
	}
	policies, err := policiesOf(ctx, r.client, policiesByBackend, backend.Name)
	if err != nil {
		return nil, err
	}
	managed := map[string]bool{}
	for i := range policies {
		managed[decide.ClassName(&policies[i])] = managed[decide.ClassName(&policies[i])] || policies[i].DeletionTimestamp == nil
	}
	counts := []decide.ClassCount{}
	for _, class := range seen.Heat.Classes {
		if class.Objects > 0 && !managed[class.Class] && seen.Classes[class.Class].Origin != api.ClassFromFile {
			counts = append(counts, decide.ClassCount{Class: class.Class, Objects: class.Objects, Bytes: class.Bytes})
		}
	}
	return counts, nil
}

// worthWriting reports whether more than figures has changed, or the figures are old.
func (r *BackendReconciler) worthWriting(was, is *v1alpha1.StorageBackendStatus) bool {
	if was.LastSeen == nil || is.LastSeen == nil || is.LastSeen.Sub(was.LastSeen.Time).Abs() >= heartbeat {
		return true
	}
	plain := is.DeepCopy()
	plain.LastSeen, plain.UsedBytes, plain.Groups, plain.Objects, plain.Summary.Used = was.LastSeen, was.UsedBytes, was.Groups, was.Objects, was.Summary.Used
	if len(plain.Nodes) != len(was.Nodes) || (is.Groups == 0) != (was.Groups == 0) {
		return true
	}
	had := meta.FindStatusCondition(was.Conditions, v1alpha1.ConditionManaged)
	if is := meta.FindStatusCondition(plain.Conditions, v1alpha1.ConditionManaged); is != nil && had != nil && is.Reason == had.Reason {
		is.Message = had.Message // how many objects there are
	}
	for i := range plain.Nodes {
		plain.Nodes[i].UsedBytes = was.Nodes[i].UsedBytes
	}
	return !equal(was, plain)
}

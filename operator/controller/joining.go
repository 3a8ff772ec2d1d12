package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
	"github.com/restripe/restripe/operator/gateways"
)

// mostWaits is how many looks at most lie between two tries to add a node.
const mostWaits = 32

// joining is what came of trying to add nodes. It only spares gateways from being asked too often: without it everything is tried
// again.
type joining struct {
	mutex sync.Mutex                    // of what follows
	tries map[string]map[string]*joiner // by backend and node
}

// joiner is a declared node that was no member when it was looked for.
type joiner struct {
	declared v1alpha1.BackendNode // as it was tried
	failure  error                // of the last try; nil: it was added
	wait     time.Duration        // from the last try to
	next     time.Time            // the next one
	isOwed   bool                 // a balance is to begin once it is a member, and it is not known whether one has
}

func newJoining() *joining { return &joining{tries: map[string]map[string]*joiner{}} }

// of returns the tries of a backend, which one look at a time works with.
func (j *joining) of(backend string) map[string]*joiner {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.tries[backend] == nil {
		j.tries[backend] = map[string]*joiner{}
	}
	return j.tries[backend]
}

func (j *joining) forget(backend string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	delete(j.tries, backend)
}

// addNodes adds the declared nodes that are no members, those that could not be added after ever longer times, and begins the balance
// that they are declared for. It returns what could not be done.
func (r *BackendReconciler) addNodes(ctx context.Context, backend *v1alpha1.StorageBackend, seen *gateways.Snapshot) *decide.Problem {
	tries := r.joining.of(backend.Name)
	known := nodesOf(&v1alpha1.StorageBackend{}, seen.Status.Nodes)
	added := decide.NewNodes(backend.Spec.Nodes, known)
	var owing []string // of those that are members by now
	for name, try := range tries {
		switch {
		case slices.ContainsFunc(added, func(node v1alpha1.BackendNode) bool { return node.Name == name }):
		case try.isOwed && backend.Spec.Use == v1alpha1.UseBalance && isKnown(known, name):
			owing = append(owing, name)
		default:
			delete(tries, name)
		}
	}
	if len(added) == 0 && len(owing) == 0 {
		return nil
	}
	observer, err := r.observers.Of(backend)
	if err != nil {
		return unreachable(backend.Name, err)
	}
	var adder gateways.NodeAdder = observer.Gateway()
	var failures []error
	for i := range added {
		if err := r.addNode(ctx, adder, backend, tries, &added[i]); err != nil {
			failures = append(failures, err)
		}
	}
	var problem *decide.Problem
	if len(owing) > 0 {
		if _, err := adder.StartBalance(ctx, api.BalanceRequest{}); err != nil {
			problem = &decide.Problem{
				Reason:  decide.ReasonBalanceNotBegun,
				Message: fmt.Sprintf("node %s was added, and the balance did not begin: %s", owing[0], oneLine(err)),
			}
			owing = nil // another time
		}
	}
	for _, name := range owing {
		delete(tries, name)
	}
	if len(failures) > 0 {
		problem = &decide.Problem{Reason: decide.ReasonNodesNotAdded, Message: "not added: " + oneLine(errors.Join(failures...))}
	}
	return problem
}

func isKnown(known []v1alpha1.NodeStatus, name string) bool {
	return slices.ContainsFunc(known, func(node v1alpha1.NodeStatus) bool { return node.Name == name })
}

// addNode adds a node if it is time to, and returns why it is no member yet.
func (r *BackendReconciler) addNode(
	ctx context.Context, adder gateways.NodeAdder, backend *v1alpha1.StorageBackend, tries map[string]*joiner, node *v1alpha1.BackendNode,
) error {
	now := r.clock.Now()
	try := tries[node.Name]
	if try == nil || !equal(&try.declared, node) {
		try = &joiner{declared: *node, wait: r.intervals.Look / 2}
		tries[node.Name] = try
	}
	if now.Before(try.next) {
		return try.failure
	}
	request := api.AddRequest{Address: node.Address, Domain: node.FailureDomain, Spare: node.Spare != nil && *node.Spare, Use: api.UseCapacity}
	if backend.Spec.Use == v1alpha1.UseBalance && !request.Spare {
		request.Use = api.UseBalance
	}
	_, err := adder.AddNode(ctx, node.Name, request)
	if ctx.Err() != nil {
		return nil // says nothing about the node
	}
	try.wait = min(2*try.wait, mostWaits*r.intervals.Look)
	try.next, try.failure = r.clock.Now().Add(try.wait), nil
	// What was not answered may have been done; a refusal of the same afterwards says nothing about the balance.
	try.isOwed = request.Use == api.UseBalance && err != nil && (try.isOwed || !gateways.Refused(err))
	if err == nil || errors.Is(err, api.ErrUnknownOutcome) {
		r.announcer.added(backend, node, request.Use == api.UseBalance)
		return nil
	}
	try.failure = fmt.Errorf("node %s: %w", node.Name, err)
	return try.failure
}

package gateways

import (
	"context"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// The interfaces below are what the control plane asks of the gateways of one backend, by need; take the smallest that does.
// Errors are api.ErrNotFound, ErrConflict, ErrBadRequest, ErrTooFewNodes, ErrUnavailable, client.ErrUnreachable, or that of
// a context that ended. Every call may be repeated: asking twice for the same is asking once.

// Reporter tells how a backend is.
type Reporter interface {
	// StatusBrief tells of the nodes; its counts are those of the last heat report, so that it costs little.
	StatusBrief(ctx context.Context) (api.Status, error)
	// Status walks over every object and group: it alone tells which blocks are missing and what may be lost.
	Status(ctx context.Context) (api.Status, error)
	// Heat tells what lies under each scheme of each class and how often it is used; ErrUnavailable some time after a start.
	Heat(ctx context.Context) (api.HeatReport, error)
	// Load tells how long clients wait, at the gateway where they wait longest, and sums up what they ask.
	Load(ctx context.Context) (api.Load, error)
	// Classes lists the classes in force.
	Classes(ctx context.Context) ([]api.ClassInfo, error)
}

// ClassKeeper changes classes.
type ClassKeeper interface {
	// Classes lists the classes in force.
	Classes(ctx context.Context) ([]api.ClassInfo, error)
	// PutClass declares a class or changes it; ErrConflict where another class has one of the prefixes.
	PutClass(ctx context.Context, class api.ClassSpec) (api.ClassInfo, error)
	// DeleteClass removes a class, or does nothing if there is none; ErrConflict while objects are in it.
	DeleteClass(ctx context.Context, name string) error
}

// NodePlacer places nodes.
type NodePlacer interface {
	// PlaceNode changes the failure domain of a node and whether it is a spare; ErrNotFound without such a node.
	PlaceNode(ctx context.Context, id string, request api.PlaceRequest) (api.NodeInfo, error)
}

// NodeAdder makes nodes members.
type NodeAdder interface {
	// AddNode makes a node a member and, with use balance, begins a balance unless one is under way. ErrConflict where it is a member
	// already, was one, or is not what it should be: it alone must not be repeated. ErrUnknownOutcome where it was added, and whether
	// the balance began is not known.
	AddNode(ctx context.Context, id string, request api.AddRequest) (api.AddedNode, error)
	// StartBalance begins a balance; one that is under way, or paused, stays as it is but for a rate that is given.
	StartBalance(ctx context.Context, request api.BalanceRequest) (api.Balance, error)
}

// RepairKeeper limits and defers the repair of what was lost. Each call returns how repair stands then.
type RepairKeeper interface {
	RepairStatus(ctx context.Context) (api.RepairStatus, error)
	// ThrottleRepair changes the limits that are given.
	ThrottleRepair(ctx context.Context, limits api.ThrottleRequest) (api.RepairStatus, error)
	// DeferRepair makes groups wait for repair until a time; one that has passed ends the wait.
	DeferRepair(ctx context.Context, request api.DeferRequest) (api.RepairStatus, error)
}

// Estimator tells what transitions would cost.
type Estimator interface {
	// Estimate plans a transition and changes nothing.
	Estimate(ctx context.Context, request api.TransitionRequest) (api.Estimate, error)
}

// ObjectLister lists objects. Not every Gateway can; ask by assertion.
type ObjectLister interface {
	// List returns a page of the objects whose keys have a prefix, after the place where the last page ended; "" is the start.
	List(ctx context.Context, prefix, after string, limit int) (api.ObjectList, error)
}

// HeatForeteller tells what would be settled under another dwell. Not every Gateway can; ask by assertion.
type HeatForeteller interface {
	// HeatUnder is Heat of one class, as if it had the dwell. It walks over all groups.
	HeatUnder(ctx context.Context, class string, dwell time.Duration) (api.HeatReport, error)
}

// TransitionReader finds transitions.
type TransitionReader interface {
	// Transition returns a transition as it is; ErrNotFound if there is none.
	Transition(ctx context.Context, id string) (api.Transition, error)
}

// TransitionKeeper starts and steers transitions. Each call returns the transition as it is then.
type TransitionKeeper interface {
	TransitionReader
	// StartTransition starts the transition with the request's ID, or returns the one that has it.
	StartTransition(ctx context.Context, request api.TransitionRequest) (api.Transition, error)
	// Pause stops a transition for a while, Resume goes on with one that is paused or has failed, and Cancel ends one for
	// good; ErrBadRequest where its state does not allow that.
	Pause(ctx context.Context, id string) (api.Transition, error)
	Resume(ctx context.Context, id string, bytesPerSecond *int64) (api.Transition, error)
	Cancel(ctx context.Context, id string) (api.Transition, error)
	// Throttle changes the limits that are given, while the transition runs.
	Throttle(ctx context.Context, id string, limits api.ThrottleRequest) (api.Transition, error)
}

// Gateway is all of it. Package gatewaystest holds every implementation to it.
type Gateway interface {
	Reporter
	ClassKeeper
	NodePlacer
	NodeAdder
	RepairKeeper
	Estimator
	TransitionKeeper
}

// Dialer reaches the gateways of a backend by their addresses. It does not connect yet. A Gateway with a method Close() has
// it called when nobody uses it any more.
type Dialer func(addresses []string) (Gateway, error)

// Close closes gateways that have something to close.
func Close(g Gateway) {
	if closer, can := g.(interface{ Close() }); can {
		closer.Close()
	}
}

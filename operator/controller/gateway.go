package controller

import (
	"context"

	"github.com/restripe/restripe/agent/gateway"
)

// Gateway is what the controllers need of the gateways of one backend, any of which answers for all. Its errors are
// those of package client: ErrNotFound, ErrConflict, ErrBadRequest, ErrUnavailable, ErrUnreachable. Every call may be
// repeated: asking twice for the same is asking once.
type Gateway interface {
	// StatusBrief tells of the nodes; its counts are those of the last heat report, so that it costs little.
	StatusBrief(ctx context.Context) (gateway.Status, error)
	// Status walks over every object and group: it alone tells which blocks are missing and what may be lost.
	Status(ctx context.Context) (gateway.Status, error)
	// Heat tells what lies under each scheme of each class and how often it is used.
	Heat(ctx context.Context) (gateway.HeatReport, error)
	// Load tells how long clients wait, at the gateway where they wait longest.
	Load(ctx context.Context) (gateway.Load, error)

	// Classes lists the classes in force.
	Classes(ctx context.Context) ([]gateway.ClassInfo, error)
	// PutClass declares a class or changes it.
	PutClass(ctx context.Context, class gateway.ClassSpec) (gateway.ClassInfo, error)
	// DeleteClass removes a class; ErrConflict while objects are in it.
	DeleteClass(ctx context.Context, name string) error

	// PlaceNode changes the failure domain of a node and whether it is a spare.
	PlaceNode(ctx context.Context, id string, request gateway.PlaceRequest) (gateway.NodeInfo, error)

	// RepairStatus tells how the repair of what was lost stands, ThrottleRepair changes its limits, and DeferRepair has groups
	// wait for it.
	RepairStatus(ctx context.Context) (gateway.RepairStatus, error)
	ThrottleRepair(ctx context.Context, limits gateway.ThrottleRequest) (gateway.RepairStatus, error)
	DeferRepair(ctx context.Context, request gateway.DeferRequest) (gateway.RepairStatus, error)

	// Estimate tells what a transition would cost.
	Estimate(ctx context.Context, request gateway.TransitionRequest) (gateway.Estimate, error)
	// StartTransition starts the transition with the request's ID, or returns the one that has it.
	StartTransition(ctx context.Context, request gateway.TransitionRequest) (gateway.Transition, error)
	// Transition returns a transition as it is.
	Transition(ctx context.Context, id string) (gateway.Transition, error)
	// Pause, Resume and Cancel steer a transition; Throttle changes its limits while it runs.
	Pause(ctx context.Context, id string) (gateway.Transition, error)
	Resume(ctx context.Context, id string, bytesPerSecond *int64) (gateway.Transition, error)
	Cancel(ctx context.Context, id string) (gateway.Transition, error)
	Throttle(ctx context.Context, id string, limits gateway.ThrottleRequest) (gateway.Transition, error)
}

// Dialer reaches the gateways of a backend by their addresses. It does not connect yet.
type Dialer func(addresses []string) (Gateway, error)

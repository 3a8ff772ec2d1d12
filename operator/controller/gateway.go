package controller

import (
	"context"

	"github.com/restripe/restripe/agent/gateway/api"
)

// Gateway is what the controllers need of the gateways of one backend, any of which answers for all. Its errors are
// those of package client: ErrNotFound, ErrConflict, ErrBadRequest, ErrUnavailable, ErrUnreachable. Every call may be
// repeated: asking twice for the same is asking once.
type Gateway interface {
	// StatusBrief tells of the nodes; its counts are those of the last heat report, so that it costs little.
	StatusBrief(ctx context.Context) (api.Status, error)
	// Status walks over every object and group: it alone tells which blocks are missing and what may be lost.
	Status(ctx context.Context) (api.Status, error)
	// Heat tells what lies under each scheme of each class and how often it is used.
	Heat(ctx context.Context) (api.HeatReport, error)
	// Load tells how long clients wait, at the gateway where they wait longest.
	Load(ctx context.Context) (api.Load, error)

	// Classes lists the classes in force.
	Classes(ctx context.Context) ([]api.ClassInfo, error)
	// PutClass declares a class or changes it.
	PutClass(ctx context.Context, class api.ClassSpec) (api.ClassInfo, error)
	// DeleteClass removes a class; ErrConflict while objects are in it.
	DeleteClass(ctx context.Context, name string) error

	// PlaceNode changes the failure domain of a node and whether it is a spare.
	PlaceNode(ctx context.Context, id string, request api.PlaceRequest) (api.NodeInfo, error)

	// RepairStatus tells how the repair of what was lost stands, ThrottleRepair changes its limits, and DeferRepair has groups
	// wait for it.
	RepairStatus(ctx context.Context) (api.RepairStatus, error)
	ThrottleRepair(ctx context.Context, limits api.ThrottleRequest) (api.RepairStatus, error)
	DeferRepair(ctx context.Context, request api.DeferRequest) (api.RepairStatus, error)

	// Estimate tells what a transition would cost.
	Estimate(ctx context.Context, request api.TransitionRequest) (api.Estimate, error)
	// StartTransition starts the transition with the request's ID, or returns the one that has it.
	StartTransition(ctx context.Context, request api.TransitionRequest) (api.Transition, error)
	// Transition returns a transition as it is.
	Transition(ctx context.Context, id string) (api.Transition, error)
	// Pause, Resume and Cancel steer a transition; Throttle changes its limits while it runs.
	Pause(ctx context.Context, id string) (api.Transition, error)
	Resume(ctx context.Context, id string, bytesPerSecond *int64) (api.Transition, error)
	Cancel(ctx context.Context, id string) (api.Transition, error)
	Throttle(ctx context.Context, id string, limits api.ThrottleRequest) (api.Transition, error)
}

// Dialer reaches the gateways of a backend by their addresses. It does not connect yet.
type Dialer func(addresses []string) (Gateway, error)

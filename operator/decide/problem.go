package decide

import (
	"fmt"
)

// Problem is why something is not as it should be, or waits: a reason for programs, a message for people.
type Problem struct {
	Reason  string // CamelCase, one of the Reason constants
	Message string // what, where, what to do
}

// Error returns the message.
func (p *Problem) Error() string { return p.Message }

func problem(reason, format string, values ...any) *Problem {
	return &Problem{Reason: reason, Message: fmt.Sprintf(format, values...)}
}

// Reasons of conditions.
const (
	// A declaration by itself and beside others.
	ReasonAccepted         = "Accepted"
	ReasonUnknownScheme    = "UnknownScheme"
	ReasonInvalidScheme    = "InvalidScheme"
	ReasonInvalidLadder    = "InvalidLadder"
	ReasonInvalidDefault   = "InvalidDefault"
	ReasonInvalidRules     = "InvalidRules"
	ReasonInvalidPin       = "InvalidPin"
	ReasonInvalidPacking   = "InvalidPacking"
	ReasonInvalidRepair    = "InvalidRepair"
	ReasonInvalidRetention = "InvalidRetention"
	ReasonInvalidWindow    = "InvalidWindow"
	ReasonInvalidBudget    = "InvalidBudget"
	ReasonTargetOutOfReach = "TargetOutOfReach"
	ReasonConflict         = "Conflict"
	ReasonDeleting         = "Deleting"

	// A declaration against its backend.
	ReasonFeasible          = "Feasible"
	ReasonFeasibleWarnings  = "FeasibleWithWarnings"
	ReasonBackendMissing    = "BackendMissing"
	ReasonBackendUnknown    = "BackendNotSeenYet"
	ReasonGatewayDown       = "GatewayUnreachable"
	ReasonTooFewNodes       = "TooFewNodes"
	ReasonTooFewDomains     = "TooFewFailureDomains"
	ReasonItemTooLarge      = "ItemTooLarge"
	ReasonNoSpace           = "NoSpaceForPeak"
	ReasonNoSpareNode       = "NoSpareNode"
	ReasonStoreEvicts       = "StoreEvicts"
	ReasonStoreForgets      = "StoreForgets"
	ReasonNotChecked        = "NotChecked"
	ReasonClassNotPushed    = "ClassNotPushed"
	ReasonHeatUnknown       = "HeatUnknown"
	ReasonNodesMissing      = "NodesMissing"
	ReasonNodesNotPlaced    = "NodesNotPlaced"
	ReasonNodesNotAdded     = "NodesNotAdded"
	ReasonNodesAdded        = "NodesAdded"
	ReasonAddressDiffers    = "AddressDiffers"
	ReasonBalanceNotBegun   = "BalanceNotBegun"
	ReasonRepairNotLimited  = "RepairNotLimited"
	ReasonRedundancyMissing = "RedundancyMissing"
	ReasonPutsRefused       = "PutsRefused"
	ReasonWhole             = "Whole"
	ReasonCatalogBehind     = "CatalogBehind"
	ReasonCatalogUpToDate   = "CatalogUpToDate"
	ReasonObjectsElsewhere  = "ObjectsElsewhere"
	ReasonObjectsNotCounted = "ObjectsNotCounted"
	ReasonClassesUnmanaged  = "ClassesUnmanaged"
	ReasonManaged           = "Managed"

	// Moving.
	ReasonPlanned           = "Planned"
	ReasonNothingToMove     = "NothingToMove"
	ReasonNotWorthwhile     = "NotWorthwhile"
	ReasonNotPlanned        = "NotPlanned"
	ReasonApprovalNeeded    = "ApprovalNeeded"
	ReasonApproved          = "Approved"
	ReasonNoApprovalNeeded  = "NoApprovalNeeded"
	ReasonMoving            = "Moving"
	ReasonNotMoving         = "NotMoving"
	ReasonNotPaused         = "NotPaused"
	ReasonPausedByUser      = "PausedByUser"
	ReasonWindowClosed      = "WindowClosed"
	ReasonWindowDenies      = "WindowDenies"
	ReasonHeld              = "Held"
	ReasonDrained           = "Drained"
	ReasonPinned            = "Pinned"
	ReasonPinExpired        = "PinExpired"
	ReasonNotPinned         = "NotPinned"
	ReasonBudgetUsedUp      = "BudgetUsedUp"
	ReasonConcurrency       = "ConcurrencyReached"
	ReasonOverlap           = "OverlapsOlderTransition"
	ReasonWaitsForOriginal  = "WaitsForOriginal"
	ReasonWaitsForHold      = "WaitsForHold"
	ReasonCannotMove        = "CannotMove"
	ReasonInUse             = "InUse"
	ReasonOriginalMissing   = "OriginalMissing"
	ReasonPolicyGone        = "PolicyGone"
	ReasonPolicyNotAccepted = "PolicyNotAccepted"
	ReasonSuperseded        = "Superseded"
	ReasonCancelled         = "Cancelled"
	ReasonCancelling        = "Cancelling"
	ReasonFailed            = "Failed"
	ReasonRetrying          = "Retrying"
	ReasonConverged         = "Converged"
	ReasonNotConverged      = "NotConverged"
	ReasonDone              = "Done"
	ReasonReady             = "Ready"
	ReasonNotReady          = "NotReady"
	ReasonHealthy           = "Healthy"
	ReasonNotStalled        = "NotStalled"
	ReasonSettled           = "Settled"
)

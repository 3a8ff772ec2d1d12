package v1alpha1

// Condition types. All that a kind has are set on the first visit; reasons are beside the decisions that give them.
const (
	// ConditionAccepted: the declaration makes sense by itself and beside others.
	ConditionAccepted = "Accepted"
	// ConditionFeasible: the backend can carry it out: nodes, domains, item sizes, space.
	ConditionFeasible = "Feasible"
	// ConditionPlanned: what has to move is known, with its cost.
	ConditionPlanned = "Planned"
	// ConditionAwaitingApproval: a person has to approve.
	ConditionAwaitingApproval = "AwaitingApproval"
	// ConditionProgressing: something moves.
	ConditionProgressing = "Progressing"
	// ConditionPaused: something would move but is held back, by a window, a budget or a person.
	ConditionPaused = "Paused"
	// ConditionPinned: a person keeps the class on one scheme for a time.
	ConditionPinned = "Pinned"
	// ConditionDegraded: redundancy or nodes are missing, or something failed and is tried again.
	ConditionDegraded = "Degraded"
	// ConditionCatalogBehind: the catalog of a backend is behind what its nodes hold, so nothing is deleted before a person has
	// said which catalog counts.
	ConditionCatalogBehind = "CatalogBehind"
	// ConditionManaged: every class with objects has a policy, or is as a class file says.
	ConditionManaged = "Managed"
	// ConditionNodesAdded: every node of a backend that is declared with an address is a member of the cluster, at that address.
	ConditionNodesAdded = "NodesAdded"
	// ConditionConverged: everything is where the declaration wants it.
	ConditionConverged = "Converged"

	// ConditionReady, ConditionReconciling and ConditionStalled are those of kstatus.
	ConditionReady       = "Ready"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
)

// FieldOwner is the name under which the operator applies what it owns.
const FieldOwner = "restripe-operator"

// ChooseLadder is the annotation that asks for another choice of the ladder for a reliability target: whenever it has another
// value than the last time, the ladder is chosen anew, for the nodes there are.
const ChooseLadder = "restripe.io/choose-ladder"

// Finalizer keeps what still holds data or runs from vanishing.
const Finalizer = "restripe.io/in-use"

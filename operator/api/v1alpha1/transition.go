package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Transition is one run that takes groups of a class from one scheme to another.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=tr,categories=restripe
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=".status.summary.state"
// +kubebuilder:printcolumn:name="Done",type=string,JSONPath=".status.summary.done"
// +kubebuilder:printcolumn:name="ETA",type=string,JSONPath=".status.summary.eta"
// +kubebuilder:printcolumn:name="Sent",type=string,JSONPath=".status.summary.sent"
// +kubebuilder:printcolumn:name="From",type=string,priority=1,JSONPath=".status.from"
// +kubebuilder:printcolumn:name="To",type=string,priority=1,JSONPath=".status.to"
// +kubebuilder:printcolumn:name="Policy",type=string,priority=1,JSONPath=".spec.policyRef"
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=".spec.reason"
type Transition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   TransitionSpec   `json:"spec"`
	Status TransitionStatus `json:"status,omitzero"`
}

// TransitionList is a list of transitions.
//
// +kubebuilder:object:root=true
type TransitionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Transition `json:"items"`
}

// TransitionSpec is what is to be moved. Only approved, approvedBy, paused, cancelled, bytesPerSecond and the words of reason
// can change.
//
// +kubebuilder:validation:XValidation:rule="self.backendRef == oldSelf.backendRef && self.class == oldSelf.class && self.from == oldSelf.from && self.to == oldSelf.to && has(self.heat) == has(oldSelf.heat)",message="what a transition moves cannot change; create another one"
// +kubebuilder:validation:XValidation:rule="has(self.policyRef) == has(oldSelf.policyRef) && (!has(self.policyRef) || self.policyRef == oldSelf.policyRef) && has(self.rollbackOf) == has(oldSelf.rollbackOf) && (!has(self.rollbackOf) || self.rollbackOf == oldSelf.rollbackOf) && has(self.planner) == has(oldSelf.planner) && (!has(self.planner) || self.planner == oldSelf.planner) && has(self.pinned) == has(oldSelf.pinned) && (!has(self.pinned) || self.pinned == oldSelf.pinned) && self.needsApproval == oldSelf.needsApproval",message="of a transition only approved, approvedBy, paused, cancelled, bytesPerSecond and reason can change"
// +kubebuilder:validation:XValidation:rule="!oldSelf.cancelled || self.cancelled",message="a cancelled transition cannot be taken up again; create another one"
// +kubebuilder:validation:XValidation:rule="self.from != self.to",message="from and to are the same"
type TransitionSpec struct {
	// PolicyRef names the policy that made the transition; empty: a person did.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PolicyRef string `json:"policyRef,omitempty"`

	// BackendRef names the StorageBackend whose objects move.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BackendRef string `json:"backendRef"`
	// Class is the class, at the gateways, whose objects move.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Class string `json:"class"`
	// From and To are schemes as on the ladder of a policy.
	From SchemeName `json:"from"`
	To   SchemeName `json:"to"`

	// Heat bounds which groups are moved; absent: all under From.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="what a transition moves cannot change; create another one"
	Heat *HeatBounds `json:"heat,omitempty"`

	// Reason says in words why.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Reason string `json:"reason,omitempty"`

	// Planner is how; absent: restripe.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Planner string `json:"planner,omitempty"`

	// Pinned says that the transition was made for a pin of its policy; it ends with that.
	//
	// +optional
	Pinned bool `json:"pinned,omitempty"`

	// NeedsApproval says whether a person must set Approved first.
	//
	// +optional
	// +kubebuilder:default=false
	NeedsApproval bool `json:"needsApproval,omitempty"`
	// Approved says that a person wants the plan carried out.
	//
	// +optional
	// +kubebuilder:default=false
	Approved bool `json:"approved,omitempty"`
	// ApprovedBy is who approved it, as whoever set approved says.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ApprovedBy string `json:"approvedBy,omitempty"`
	// Paused stops after the groups in work, until it is false again.
	//
	// +optional
	// +kubebuilder:default=false
	Paused bool `json:"paused,omitempty"`
	// Cancelled ends the transition; groups already moved stay as they are.
	//
	// +optional
	// +kubebuilder:default=false
	Cancelled bool `json:"cancelled,omitempty"`

	// RollbackOf names the transition that this one takes back.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	RollbackOf string `json:"rollbackOf,omitempty"`

	// BytesPerSecond throttles this transition below the policy's budget.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="give bytes per second above 0, such as 40Mi"
	BytesPerSecond *resource.Quantity `json:"bytesPerSecond,omitempty"`
}

// HeatBounds select groups by accesses a day, and by how long they have been under their scheme.
//
// +kubebuilder:validation:XValidation:rule="!has(self.atLeast) || !has(self.below) || quantity(string(self.atLeast)).isLessThan(quantity(string(self.below)))",message="atLeast must be less than below: nothing is in between"
type HeatBounds struct {
	// AtLeast so many accesses a day; a fraction goes in quotes.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0'))",message="give accesses a day, 0 or more; fractions in quotes, such as '0.5'"
	AtLeast *resource.Quantity `json:"atLeast,omitempty"`
	// Below so many accesses a day; a fraction goes in quotes.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0'))",message="give accesses a day, 0 or more; fractions in quotes, such as '0.5'"
	Below *resource.Quantity `json:"below,omitempty"`
	// Settled: only groups that have been under their scheme for so long.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$') && duration(self) > duration('0s')",message="give a duration above 0s, such as 30s, 15m or 24h; a day is 24h"
	Settled *metav1.Duration `json:"settled,omitempty"`
}

// TransitionStatus is how far a transition is.
type TransitionStatus struct {
	// ObservedGeneration is the generation of the declaration that the status is of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Accepted, Feasible, Planned, AwaitingApproval, Progressing, Paused, Degraded, Converged, Ready,
	// Reconciling and Stalled.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// From and To are codes in canonical spelling.
	//
	// +optional
	From string `json:"from,omitempty"`
	// To is the code that groups are taken to, in canonical spelling.
	//
	// +optional
	To string `json:"to,omitempty"`

	// PlanHash names the plan that is carried out, and Cost is what it will cost.
	//
	// +optional
	PlanHash string `json:"planHash,omitempty"`
	// +optional
	Cost *Cost `json:"cost,omitempty"`

	// Approval is what a person approved.
	//
	// +optional
	Approval *TransitionApproval `json:"approval,omitempty"`

	// Job is the transition's name at the gateways, by which it is found again.
	//
	// +optional
	Job string `json:"job,omitempty"`

	// +optional
	Progress *Progress `json:"progress,omitempty"`

	// +optional
	Summary TransitionSummary `json:"summary,omitzero"`

	// StartTime is when the gateways began.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// CompletionTime is when it ended, well or not.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// Retries is how often the transition failed and was tried again.
	//
	// +optional
	Retries int32 `json:"retries,omitempty"`
}

// TransitionApproval is what was shown when a person approved. It covers no other plan and little more than that.
type TransitionApproval struct {
	// By is who approved: spec.approvedBy, or the field manager that set spec.approved.
	//
	// +optional
	By string `json:"by,omitempty"`
	// At is when it was approved.
	At metav1.Time `json:"at"`
	// PlanHash names the plan that was approved.
	//
	// +optional
	PlanHash string `json:"planHash,omitempty"`
	// Groups is how many groups that plan moved.
	Groups int64 `json:"groups"`
	// Bytes is how many bytes those had.
	Bytes int64 `json:"bytes"`
	// Withdrawn says that the approval does not hold any more, as more would be moved or by another plan.
	//
	// +optional
	Withdrawn bool `json:"withdrawn,omitempty"`
}

// Cost is what a plan costs, for all groups together.
type Cost struct {
	// Groups is how many groups move.
	Groups int64 `json:"groups"`
	// Bytes are of the groups, as their users see them.
	//
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// BytesRead is what nodes read of their stores.
	BytesRead int64 `json:"bytesRead"`
	// BytesSent is what nodes send to one another.
	BytesSent int64 `json:"bytesSent"`
	// BytesWritten is what nodes write to their stores.
	BytesWritten int64 `json:"bytesWritten"`
	// PeakBytes is how much more is stored at the worst moment.
	//
	// +optional
	PeakBytes int64 `json:"peakBytes,omitempty"`
	// ReencodeBytesSent is what re-encoding would send.
	//
	// +optional
	ReencodeBytesSent int64 `json:"reencodeBytesSent,omitempty"`
	// Price and SavingPerMonth are in the currency of the price table.
	//
	// +optional
	Price string `json:"price,omitempty"`
	// SavingPerMonth is what is spared afterwards, in the currency of the price table.
	//
	// +optional
	SavingPerMonth string `json:"savingPerMonth,omitempty"`
}

// Progress is how far a transition is, by what the gateways measured.
type Progress struct {
	// GroupsTotal is how many groups were found so far.
	GroupsTotal int64 `json:"groupsTotal"`
	// GroupsDone is how many of them are dealt with.
	GroupsDone int64 `json:"groupsDone"`
	// BytesTotal is how many bytes the groups found have.
	BytesTotal int64 `json:"bytesTotal"`
	// BytesDone is how many of them are dealt with.
	BytesDone int64 `json:"bytesDone"`
	// BytesSentPredicted and BytesSentMeasured are of the groups done.
	BytesSentPredicted int64 `json:"bytesSentPredicted"`
	// BytesSentMeasured is what the agents say that they sent for the groups done.
	BytesSentMeasured int64 `json:"bytesSentMeasured"`
	// BytesPerSecond is the rate of late, in bytes of objects.
	//
	// +optional
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"`
	// ETASeconds is what is left, with a range; absent while unknown.
	//
	// +optional
	ETASeconds *int64 `json:"etaSeconds,omitempty"`
	// ETASecondsLow is the least that is left.
	//
	// +optional
	ETASecondsLow *int64 `json:"etaSecondsLow,omitempty"`
	// ETASecondsHigh is the most that is left.
	//
	// +optional
	ETASecondsHigh *int64 `json:"etaSecondsHigh,omitempty"`
}

// TransitionSummary is for people and for the columns of kubectl.
type TransitionSummary struct {
	// State is one word: Waiting, Unapproved, Running, Paused, Done, Cancelled or Failed. Programs read conditions.
	//
	// +optional
	State string `json:"state,omitempty"`
	// Done is "74 %".
	//
	// +optional
	Done string `json:"done,omitempty"`
	// ETA is "6 min (5-9)".
	//
	// +optional
	ETA string `json:"eta,omitempty"`
	// Sent is "0 B".
	//
	// +optional
	Sent string `json:"sent,omitempty"`
}

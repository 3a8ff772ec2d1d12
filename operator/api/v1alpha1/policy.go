package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RedundancyPolicy says how a class of objects is kept: the ladder of schemes it may take, what makes it move on the
// ladder, and how much moving may cost.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=rp,categories=restripe,path=redundancypolicies
// +kubebuilder:validation:XValidation:rule="has(self.spec.selector.class) || size(self.metadata.name) <= 63",message="the name of the policy is that of its class and so has at most 63 characters; shorten it or give spec.selector.class"
// +kubebuilder:printcolumn:name="Stored",type=string,JSONPath=".status.summary.stored"
// +kubebuilder:printcolumn:name="Moving",type=integer,JSONPath=".status.activeTransitions"
// +kubebuilder:printcolumn:name="Converged",type=string,JSONPath=".status.conditions[?(@.type=='Converged')].status"
// +kubebuilder:printcolumn:name="Ladder",type=string,priority=1,JSONPath=".status.summary.ladder"
// +kubebuilder:printcolumn:name="Class",type=string,priority=1,JSONPath=".status.class"
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='Converged')].message"
type RedundancyPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   RedundancyPolicySpec   `json:"spec"`
	Status RedundancyPolicyStatus `json:"status,omitzero"`
}

// RedundancyPolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type RedundancyPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []RedundancyPolicy `json:"items"`
}

// RedundancyPolicySpec is what a policy declares.
//
// +kubebuilder:validation:XValidation:rule="has(self.ladder) != has(self.reliability)",message="give either a ladder or a reliability target, from which the ladder is worked out"
// +kubebuilder:validation:XValidation:rule="!has(self.ladder) || !has(self.default) || self.ladder.exists(s, s == self.default)",message="default must be on the ladder"
// +kubebuilder:validation:XValidation:rule="!has(self.temperature) || !has(self.ladder) || !has(self.temperature.rules) || self.temperature.rules.all(r, self.ladder.exists(s, s == r.scheme))",message="every temperature rule must name a scheme of the ladder"
// +kubebuilder:validation:XValidation:rule="!has(self.pin) || !has(self.ladder) || self.ladder.exists(s, s == self.pin.scheme)",message="the pin must name a scheme of the ladder"
// +kubebuilder:validation:XValidation:rule="!has(self.ladder) || !has(self.packing) || !has(self.packing.hotKeys) || (self.ladder.indexOf(self.packing.hotKeys.scheme) >= 0 && self.ladder.indexOf(self.packing.hotKeys.scheme) <= (has(self.default) ? self.ladder.indexOf(self.default) : 0))",message="packing.hotKeys must name the default or a scheme before it on the ladder"
// +kubebuilder:validation:XValidation:rule="!has(self.pin) || has(self.temperature)",message="a pin holds against temperature, of which the policy has none; set default instead"
// +kubebuilder:validation:XValidation:rule="!has(self.approval) || self.approval.mode != 'ManualAbove' || has(self.approval.aboveBytes) || has(self.approval.aboveCost)",message="approval ManualAbove needs aboveBytes or aboveCost"
type RedundancyPolicySpec struct {
	// BackendRef names the StorageBackend whose objects the policy is for.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BackendRef string `json:"backendRef"`

	// Selector says which objects; of several policies the longest matching prefix wins, and equal prefixes conflict.
	Selector Selector `json:"selector"`

	// Ladder is the schemes the class may take, hottest first: names of RedundancySchemes, or codes such as rep(3).
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	// +kubebuilder:validation:XValidation:rule="self.all(s, self.exists_one(t, t == s))",message="a scheme can be on the ladder once"
	Ladder []SchemeName `json:"ladder,omitempty"`

	// Default is what new objects are written with; absent: the first of the ladder.
	//
	// +optional
	Default SchemeName `json:"default,omitempty"`

	// Reliability picks the ladder's codes by a target instead of by name.
	//
	// +optional
	Reliability *Reliability `json:"reliability,omitempty"`

	// Packing is how objects are grouped.
	//
	// +optional
	Packing *Packing `json:"packing,omitempty"`

	// RepairOnRead says what a read does about a block that it finds lost, beside decoding what it needs of it: wait has it rebuilt at
	// once, and reads that meet it meanwhile wait for that, a second at most; wake wakes the repair; never leaves it to scrubs and
	// repairs. Absent: wait.
	//
	// +optional
	RepairOnRead RepairOnRead `json:"repairOnRead,omitempty"`

	// KeepVersions says how many versions of an object are kept when it is put over, each to be read by its revision, or durable: the last
	// one that was put under a scheme with parities, while those put over it have none. Absent: 0.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=7
	// +kubebuilder:validation:XValidation:rule="type(self) == string ? self == 'durable' : self >= 0 && self <= 64",message="give a number from 0 to 64, or durable"
	KeepVersions *intstr.IntOrString `json:"keepVersions,omitempty"`

	// ExpireAfter is how long objects are there whose put does not say when they expire. Absent: until they are deleted.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('876000h')",message="give a duration from 1s to 876000h, such as 720h"
	ExpireAfter *metav1.Duration `json:"expireAfter,omitempty"`

	// Temperature moves groups along the ladder by how often they are used; absent: all of the class belongs on Default.
	//
	// +optional
	Temperature *Temperature `json:"temperature,omitempty"`

	// Pin keeps all of the class on one scheme until a time, whatever its temperature.
	//
	// +optional
	Pin *Pin `json:"pin,omitempty"`

	// Budget limits what transitions of the policy may use.
	//
	// +optional
	Budget *Budget `json:"budget,omitempty"`

	// Windows are the times at which transitions may run; none: always.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Windows []Window `json:"windows,omitempty"`

	// +optional
	Approval *Approval `json:"approval,omitempty"`

	// StopPolicy stops the policy: None moves as declared; Hold starts nothing new; HoldAndDrain also cancels what runs.
	//
	// +optional
	// +kubebuilder:default=None
	StopPolicy StopPolicy `json:"stopPolicy,omitempty"`

	// Prices replace the built-in price table of the cost-benefit check, entry by entry.
	//
	// +optional
	Prices *Prices `json:"prices,omitempty"`

	// HistoryLimit is how many ended transitions are kept.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	HistoryLimit *int32 `json:"historyLimit,omitempty"`
}

// SchemeName is the name of a RedundancyScheme, or a code such as rep(3) or rs(4,2).
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?|rep[(][1-9][)]|rs[(]([2-9]|[1-5][0-9]|6[0-4]),[1-8][)])$')",message="name a RedundancyScheme, or give a code: rep(1) to rep(9), or rs(k,m) with 2 to 64 data and 1 to 8 parity chunks, such as rs(4,2)"
type SchemeName string

// Selector says which objects a policy is for.
type Selector struct {
	// Class is the name of the class at the gateways; absent: the policy's own name.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^/[:space:]]+$')",message="the name of a class has no spaces and no slashes"
	Class string `json:"class,omitempty"`

	// Prefixes of keys; the empty prefix is every key that no longer one matches.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=set
	Prefixes []string `json:"prefixes"`
}

// Reliability is a target in nines of a year's durability, from which codes are chosen.
type Reliability struct {
	// Nines of durability over a year: 9 is 99.9999999 %.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=15
	Nines int32 `json:"nines"`

	// AnnualFailurePercent is how many of a hundred nodes fail for good in a year.
	//
	// +optional
	// +kubebuilder:default="4"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0')) && quantity(string(self)).isLessThan(quantity('100'))",message="give a percentage above 0 and below 100"
	AnnualFailurePercent resource.Quantity `json:"annualFailurePercent,omitzero"`

	// RepairBandwidth is the bytes per second that rebuild a lost node.
	//
	// +optional
	// +kubebuilder:default="100Mi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="give bytes per second above 0, such as 40Mi"
	RepairBandwidth resource.Quantity `json:"repairBandwidth,omitzero"`

	// MaxOverhead is the most bytes stored per byte that the coldest step may cost.
	//
	// +optional
	// +kubebuilder:default="1.5"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('1'))",message="give bytes stored per byte, above 1; fractions in quotes, such as '1.5'"
	MaxOverhead resource.Quantity `json:"maxOverhead,omitzero"`
}

// TemperatureMode says who chooses the steps of groups.
//
// +kubebuilder:validation:Enum=auto;rules
type TemperatureMode string

// The modes of temperature.
const (
	TemperatureAuto  TemperatureMode = "auto"
	TemperatureRules TemperatureMode = "rules"
)

// Temperature maps how often a group is used to a step of the ladder.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.mode) && self.mode == 'rules') || has(self.rules)",message="mode rules needs rules; give some, or mode auto, which needs none"
// +kubebuilder:validation:XValidation:rule="!(has(self.mode) && self.mode == 'auto') || !has(self.rules)",message="mode auto takes no rules; take them out, or give mode rules"
// +kubebuilder:validation:XValidation:rule="has(self.rules) || (!has(self.halfLife) && !has(self.dwell) && !has(self.hysteresisPercent))",message="halfLife, dwell and hysteresisPercent go with rules; mode auto chooses them"
type Temperature struct {
	// Mode says who chooses: auto compares candidates at the policy's prices, of which doing nothing is one, and follows the one
	// that costs least; rules go by bounds. Absent: rules where there are any, and else auto.
	//
	// +optional
	Mode TemperatureMode `json:"mode,omitempty"`

	// HalfLife is after how long an access counts half; absent: 24h.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$') && duration(self) > duration('0s')",message="give a duration above 0s, such as 30s, 15m or 24h; a day is 24h"
	HalfLife metav1.Duration `json:"halfLife,omitzero"`

	// Rules are tried in order; the first whose bounds hold names the scheme. What no rule matches stays where it is.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	// +listType=atomic
	Rules []TemperatureRule `json:"rules,omitempty"`

	// HysteresisPercent is by how much a group must be past a bound before it moves back over it; absent: 25.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=90
	HysteresisPercent *int32 `json:"hysteresisPercent,omitempty"`

	// Dwell is how long a group stays under a scheme at least; absent: 6h.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$') && duration(self) > duration('0s')",message="give a duration above 0s, such as 30s, 15m or 24h; a day is 24h"
	Dwell metav1.Duration `json:"dwell,omitzero"`
}

// Automatic reports whether candidates choose, and not rules.
func (t *Temperature) Automatic() bool {
	return t.Mode == TemperatureAuto || t.Mode == "" && len(t.Rules) == 0
}

// TemperatureRule is one step: groups accessed at least AtLeast and less than Below times a day belong under Scheme.
//
// +kubebuilder:validation:XValidation:rule="has(self.atLeast) || has(self.below)",message="a rule needs atLeast or below"
// +kubebuilder:validation:XValidation:rule="!has(self.atLeast) || !has(self.below) || quantity(string(self.atLeast)).isLessThan(quantity(string(self.below)))",message="atLeast must be less than below: nothing is in between"
type TemperatureRule struct {
	// Scheme is the code of the step, in canonical spelling.
	Scheme SchemeName `json:"scheme"`
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
}

// LongestPin is how long a pin may last: a year.
const LongestPin = 366 * 24 * time.Hour

// Pin keeps a class on one scheme until a time. Until then no temperature rule counts, new objects are written with the
// scheme, and what lies elsewhere is brought to it as everything is moved: with approval, within windows and budget, and
// where it pays. A pin that has ended has no effect.
type Pin struct {
	// Scheme is a scheme of the ladder.
	Scheme SchemeName `json:"scheme"`
	// Until is when the pin ends: at most 366 days ahead.
	//
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$') && timestamp(self) > timestamp('2000-01-01T00:00:00Z')",message="give a time such as 2026-01-31T12:00:00Z"
	Until metav1.Time `json:"until"`
	// Reason says in words why.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Reason string `json:"reason,omitempty"`
	// By is who pinned it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`
}

// Budget limits what transitions may use; absent fields do not.
type Budget struct {
	// BytesPerSecond counts bytes read, sent and written, over all transitions of the policy.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="give bytes per second above 0, such as 40Mi"
	BytesPerSecond *resource.Quantity `json:"bytesPerSecond,omitempty"`
	// NodeBytesPerSecond is the same for any one node, FailureDomainBytesPerSecond for the nodes of any one domain.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="give bytes per second above 0, such as 40Mi"
	NodeBytesPerSecond *resource.Quantity `json:"nodeBytesPerSecond,omitempty"`
	// FailureDomainBytesPerSecond is the same for the nodes of any one failure domain.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="give bytes per second above 0, such as 40Mi"
	FailureDomainBytesPerSecond *resource.Quantity `json:"failureDomainBytesPerSecond,omitempty"`
	// Concurrency is how many transitions of the policy run at once.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	Concurrency *int32 `json:"concurrency,omitempty"`
	// ForegroundLatency is the 99th percentile of client requests above which transitions give way.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$') && duration(self) > duration('0s')",message="give a duration above 0s, such as 30s, 15m or 24h; a day is 24h"
	ForegroundLatency *metav1.Duration `json:"foregroundLatency,omitempty"`
}

// WindowKind says whether a window allows or denies.
//
// +kubebuilder:validation:Enum=Allow;Deny
type WindowKind string

// The kinds of windows.
const (
	WindowAllow WindowKind = "Allow"
	WindowDeny  WindowKind = "Deny"
)

// Overrun says what happens to a transition that is running when it is no longer allowed to start.
//
// +kubebuilder:validation:Enum=Finish;Pause
type Overrun string

// The overrun rules.
const (
	OverrunFinish Overrun = "Finish"
	OverrunPause  Overrun = "Pause"
)

// Window is a time that comes again and again.
type Window struct {
	// +optional
	// +kubebuilder:default=Allow
	Kind WindowKind `json:"kind,omitempty"`

	// Schedule is when the window opens: five fields of cron, or a descriptor such as @daily.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[-0-9A-Za-z*/,?]+( +[-0-9A-Za-z*/,?]+){4})$')",message="a schedule has five fields (minute hour day-of-month month day-of-week) or is a descriptor such as @daily"
	Schedule string `json:"schedule"`

	// Duration is how long it stays open: at most a week.
	//
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$') && duration(self) > duration('0s') && duration(self) <= duration('168h')",message="a window lasts more than 0s and at most 168h; a day is 24h"
	Duration metav1.Duration `json:"duration"`

	// TimeZone is the name of a zone such as Europe/Berlin; absent: UTC.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$') && self != 'Local'",message="give the name of a time zone, such as Europe/Berlin or UTC"
	TimeZone string `json:"timeZone,omitempty"`

	// +optional
	// +kubebuilder:default=Pause
	Overrun Overrun `json:"overrun,omitempty"`
}

// ApprovalMode says who starts transitions.
//
// +kubebuilder:validation:Enum=Auto;Manual;ManualAbove
type ApprovalMode string

// The approval modes.
const (
	ApprovalAuto        ApprovalMode = "Auto"
	ApprovalManual      ApprovalMode = "Manual"
	ApprovalManualAbove ApprovalMode = "ManualAbove"
)

// Approval says which transitions a person must approve.
type Approval struct {
	// +kubebuilder:default=Auto
	Mode ApprovalMode `json:"mode"`
	// AboveBytes: transitions that touch more than this need approval: the data of their groups, what is read, sent and written,
	// or what is given up of what is stored, whichever is most.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0'))",message="give a size, 0 or more, such as 10Gi"
	AboveBytes *resource.Quantity `json:"aboveBytes,omitempty"`
	// AboveCost: transitions whose network and operations cost more than this, in the currency of the price table.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0'))",message="give a price, 0 or more; fractions in quotes"
	AboveCost *resource.Quantity `json:"aboveCost,omitempty"`
}

// StopPolicy stops a policy.
//
// +kubebuilder:validation:Enum=None;Hold;HoldAndDrain
type StopPolicy string

// The stop policies.
const (
	StopNone         StopPolicy = "None"
	StopHold         StopPolicy = "Hold"
	StopHoldAndDrain StopPolicy = "HoldAndDrain"
)

// Prices are in one currency, whichever it is.
type Prices struct {
	// StorageGiBMonth is the price of storing a GiB for a month.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0'))",message="give a price, 0 or more; fractions in quotes"
	StorageGiBMonth *resource.Quantity `json:"storageGiBMonth,omitempty"`
	// NetworkGiB is the price of sending a GiB between nodes.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0'))",message="give a price, 0 or more; fractions in quotes"
	NetworkGiB *resource.Quantity `json:"networkGiB,omitempty"`
	// Operations is the price of a million reads or writes of a block.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0'))",message="give a price, 0 or more; fractions in quotes"
	Operations *resource.Quantity `json:"millionOperations,omitempty"`
	// PaybackMonths is within how many months a move must have paid for itself.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="give a number of months above 0"
	PaybackMonths *resource.Quantity `json:"paybackMonths,omitempty"`
}

// RedundancyPolicyStatus is where the class stands.
type RedundancyPolicyStatus struct {
	// ObservedGeneration is the generation of the declaration that the status is of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Accepted, Feasible, Planned, AwaitingApproval, Progressing, Paused, Pinned, Degraded, Converged,
	// Ready, Reconciling and Stalled.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Class is the class at the gateways, and Ladder its codes in canonical spelling.
	//
	// +optional
	Class string `json:"class,omitempty"`
	// Ladder is the codes of the class in canonical spelling, hottest first.
	//
	// +optional
	// +listType=atomic
	Ladder []string `json:"ladder,omitempty"`

	// LadderChoice says what the ladder was chosen for; absent for a ladder that the policy declares.
	//
	// +optional
	LadderChoice *LadderChoice `json:"ladderChoice,omitempty"`

	// Rungs are what lies on each step.
	//
	// +optional
	// +listType=map
	// +listMapKey=scheme
	Rungs []Rung `json:"rungs,omitempty"`

	// ActiveTransitions is how many transitions of the policy have not ended.
	//
	// +optional
	ActiveTransitions int32 `json:"activeTransitions,omitempty"`

	// +optional
	Savings *Savings `json:"savings,omitempty"`

	// Temperature is who chooses the steps of groups, and what others would have cost.
	//
	// +optional
	Temperature *TemperatureStatus `json:"temperature,omitempty"`

	// +optional
	Summary PolicySummary `json:"summary,omitzero"`

	// NextWindow is when transitions may next start, if not now.
	//
	// +optional
	NextWindow *metav1.Time `json:"nextWindow,omitempty"`
}

// LadderChoice is what a ladder was chosen for. It stays as long as that is wanted, whatever becomes of the nodes.
type LadderChoice struct {
	// Target is the reliability target, in words.
	Target string `json:"target"`
	// Request is the value of the annotation restripe.io/choose-ladder that asked for the choice.
	//
	// +optional
	Request string `json:"request,omitempty"`
	// Replaces says that another ladder was in force before: transitions need approval until the policy has converged.
	//
	// +optional
	Replaces bool `json:"replaces,omitempty"`
}

// PolicySummary is for people and for the columns of kubectl.
type PolicySummary struct {
	// Ladder is "rep(3) > rs(4,2) > rs(12,2)".
	//
	// +optional
	Ladder string `json:"ladder,omitempty"`
	// Stored is "1.2 TiB, 1.31x".
	//
	// +optional
	Stored string `json:"stored,omitempty"`
}

// Rung is what lies on one step of the ladder.
type Rung struct {
	// Scheme is the code of the step, in canonical spelling.
	Scheme string `json:"scheme"`
	// Groups is how many groups of blocks are under it.
	//
	// +optional
	Groups int64 `json:"groups,omitempty"`
	// Bytes are those of the cells, user bytes and what fills the last cells up; StoredBytes are what they take.
	//
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// StoredBytes is what these take on the nodes.
	//
	// +optional
	StoredBytes int64 `json:"storedBytes,omitempty"`
}

// Savings compares with keeping everything on the first step.
type Savings struct {
	// SavedBytes is how many bytes fewer are stored.
	//
	// +optional
	SavedBytes int64 `json:"savedBytes,omitempty"`
	// PerMonth is in the currency of the price table.
	//
	// +optional
	PerMonth string `json:"perMonth,omitempty"`
	// Spent is what the transitions of the policy cost so far.
	//
	// +optional
	Spent string `json:"spent,omitempty"`
}

// TemperatureByRules is TemperatureStatus.Candidate where rules choose.
const TemperatureByRules = "rules"

// TemperatureStatus is which candidate leads under mode auto, or that rules choose, and what others would have cost over the same
// time.
type TemperatureStatus struct {
	// Leader is whose choices are carried out, in words: a candidate, or the rules of the policy.
	Leader string `json:"leader"`
	// Since is when it took the lead.
	Since metav1.Time `json:"since"`
	// Reason is why it did, in money.
	Reason string `json:"reason"`
	// CountedSince is since when costs are counted.
	CountedSince metav1.Time `json:"countedSince"`
	// LookedAt is when candidates were compared last, which they are once a day.
	//
	// +optional
	LookedAt *metav1.Time `json:"lookedAt,omitempty"`
	// Paid is what it cost so far where groups really were, with their moves, in the currency of the price table.
	Paid string `json:"paid"`
	// Candidates are those that are compared, the leader among them.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	Candidates []TemperatureCandidate `json:"candidates,omitempty"`

	// What follows are the books by which the next comparison goes.

	// Candidate is the name of the leader; rules where rules choose.
	Candidate string `json:"candidate"`
	// Ladder is the one that the candidates are for.
	Ladder string `json:"ladder"`
	// GroupBytes is the size of groups that reads and moves are priced for.
	//
	// +optional
	GroupBytes int64 `json:"groupBytes,omitempty"`
	// BooksSince is when the gateway began that counts.
	//
	// +optional
	BooksSince *metav1.Time `json:"booksSince,omitempty"`
	// Cost and Ways are what leaders would have cost by themselves, and changes of leader at most, as numbers.
	//
	// +optional
	Cost string `json:"cost,omitempty"`
	// Days is in how many days candidates have paid what they did lately; those that are long past count less.
	//
	// +optional
	Days string `json:"days,omitempty"`
	// Ways is what changes of leader cost at most.
	//
	// +optional
	Ways string `json:"ways,omitempty"`
	// Done is Paid as a number, and DoneSeen what the gateway had counted of it at the last comparison.
	//
	// +optional
	Done string `json:"done,omitempty"`
	// DoneSeen is what the gateway had counted of Done at the last comparison.
	//
	// +optional
	DoneSeen string `json:"doneSeen,omitempty"`
}

// TemperatureCandidate is one way to choose the steps of groups.
type TemperatureCandidate struct {
	// Name tells it from others.
	Name string `json:"name"`
	// Text is the candidate in words.
	Text string `json:"text"`
	// Paid is what it would have cost so far, in the currency of the price table.
	Paid string `json:"paid"`
	// Cost is the same as a number, Lately that since the last change of leader, where what is long ago counts less, and Seen what
	// the gateway had counted at the last comparison.
	//
	// +optional
	Cost string `json:"cost,omitempty"`
	// Lately is what it would have cost since the last change of leader.
	//
	// +optional
	Lately string `json:"lately,omitempty"`
	// Seen is what the gateway had counted at the last comparison.
	//
	// +optional
	Seen string `json:"seen,omitempty"`
}

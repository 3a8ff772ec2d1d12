package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Packing is how objects are grouped.
type Packing struct {
	// Below this size objects share groups; 0: none do.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!quantity(string(self)).isLessThan(quantity('0'))",message="give a size, 0 or more, such as 1Mi"
	Below *resource.Quantity `json:"below,omitempty"`
	// Delay is how long a small object waits for company: at most a minute.
	//
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,9})?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('1m')",message="give a duration from 0s to 1m, such as 5ms"
	Delay *metav1.Duration `json:"delay,omitempty"`
	// GroupBytes is how many user bytes a group of a large object has.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="give a size above 0, such as 64Mi"
	GroupBytes *resource.Quantity `json:"groupBytes,omitempty"`
	// DeadAtMostPercent is how much may be dead of the groups of small objects, deleted, overwritten or never filled, in percent of what
	// lives in them, before gateways compact them; 1000: they never do. Absent: 15.
	//
	// +optional
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=1000
	DeadAtMostPercent *int32 `json:"deadAtMostPercent,omitempty"`
	// Mode says when small objects wait for others to share a group with: auto, while they come so fast that it fills a row of the group
	// within Delay; batch, always; at-once, never. Absent: auto.
	//
	// +optional
	Mode PackMode `json:"mode,omitempty"`
	// HotKeys keeps small objects whose keys are read much under another scheme than others. Absent: all are kept alike.
	//
	// +optional
	HotKeys *HotKeys `json:"hotKeys,omitempty"`
}

// HotKeys is where small objects are kept whose keys are read much.
type HotKeys struct {
	// Scheme is a step of the ladder, the default or one before it.
	Scheme SchemeName `json:"scheme"`
	// Reads within a half-life, by clients of one gateway, make a key a hot one; below half of them it has cooled.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	Reads int64 `json:"reads"`
}

// PackMode says when small objects wait for others to share a group with.
//
// +kubebuilder:validation:Enum=auto;batch;at-once
type PackMode string

// The modes of packing.
const (
	PackAuto   PackMode = "auto"
	PackBatch  PackMode = "batch"
	PackAtOnce PackMode = "at-once"
)

// RepairOnRead says what a read does about a block that it finds lost.
//
// +kubebuilder:validation:Enum=wait;wake;never
type RepairOnRead string

// What reads do about lost blocks.
const (
	RepairWait  RepairOnRead = "wait"
	RepairWake  RepairOnRead = "wake"
	RepairNever RepairOnRead = "never"
)

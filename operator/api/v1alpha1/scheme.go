package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RedundancyScheme is a named code. It cannot be changed once it exists: what is stored under it stays as it is.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=rs,categories=restripe
// +kubebuilder:printcolumn:name="Code",type=string,JSONPath=".status.code"
// +kubebuilder:printcolumn:name="Overhead",type=string,JSONPath=".status.overhead"
// +kubebuilder:printcolumn:name="Can-Lose",type=integer,JSONPath=".status.canLose"
// +kubebuilder:printcolumn:name="Policies",type=integer,JSONPath=".status.policies"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
type RedundancyScheme struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a scheme cannot change; declare one with another name"
	Spec   RedundancySchemeSpec   `json:"spec"`
	Status RedundancySchemeStatus `json:"status,omitzero"`
}

// RedundancySchemeList is a list of schemes.
//
// +kubebuilder:object:root=true
type RedundancySchemeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []RedundancyScheme `json:"items"`
}

// RedundancySchemeSpec is a code in one of three spellings.
//
// +kubebuilder:validation:XValidation:rule="(has(self.replicas) ? 1 : 0) + (has(self.k) || has(self.m) ? 1 : 0) + (has(self.dataChunks) || has(self.codingChunks) ? 1 : 0) == 1",message="give exactly one of replicas, k and m, or dataChunks and codingChunks"
// +kubebuilder:validation:XValidation:rule="has(self.k) == has(self.m)",message="k and m go together"
// +kubebuilder:validation:XValidation:rule="has(self.dataChunks) == has(self.codingChunks)",message="dataChunks and codingChunks go together"
type RedundancySchemeSpec struct {
	// Replicas is the number of whole copies, the first one counted.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	Replicas *int32 `json:"replicas,omitempty"`

	// K is the number of data chunks of a stripe, M that of parity chunks.
	//
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=64
	K *int32 `json:"k,omitempty"`
	// M is how many parity blocks a stripe has, and so how many lost nodes it survives.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	M *int32 `json:"m,omitempty"`

	// DataChunks and CodingChunks are k and m in the words of Ceph's profiles.
	//
	// +optional
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=64
	DataChunks *int32 `json:"dataChunks,omitempty"`
	// CodingChunks is m in the words of Ceph's profiles.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	CodingChunks *int32 `json:"codingChunks,omitempty"`
}

// RedundancySchemeStatus is what follows from a code.
type RedundancySchemeStatus struct {
	// ObservedGeneration is the generation of the declaration that the status is of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Accepted, Ready, Reconciling and Stalled.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Code is the canonical spelling: rep(3) or rs(4,2).
	//
	// +optional
	Code string `json:"code,omitempty"`
	// Overhead is bytes stored per byte, such as "1.50x".
	//
	// +optional
	Overhead string `json:"overhead,omitempty"`
	// CanLose is how many nodes a stripe survives the loss of.
	//
	// +optional
	CanLose int32 `json:"canLose,omitempty"`
	// Policies is how many policies have the scheme on their ladder.
	//
	// +optional
	Policies int32 `json:"policies,omitempty"`
}

// Package v1alpha1 is the declared side of Restripe, API group restripe.io: which stores there are (StorageBackend),
// which codes (RedundancyScheme), how each class of objects is kept and when it may move (RedundancyPolicy), and each
// move (Transition). All kinds are cluster-scoped. The types are the truth: the CustomResourceDefinitions in
// operator/config/crd are generated from them, with the CEL rules written beside the fields.
//
// +kubebuilder:object:generate=true
// +groupName=restripe.io
package v1alpha1

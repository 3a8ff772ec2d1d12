package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is restripe.io/v1alpha1.
var GroupVersion = schema.GroupVersion{Group: "restripe.io", Version: "v1alpha1"}

// Kinds are the declared kinds, each with the plural under which an API server has its objects.
var Kinds = map[string]string{
	"StorageBackend":   "storagebackends",
	"RedundancyScheme": "redundancyschemes",
	"RedundancyPolicy": "redundancypolicies",
	"Transition":       "transitions",
}

// KindOf returns the kind of an object that is one of the four; typed objects do not always say it themselves. Of others it is
// empty.
func KindOf(object runtime.Object) string {
	switch object.(type) {
	case *StorageBackend:
		return "StorageBackend"
	case *RedundancyScheme:
		return "RedundancyScheme"
	case *RedundancyPolicy:
		return "RedundancyPolicy"
	case *Transition:
		return "Transition"
	}
	return ""
}

// AddToScheme makes the kinds known to a scheme of types.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&StorageBackend{}, &StorageBackendList{},
		&RedundancyScheme{}, &RedundancySchemeList{},
		&RedundancyPolicy{}, &RedundancyPolicyList{},
		&Transition{}, &TransitionList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is restripe.io/v1alpha1.
var GroupVersion = schema.GroupVersion{Group: "restripe.io", Version: "v1alpha1"}

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

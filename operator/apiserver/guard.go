package apiserver

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
)

// guard keeps a StorageBackend that holds groups from being deleted by a slip, as the ValidatingAdmissionPolicy of operator/config
// does on a cluster: there are no such policies here.
type guard struct{}

var _ admission.ValidationInterface = guard{}

// confirmDelete is the annotation that confirms a delete: with the name of what is deleted.
const confirmDelete = "restripe.io/confirm-delete"

// Handles reports whether the guard looks at an operation.
func (guard) Handles(operation admission.Operation) bool { return operation == admission.Delete }

// Validate refuses to delete a backend that holds groups unless an annotation of it confirms that.
func (guard) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().Group != "restripe.io" || a.GetResource().Resource != "storagebackends" || a.GetSubresource() != "" {
		return nil
	}
	backend, is := a.GetOldObject().(*unstructured.Unstructured)
	if !is {
		return nil // nothing that is there is deleted
	}
	groups, _, err := unstructured.NestedInt64(backend.Object, "status", "groups")
	if err != nil || groups == 0 || backend.GetAnnotations()[confirmDelete] == backend.GetName() {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf(
		"it holds %d groups of objects, and deleting it cannot be taken back; to do it all the same, annotate it with %s=%s",
		groups, confirmDelete, backend.GetName()))
}

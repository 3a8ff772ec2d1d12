package controller

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// application is the body of a server-side apply: what is absent in it and was applied before goes away.
type application struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       any            `json:"spec,omitempty"`
	Status     any            `json:"status,omitempty"`
}

// applicationOf begins the body for an object. The identity goes along where there is one, so that a namesake made
// after the object was deleted is left alone.
func applicationOf(c client.Client, object client.Object) (*application, error) {
	kind, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return nil, fmt.Errorf("finding the kind of %T: %w", object, err)
	}
	body := &application{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Metadata: map[string]any{"name": object.GetName()}}
	if uid := object.GetUID(); uid != "" {
		body.Metadata["uid"] = uid
	}
	return body, nil
}

func (b *application) patch() (client.Patch, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %v: %w", b.Kind, b.Metadata["name"], err)
	}
	return client.RawPatch(types.ApplyPatchType, text), nil
}

// applyStatus makes the status of an object what is given, and does nothing where it was so already.
func applyStatus[Status any](ctx context.Context, c client.Client, object client.Object, was, status *Status) error {
	if equal(was, status) {
		return nil
	}
	body, err := applicationOf(c, object)
	if err != nil {
		return err
	}
	body.Status = status
	patch, err := body.patch()
	if err != nil {
		return err
	}
	if err := c.Status().Patch(ctx, copyOf(object), patch, client.ForceOwnership, client.FieldOwner(v1alpha1.FieldOwner)); err != nil {
		return fmt.Errorf("writing the status of %s %s: %w", body.Kind, object.GetName(), err)
	}
	return nil
}

// equal compares by meaning: absent and empty lists are the same, and so are equal quantities.
func equal[T any](a, b *T) bool { return equality.Semantic.DeepEqual(a, b) }

// applyOwned makes an object that the operator owns what is given: its labels, owners, finalizers and spec.
func applyOwned(ctx context.Context, c client.Client, object client.Object, spec any) error {
	body, err := applicationOf(c, object)
	if err != nil {
		return err
	}
	body.Metadata["labels"] = object.GetLabels()
	body.Metadata["ownerReferences"] = object.GetOwnerReferences()
	body.Metadata["finalizers"] = object.GetFinalizers()
	body.Spec = spec
	patch, err := body.patch()
	if err != nil {
		return err
	}
	if err := c.Patch(ctx, object, patch, client.ForceOwnership, client.FieldOwner(v1alpha1.FieldOwner)); err != nil {
		return fmt.Errorf("applying %s %s: %w", body.Kind, object.GetName(), err)
	}
	return nil
}

// holdBack adds the finalizer to an object that lacks it and is not being deleted.
func holdBack(ctx context.Context, c client.Client, object client.Object) error {
	changed := copyOf(object)
	if object.GetDeletionTimestamp() != nil || !controllerutil.AddFinalizer(changed, v1alpha1.Finalizer) {
		return nil
	}
	if err := patchFinalizers(ctx, c, object, changed); err != nil {
		return err
	}
	object.SetFinalizers(changed.GetFinalizers())
	object.SetResourceVersion(changed.GetResourceVersion())
	return nil
}

// letGo removes the finalizer of an object.
func letGo(ctx context.Context, c client.Client, object client.Object) error {
	changed := copyOf(object)
	if !controllerutil.RemoveFinalizer(changed, v1alpha1.Finalizer) {
		return nil
	}
	return client.IgnoreNotFound(patchFinalizers(ctx, c, object, changed))
}

// patchFinalizers replaces the list of finalizers, unless somebody else changed the object meanwhile: a list that is
// replaced blindly loses the finalizers of others.
func patchFinalizers(ctx context.Context, c client.Client, was, changed client.Object) error {
	patch := client.MergeFromWithOptions(was, client.MergeFromWithOptimisticLock{})
	if err := c.Patch(ctx, changed, patch, client.FieldOwner(v1alpha1.FieldOwner)); err != nil {
		return fmt.Errorf("changing the finalizers of %s: %w", was.GetName(), err)
	}
	return nil
}

// copyOf keeps what informers share from being written to.
func copyOf(object client.Object) client.Object {
	// A deep copy of an object is an object: every type of the API is one by its pointer.
	return object.DeepCopyObject().(client.Object)
}

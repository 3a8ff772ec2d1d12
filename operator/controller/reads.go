package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
)

// schemes returns the declared codes among the names. Names that are no object's are left to decide, which reads codes.
func (b *base) schemes(ctx context.Context, names ...v1alpha1.SchemeName) (decide.Schemes, error) {
	codes := decide.Schemes{}
	for _, name := range names {
		var declared v1alpha1.RedundancyScheme
		err := b.client.Get(ctx, types.NamespacedName{Name: string(name)}, &declared)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading scheme %s: %w", name, err)
		}
		if code, wrong := decide.Code(declared.Spec); wrong == nil {
			codes[string(name)] = code
		}
	}
	return codes, nil
}

// backend returns a backend, or nil where there is none of the name.
func (b *base) backend(ctx context.Context, name string) (*v1alpha1.StorageBackend, error) {
	var backend v1alpha1.StorageBackend
	err := b.client.Get(ctx, types.NamespacedName{Name: name}, &backend)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading backend %s: %w", name, err)
	}
	return &backend, nil
}

// policy returns a policy, or nil where there is none of the name.
func (b *base) policy(ctx context.Context, name string) (*v1alpha1.RedundancyPolicy, error) {
	if name == "" {
		return nil, nil
	}
	var policy v1alpha1.RedundancyPolicy
	err := b.client.Get(ctx, types.NamespacedName{Name: name}, &policy)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading policy %s: %w", name, err)
	}
	return &policy, nil
}

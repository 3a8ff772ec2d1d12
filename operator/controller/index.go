package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/decide"
)

// Indexes of the informers: who refers to whom.
const (
	policiesByBackend   = "policies-by-backend"
	policiesByScheme    = "policies-by-scheme"
	policiesByClaim     = "policies-by-claim" // of a class or a prefix on a backend
	transitionsByPolicy = "transitions-by-policy"
	transitionsByClass  = "transitions-by-class"   // backend/class
	transitionsOngoing  = "transitions-by-backend" // those that have not ended
)

func index(ctx context.Context, indexer client.FieldIndexer) error {
	for _, entry := range []struct {
		object client.Object
		name   string
		values client.IndexerFunc
	}{
		{&v1alpha1.RedundancyPolicy{}, policiesByBackend, func(object client.Object) []string {
			return []string{object.(*v1alpha1.RedundancyPolicy).Spec.BackendRef}
		}},
		{&v1alpha1.RedundancyPolicy{}, policiesByScheme, func(object client.Object) []string {
			return schemesOf(object.(*v1alpha1.RedundancyPolicy))
		}},
		{&v1alpha1.RedundancyPolicy{}, policiesByClaim, func(object client.Object) []string {
			return claimsOf(object.(*v1alpha1.RedundancyPolicy))
		}},
		{&v1alpha1.Transition{}, transitionsByPolicy, func(object client.Object) []string {
			return []string{object.(*v1alpha1.Transition).Spec.PolicyRef}
		}},
		{&v1alpha1.Transition{}, transitionsByClass, func(object client.Object) []string {
			spec := &object.(*v1alpha1.Transition).Spec
			return []string{classKey(spec.BackendRef, spec.Class)}
		}},
		{&v1alpha1.Transition{}, transitionsOngoing, func(object client.Object) []string {
			transition := object.(*v1alpha1.Transition)
			if transition.Status.CompletionTime != nil {
				return nil
			}
			return []string{transition.Spec.BackendRef}
		}},
	} {
		if err := indexer.IndexField(ctx, entry.object, entry.name, entry.values); err != nil {
			return fmt.Errorf("indexing %s: %w", entry.name, err)
		}
	}
	return nil
}

func classClaim(backend, class string) string { return backend + "/class/" + class }

// claimsOf returns what a policy claims on its backend: its class, and its prefixes.
func claimsOf(policy *v1alpha1.RedundancyPolicy) []string {
	claims := []string{classClaim(policy.Spec.BackendRef, decide.ClassName(policy))}
	for _, prefix := range policy.Spec.Selector.Prefixes {
		claims = append(claims, policy.Spec.BackendRef+"/prefix/"+prefix)
	}
	return claims
}

func classKey(backend, class string) string { return backend + "/" + class }

// schemesOf returns the steps of a policy's ladder.
func schemesOf(policy *v1alpha1.RedundancyPolicy) []string {
	names := make([]string, 0, len(policy.Spec.Ladder))
	for _, name := range policy.Spec.Ladder {
		names = append(names, string(name))
	}
	return names
}

// competitors returns the policies that claim something that a policy claims, or that one of them claims: all that Conflicts
// needs to know. Policies that are being deleted claim nothing.
func competitors(ctx context.Context, reader client.Reader, policy *v1alpha1.RedundancyPolicy) ([]v1alpha1.RedundancyPolicy, error) {
	known := map[string]v1alpha1.RedundancyPolicy{policy.Name: *policy}
	asked := map[string]bool{}
	for open := claimsOf(policy); len(open) > 0; {
		claim := open[0]
		open = open[1:]
		if asked[claim] {
			continue
		}
		asked[claim] = true
		found, err := policiesOf(ctx, reader, policiesByClaim, claim)
		if err != nil {
			return nil, err
		}
		for _, other := range found {
			if _, is := known[other.Name]; !is && other.DeletionTimestamp == nil {
				known[other.Name] = other
				open = append(open, claimsOf(&other)...)
			}
		}
	}
	return slices.Collect(maps.Values(known)), nil
}

// policiesOf returns the policies that an index has under a value. They are the informer's own: do not change them.
func policiesOf(ctx context.Context, reader client.Reader, index, value string) ([]v1alpha1.RedundancyPolicy, error) {
	var list v1alpha1.RedundancyPolicyList
	if err := reader.List(ctx, &list, client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading the policies of %s: %w", value, err)
	}
	return list.Items, nil
}

// transitionsOf returns the transitions that an index has under a value. They are the informer's own: do not change them.
func transitionsOf(ctx context.Context, reader client.Reader, index, value string) ([]v1alpha1.Transition, error) {
	var list v1alpha1.TransitionList
	if err := reader.List(ctx, &list, client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading the transitions of %s: %w", value, err)
	}
	return list.Items, nil
}

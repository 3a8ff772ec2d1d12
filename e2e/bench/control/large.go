package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/gateways/gatewaysfake"
)

// Two classes whose objects all cool down; their gateways are as fast as takes both the same time.
const (
	smallObjects = 1000
	largeObjects = 10_000_000
	smallSpeed   = 64 << 20
)

// large compares what a class of ten million objects costs with one of a thousand. The many policies of before are
// deleted first, so that the figures are of the one class.
func (s *stage) large(ctx context.Context) (string, error) {
	for i := range s.size.policies {
		p := &v1alpha1.RedundancyPolicy{}
		p.Name = policyName(i)
		if err := s.person.Delete(ctx, p); err != nil {
			return "", fmt.Errorf("deleting a policy: %w", err)
		}
	}
	err := until(ctx, "the policies are gone", func() (bool, error) {
		var list v1alpha1.RedundancyPolicyList
		err := s.person.List(ctx, &list)
		return len(list.Items) == 0, err
	})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString("## A large class\n\nOne policy, all of whose objects move from rep(3) to rs(12,2), each object a group; the gateways are as fast as takes both classes the same time.\n\n| objects | took | processor time | API writes | API reads | calls to gateways |\n|---|---|---|---|---|---|\n")
	if err := s.class(ctx, &text, smallBackend, smallObjects); err != nil {
		return "", err
	}
	if err := s.class(ctx, &text, largeBackend, largeObjects); err != nil {
		return "", err
	}
	return text.String(), nil
}

func (s *stage) class(ctx context.Context, text *strings.Builder, backend string, objects int64) error {
	if err := s.person.Create(ctx, policy(backend, backend)); err != nil {
		return fmt.Errorf("declaring a policy: %w", err)
	}
	p := &v1alpha1.RedundancyPolicy{}
	p.Name = backend
	whole := func() (bool, error) {
		n, err := s.converged(ctx, backend)
		return n == 1, err
	}
	if err := until(ctx, "the policy has converged", whole); err != nil {
		return err
	}
	if err := s.person.Get(ctx, types.NamespacedName{Name: backend}, p); err != nil {
		return fmt.Errorf("reading a policy: %w", err)
	}
	p.Spec.Budget = nil
	if err := s.person.Update(ctx, p); err != nil {
		return fmt.Errorf("editing a policy: %w", err)
	}
	if err := s.untilObserved(ctx, p, p.Generation); err != nil {
		return err
	}
	g := s.gateways[address(backend)]
	before, err := s.usage()
	if err != nil {
		return err
	}
	if err := g.Add(backend, "rep(3)", objects, cellBytes, gatewaysfake.Constant(0)); err != nil {
		return err
	}
	err = until(ctx, "all objects have moved", func() (bool, error) { return g.Groups(backend)["rs(12,2)"] == objects, nil })
	if err != nil {
		return err
	}
	if err := until(ctx, "the policy has converged", whole); err != nil {
		return err
	}
	after, err := s.usage()
	if err != nil {
		return err
	}
	spent := after.since(before)
	fmt.Fprintf(text, "| %d | %s | %.0f ms | %d | %d | %d |\n", objects, after.at.Sub(before.at).Round(time.Second), spent.processor.Seconds()*1000, spent.writes, spent.reads, spent.gateway)
	return nil
}

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/gateways/gatewaysfake"
)

// The phases of many.
const (
	restFor     = time.Minute // without a change
	edits       = 100
	groupsEach  = 100 // cold groups put into each class
	cellBytes   = 1 << 16
	creators    = 8
	bytesBudget = "100Mi"
)

func policy(name, backend string) *v1alpha1.RedundancyPolicy {
	below, least, budget := resource.MustParse("1"), resource.MustParse("16"), resource.MustParse(bytesBudget)
	p := &v1alpha1.RedundancyPolicy{}
	p.Name = name
	p.Spec = v1alpha1.RedundancyPolicySpec{
		BackendRef: backend, Selector: v1alpha1.Selector{Prefixes: []string{name + "/"}},
		Ladder: []v1alpha1.SchemeName{"rep(3)", "rs(4,2)", "rs(12,2)"},
		Temperature: &v1alpha1.Temperature{
			HalfLife: metav1.Duration{Duration: time.Hour}, Dwell: metav1.Duration{Duration: time.Hour},
			Rules: []v1alpha1.TemperatureRule{{Scheme: "rep(3)", AtLeast: &least}, {Scheme: "rs(12,2)", Below: &below}},
		},
		Budget: &v1alpha1.Budget{BytesPerSecond: &budget},
	}
	return p
}

func policyName(i int) string { return fmt.Sprintf("class-%04d", i) }

// converged counts the policies of a backend that have converged.
func (s *stage) converged(ctx context.Context, backend string) (n int, err error) {
	var list v1alpha1.RedundancyPolicyList
	if err := s.person.List(ctx, &list); err != nil {
		return 0, fmt.Errorf("reading the policies: %w", err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		condition := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionConverged)
		if p.Spec.BackendRef == backend && condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == p.Generation {
			n++
		}
	}
	return n, nil
}

// many measures what a thousand policies cost.
func (s *stage) many(ctx context.Context) (string, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "## %d policies on %d nodes\n\n| what | took | processor time | API writes | API reads | calls to gateways |\n|---|---|---|---|---|---|\n", s.size.policies, s.size.nodes)
	for _, phase := range []struct {
		what string
		each int // by how many the figures are divided
		do   func(context.Context) (time.Duration, error)
	}{
		{"declaring them, each", s.size.policies, s.declare},
		{"a minute in which nothing changes, all together", 1, s.rest},
		{"an edit that moves nothing, each", edits, s.edit},
		{fmt.Sprintf("%d groups of every class cool down: a transition, each", groupsEach), s.size.policies, s.cool},
	} {
		before, err := s.usage()
		if err != nil {
			return "", err
		}
		took, err := phase.do(ctx)
		if err != nil {
			return "", err
		}
		after, err := s.usage()
		if err != nil {
			return "", err
		}
		spent, n := after.since(before), float64(phase.each)
		fmt.Fprintf(&text, "| %s | %s | %.2f ms | %.2f | %.2f | %.2f |\n", phase.what, took.Round(time.Millisecond),
			spent.processor.Seconds()*1000/n, float64(spent.writes)/n, float64(spent.reads)/n, float64(spent.gateway)/n)
	}
	resident, heap, err := memory()
	if err != nil {
		return "", err
	}
	held := "held"
	if resident > 300<<20 {
		held = "missed"
	}
	fmt.Fprintf(&text, "\n\"took\" is the time until all have converged; for edits the median from the edit to the status that observes it.\n\nMemory: %d MiB resident at most, %d MiB live on the heap at the end; the aim of 300 MiB is %s.\n\n", resident>>20, heap>>20, held)
	return text.String(), nil
}

func (s *stage) declare(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range s.size.policies {
		group.Go(func() error { return s.person.Create(inner, policy(policyName(i), manyBackend)) })
	}
	if err := group.Wait(); err != nil {
		return 0, fmt.Errorf("declaring policies: %w", err)
	}
	return s.allConverged(ctx, began)
}

func (s *stage) allConverged(ctx context.Context, began time.Time) (time.Duration, error) {
	err := until(ctx, "all policies have converged", func() (bool, error) {
		n, err := s.converged(ctx, manyBackend)
		return n == s.size.policies, err
	})
	return time.Since(began), err
}

func (s *stage) rest(ctx context.Context) (time.Duration, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(restFor):
		return restFor, nil
	}
}

// edit changes the budget of some policies, one after the other.
func (s *stage) edit(ctx context.Context) (time.Duration, error) {
	var took []time.Duration
	for i := range edits {
		p := &v1alpha1.RedundancyPolicy{}
		p.Name = policyName(i % s.size.policies)
		began := time.Now()
		change := fmt.Appendf(nil, `{"spec":{"budget":{"bytesPerSecond":"%dMi"}}}`, 101+i)
		if err := s.person.Patch(ctx, p, client.RawPatch(types.MergePatchType, change)); err != nil {
			return 0, fmt.Errorf("editing a policy: %w", err)
		}
		edited := p.Generation
		if err := s.untilObserved(ctx, p, edited); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	return median(took), nil
}

// untilObserved looks often, as an edit takes milliseconds.
func (s *stage) untilObserved(ctx context.Context, p *v1alpha1.RedundancyPolicy, generation int64) error {
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for p.Status.ObservedGeneration < generation {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
		if err := s.person.Get(ctx, types.NamespacedName{Name: p.Name}, p); err != nil {
			return fmt.Errorf("reading a policy: %w", err)
		}
	}
	return nil
}

// cool puts cold groups into every class.
func (s *stage) cool(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	g := s.gateways[address(manyBackend)]
	for i := range s.size.policies {
		if err := g.Add(policyName(i), "rep(3)", groupsEach, cellBytes, gatewaysfake.Constant(0)); err != nil {
			return 0, err
		}
	}
	err := until(ctx, "all groups have moved", func() (bool, error) {
		for i := range s.size.policies {
			if g.Groups(policyName(i))["rs(12,2)"] != groupsEach {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return 0, err
	}
	return s.allConverged(ctx, began)
}

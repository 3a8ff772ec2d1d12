package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/console/history"
)

// How many transitions have not ended, by what they wait for.
const (
	running, unapproved, paused = 12, 3, 2
	creators                    = 16
	backendName                 = "large"
)

func policyName(i int) string { return fmt.Sprintf("class-%04d", i) }
func (s size) transitionName(i int) string {
	return fmt.Sprintf("%s-rs4-2-%d", policyName(i%s.policies), i/s.policies+1)
}

func (s size) jobName(i int) string { return "job-" + s.transitionName(i) }

// declare makes the objects as a person and an operator leave them.
func declare(ctx context.Context, person client.Client, s size, address string, now time.Time) error {
	backend := &v1alpha1.StorageBackend{ObjectMeta: metav1.ObjectMeta{Name: backendName}}
	backend.Spec = v1alpha1.StorageBackendSpec{Type: "file", Gateways: []v1alpha1.GatewayAddress{v1alpha1.GatewayAddress(address)}}
	if err := person.Create(ctx, backend); err != nil {
		return fmt.Errorf("declaring the backend: %w", err)
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	for i := range s.policies {
		group.Go(func() error { return declarePolicy(within, person, i) })
	}
	for i := range s.transitions {
		group.Go(func() error { return declareTransition(within, person, i, s, now) })
	}
	return group.Wait()
}

func declarePolicy(ctx context.Context, person client.Client, i int) error {
	below, least, budget := resource.MustParse("1"), resource.MustParse("1k"), resource.MustParse("100Mi")
	p := &v1alpha1.RedundancyPolicy{ObjectMeta: metav1.ObjectMeta{Name: policyName(i)}}
	p.Spec = v1alpha1.RedundancyPolicySpec{
		BackendRef: backendName, Selector: v1alpha1.Selector{Prefixes: []string{policyName(i) + "/"}},
		Ladder: []v1alpha1.SchemeName{v1alpha1.SchemeName(ladder[0]), v1alpha1.SchemeName(ladder[1]), v1alpha1.SchemeName(ladder[2])},
		Temperature: &v1alpha1.Temperature{
			HalfLife: metav1.Duration{Duration: 24 * time.Hour}, Dwell: metav1.Duration{Duration: 6 * time.Hour},
			Rules: []v1alpha1.TemperatureRule{
				{Scheme: v1alpha1.SchemeName(ladder[0]), AtLeast: &least}, {Scheme: v1alpha1.SchemeName(ladder[1]), AtLeast: &below, Below: &least}, {Scheme: v1alpha1.SchemeName(ladder[2]), Below: &below},
			},
		},
		Budget: &v1alpha1.Budget{BytesPerSecond: &budget},
	}
	if err := person.Create(ctx, p); err != nil {
		return fmt.Errorf("declaring a policy: %w", err)
	}
	condition(&p.Status.Conditions, p.Generation, v1alpha1.ConditionReady, "Ready", "every group is under the scheme of its use")
	p.Status.ObservedGeneration = p.Generation
	if err := person.Status().Update(ctx, p); err != nil {
		return fmt.Errorf("writing the status of a policy: %w", err)
	}
	return nil
}

func declareTransition(ctx context.Context, person client.Client, i int, s size, now time.Time) error {
	t := &v1alpha1.Transition{ObjectMeta: metav1.ObjectMeta{Name: s.transitionName(i)}}
	t.Spec = v1alpha1.TransitionSpec{
		PolicyRef: policyName(i % s.policies), BackendRef: backendName, Class: policyName(i % s.policies), From: v1alpha1.SchemeName(ladder[0]), To: v1alpha1.SchemeName(ladder[1]),
		Reason:        fmt.Sprintf("%d groups (4.2 GiB), under rep(3) for at least 6h, are used less than 1000 times a day: rs(4,2) stores 1.50 bytes per byte less", 360+i%40),
		NeedsApproval: i >= running && i < running+unapproved, Paused: i >= running+unapproved && i < running+unapproved+paused,
	}
	if err := person.Create(ctx, t); err != nil {
		return fmt.Errorf("declaring a transition: %w", err)
	}
	t.Status = s.statusOf(i, now)
	t.Status.ObservedGeneration = t.Generation
	if err := person.Status().Update(ctx, t); err != nil {
		return fmt.Errorf("writing the status of a transition: %w", err)
	}
	return nil
}

// statusOf is the status of a transition: the first ones run, wait or are paused, and the others have ended.
func (s size) statusOf(i int, now time.Time) v1alpha1.TransitionStatus {
	const groups, bytes = int64(380), int64(4_200_000_000)
	state, kind, why, done := "Done", v1alpha1.ConditionReady, "380 groups moved, 0 B sent, as predicted", groups
	switch {
	case i < running:
		state, kind, why, done = "Running", v1alpha1.ConditionProgressing, "under way", groups/10
	case i < running+unapproved:
		state, kind, why, done = "Unapproved", v1alpha1.ConditionAwaitingApproval, "a person has to approve", 0
	case i < running+unapproved+paused:
		state, kind, why, done = "Paused", v1alpha1.ConditionPaused, "paused by a person", groups/2
	case i%97 == 0:
		state, why, done = "Cancelled", "cancelled by a person", groups/3
	}
	status := v1alpha1.TransitionStatus{
		From: ladder[0], To: ladder[1], PlanHash: fmt.Sprintf("%016x", i*7919),
		Cost:      &v1alpha1.Cost{Groups: groups, BytesRead: 3 * bytes, BytesWritten: bytes / 2, PeakBytes: bytes / 2, ReencodeBytesSent: bytes * 2, Price: "0.0040", SavingPerMonth: "0.1200"},
		Progress:  &v1alpha1.Progress{GroupsTotal: groups, GroupsDone: done, BytesTotal: bytes, BytesDone: bytes / groups * done},
		Summary:   v1alpha1.TransitionSummary{State: state},
		StartTime: &metav1.Time{Time: now.Add(-time.Duration(i) * time.Minute)},
	}
	condition(&status.Conditions, 1, kind, state, why)
	if i < running {
		status.Job = s.jobName(i)
	}
	if i >= running+unapproved+paused {
		status.CompletionTime = &metav1.Time{Time: now.Add(-time.Duration(i)*time.Minute + 40*time.Second)}
	}
	return status
}

func condition(conditions *[]metav1.Condition, generation int64, kind, reason, message string) {
	meta.SetStatusCondition(conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: generation})
}

// remember writes a history: a sample of every class every five minutes, of bytes that cool from step to step.
func remember(directory string, s size, now time.Time) (err error) {
	h, err := history.Open(directory, history.Options{})
	if err != nil {
		return err
	}
	for i := range s.samples {
		samples := map[history.Class]history.Sample{}
		for class := range s.policies {
			cold := int64(i+class) % int64(s.samples+1) * (100 << 30) / int64(s.samples+1)
			hot := int64(100<<30) - cold
			samples[history.Class{Backend: backendName, Class: policyName(class)}] = history.Sample{
				At: now.Add(-time.Duration(s.samples-i) * 5 * time.Minute), Bytes: hot + cold, Stored: 3*hot + cold*3/2, Saved: cold * 3 / 2,
				Rungs:   []history.Rung{{Scheme: ladder[0], Bytes: hot, Stored: 3 * hot}, {Scheme: ladder[1], Bytes: cold, Stored: cold * 3 / 2}},
				Buckets: []history.Bucket{{AtLeast: 0, Bytes: cold / 2}, {AtLeast: 1, Bytes: cold / 2}, {AtLeast: 1024, Bytes: hot / 2}, {AtLeast: 4096, Bytes: hot / 2}},
			}
		}
		h.Add(samples)
		if err := h.Problem(); err != nil {
			return fmt.Errorf("writing the history: %w", err)
		}
	}
	return h.Close()
}

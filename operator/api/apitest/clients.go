package apitest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

func newPolicy(name string) *unstructured.Unstructured {
	return named("RedundancyPolicy", name, map[string]any{"spec": map[string]any{
		"backendRef": "store",
		"selector":   map[string]any{"prefixes": []any{name + "/"}},
		"ladder":     []any{"rep(3)", "rs(4,2)"},
	}})
}

// decodable: whatever spelling of a duration or quantity the server takes, the Go types take too.
func (s *suite) decodable(t *testing.T) {
	durations := []any{"1h", "1.5h", "1h30m", "1d", "1w", "-1h", "0s", "1", "", "1 h", "h", "PT1H", "1e3s", "999999h", "9999999h",
		strings.Repeat("999999h", 4), "1us", "1µs", "1μs", "1ns", ".5h", "1.h", "0.0000000001ns", "1H", 3600, nil}
	quantities := []any{"1", "1.5", "500m", "1Gi", "1GB", "1e3", "1E3", "1e", "1e5.5", "1e400", "1e-400", "1n", "0.1n", "-1", "+1",
		"0", "", ".5", "1.", "1,5", "1 Gi", "1Mib", "99999999999999999999999999", 7, -7, 0.5, nil}
	taken := 0
	try := func(t *testing.T, value any, fields ...string) {
		policy := newPolicy("odd")
		rules := []any{map[string]any{"scheme": "rep(3)", "atLeast": "1"}}
		if fields[1] == "temperature" {
			policy.Object["spec"].(map[string]any)["temperature"] = map[string]any{"rules": rules}
		}
		if err := unstructured.SetNestedField(policy.Object, value, fields...); err != nil {
			t.Fatal(err)
		}
		created, err := s.create(t, policy)
		if err != nil {
			return
		}
		taken++
		if err := decodesStrictly(created); err != nil {
			t.Errorf("%s = %v: %v", strings.Join(fields, "."), value, err)
		}
	}
	for _, value := range durations {
		t.Run("duration", func(t *testing.T) { try(t, anyInteger(value), "spec", "temperature", "dwell") })
	}
	for _, value := range quantities {
		t.Run("quantity", func(t *testing.T) { try(t, anyInteger(value), "spec", "budget", "bytesPerSecond") })
	}
	if taken < 10 {
		t.Errorf("the server took %d spellings; some are right", taken)
	}
}

// anyInteger gives integers the type that unstructured objects have.
func anyInteger(value any) any {
	if number, is := value.(int); is {
		return int64(number)
	}
	return value
}

// serverSideApply: the operator and a person own different fields of one object; where both want one, the server says
// who else does.
func (s *suite) serverSideApply(t *testing.T) {
	resource := s.resource("Transition")
	spec := map[string]any{"policyRef": "media", "backendRef": "store", "class": "media", "from": "rs(4,2)", "to": "rs(12,2)"}
	object := named("Transition", "media-1", map[string]any{"spec": spec})
	operator := metav1.ApplyOptions{FieldManager: v1alpha1.FieldOwner}
	created, err := s.create(t, object)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		applied, err := resource.Apply(t.Context(), "media-1", named("Transition", "media-1", map[string]any{"spec": spec}), metav1.ApplyOptions{FieldManager: v1alpha1.FieldOwner, Force: true})
		if err != nil {
			t.Fatal(err)
		}
		created = applied
	}
	again, err := resource.Apply(t.Context(), "media-1", named("Transition", "media-1", map[string]any{"spec": spec}), operator)
	if err != nil {
		t.Fatal(err)
	}
	if again.GetResourceVersion() != created.GetResourceVersion() {
		t.Error("applying the same again writes")
	}
	person := named("Transition", "media-1", map[string]any{"spec": map[string]any{"approved": true}})
	if _, err := resource.Apply(t.Context(), "media-1", person, metav1.ApplyOptions{FieldManager: "person", Force: true}); err != nil {
		t.Fatal(err)
	}
	kept, err := resource.Apply(t.Context(), "media-1", named("Transition", "media-1", map[string]any{"spec": spec}), operator)
	if err != nil {
		t.Fatal(err)
	}
	if approved, _, _ := unstructured.NestedBool(kept.Object, "spec", "approved"); !approved {
		t.Error("the operator's apply takes a person's approval away")
	}
	bold := merge(spec, map[string]any{"approved": false})
	_, err = resource.Apply(t.Context(), "media-1", named("Transition", "media-1", map[string]any{"spec": bold}), operator)
	if !errors.IsConflict(err) || !strings.Contains(err.Error(), "person") {
		t.Errorf("both want spec.approved, the answer is %v", err)
	}
	owners := map[string]bool{}
	for _, entry := range kept.GetManagedFields() {
		owners[entry.Manager] = true
	}
	if !owners[v1alpha1.FieldOwner] || !owners["person"] {
		t.Errorf("the owners are %v", owners)
	}
}

// status: spec and status are written apart, and only a change of the spec makes a new generation.
func (s *suite) status(t *testing.T) {
	resource := s.resource("RedundancyPolicy")
	policy := newPolicy("status")
	created, err := s.create(t, policy)
	if err != nil {
		t.Fatal(err)
	}
	condition := map[string]any{"type": v1alpha1.ConditionConverged, "status": "True", "reason": "AllThere", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}
	mixed := created.DeepCopy()
	mixed.Object["status"] = map[string]any{"class": "status", "observedGeneration": int64(1), "conditions": []any{condition}}
	mixed.Object["spec"].(map[string]any)["backendRef"] = "other"
	written, err := resource.UpdateStatus(t.Context(), mixed, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if backend, _, _ := unstructured.NestedString(written.Object, "spec", "backendRef"); backend != "store" {
		t.Errorf("writing the status changes the spec: backendRef is %q", backend)
	}
	if written.GetGeneration() != created.GetGeneration() {
		t.Error("writing the status makes a new generation")
	}
	mixed = written.DeepCopy()
	mixed.Object["spec"].(map[string]any)["backendRef"] = "other"
	delete(mixed.Object, "status")
	written, err = resource.Update(t.Context(), mixed, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if conditions, _, _ := unstructured.NestedSlice(written.Object, "status", "conditions"); len(conditions) != 1 {
		t.Error("writing the spec removes the status")
	}
	if written.GetGeneration() != created.GetGeneration()+1 {
		t.Error("writing the spec makes no new generation")
	}
	bad := written.DeepCopy()
	bad.Object["status"] = map[string]any{"conditions": []any{condition, condition}}
	if _, err := resource.UpdateStatus(t.Context(), bad, metav1.UpdateOptions{}); !errors.IsInvalid(err) {
		t.Errorf("two conditions of one type: %v", err)
	}
}

// watch: a client learns of everything that happens, in order.
func (s *suite) watch(t *testing.T) {
	resource := s.resource("RedundancyPolicy")
	list, err := resource.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := resource.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	created, err := resource.Create(t.Context(), newPolicy("watched"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created.SetLabels(map[string]string{"a": "b"})
	if _, err := resource.Update(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := resource.Delete(t.Context(), "watched", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var seen []watch.EventType
	deadline := time.After(30 * time.Second)
	for len(seen) < 3 {
		select {
		case event := <-watcher.ResultChan():
			seen = append(seen, event.Type)
		case <-deadline:
			t.Fatalf("saw only %v", seen)
		}
	}
	if want := []watch.EventType{watch.Added, watch.Modified, watch.Deleted}; !slices.Equal(seen, want) {
		t.Errorf("saw %v, not %v", seen, want)
	}
}

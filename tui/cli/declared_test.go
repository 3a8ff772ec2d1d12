package cli

import (
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/diff"
)

func policyOf(fields map[string]any) *unstructured.Unstructured {
	object := kindNamed("policy").object()
	object.SetName("media")
	for name, value := range fields {
		object.Object[name] = value
	}
	return object
}

func TestDifferencesNameEveryFieldOnce(t *testing.T) {
	before := policyOf(map[string]any{
		"spec":   map[string]any{"ladder": []any{"rep(3)", "rs(4,2)"}, "default": "rep(3)", "historyLimit": int64(10)},
		"status": map[string]any{"class": "media"},
	})
	before.SetResourceVersion("7")
	after := policyOf(map[string]any{
		"spec":   map[string]any{"ladder": []any{"rep(3)", "rs(12,2)", "rs(6,2)"}, "historyLimit": int64(10)},
		"status": map[string]any{"class": "other"},
	})
	after.SetResourceVersion("8")
	found := (&outcome{kind: kindNamed("policy"), name: "media", before: before, after: after}).differences()
	want := &objectDifference{Object: "policy/media", Change: "change", Fields: []diff.Field{
		{Path: "spec.default", Before: "rep(3)"}, {Path: "spec.ladder[1]", Before: "rs(4,2)", After: "rs(12,2)"}, {Path: "spec.ladder[2]", After: "rs(6,2)"},
	}}
	if !reflect.DeepEqual(found, want) {
		t.Errorf("differences are %+v, want %+v", found, want)
	}
	var lines []string
	for _, field := range found.Fields {
		lines = append(lines, fieldLine(field))
	}
	if want := []string{"  - spec.default: rep(3)", "  ~ spec.ladder[1]: rs(4,2) -> rs(12,2)", "  + spec.ladder[2]: rs(6,2)"}; !slices.Equal(lines, want) {
		t.Errorf("lines are %q, want %q", lines, want)
	}
	same := before.DeepCopy()
	same.SetResourceVersion("9")
	if o := (&outcome{kind: kindNamed("policy"), name: "media", before: before, after: same}); o.differences() != nil || o.verb() != "unchanged" {
		t.Errorf("an object whose version alone changed is %s: %+v", o.verb(), o.differences())
	}
	if o := (&outcome{kind: kindNamed("policy"), name: "media", after: after}); o.verb() != "created" || o.differences().Change != "create" {
		t.Errorf("a new object is %s, %+v", o.verb(), o.differences())
	}
}

// TestKindsHaveTheirOwnWords holds that no word means two kinds, as the first one would hide the other.
func TestKindsHaveTheirOwnWords(t *testing.T) {
	for _, kind := range declaredKinds {
		for _, word := range kind.words {
			if found := kindNamed(word); found != kind {
				t.Errorf("%q names %s, not %s", word, found, kind)
			}
		}
		if kindOf(kind.kind) != kind || kindNamed(kind.kind) != kind || kindNamed(kind.plural()) != kind {
			t.Errorf("%s is not found by its own name", kind.kind)
		}
	}
	if len(declaredKinds) != len(v1alpha1.Kinds) {
		t.Errorf("%d kinds have words, there are %d", len(declaredKinds), len(v1alpha1.Kinds))
	}
	if kindNamed("photos/a.jpg") != nil {
		t.Error("a key names a kind")
	}
}

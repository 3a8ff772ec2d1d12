package diff_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/operator/diff"
)

func flat(t *testing.T, text string) map[string]any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	fields := map[string]any{}
	diff.Flatten(value, "spec", fields)
	return fields
}

func TestFieldsByPath(t *testing.T) {
	before := flat(t, "ladder: [rep(3), 'rs(4,2)']\nsuspend: null\nwindows: [{schedule: '@daily'}]\nsame: {deep: 1}")
	after := flat(t, "ladder: [rep(3)]\nwindows: [{schedule: '@hourly', duration: 6h}]\nsame: {deep: 1}")
	want := []diff.Field{
		{Path: "spec.ladder[1]", Before: "rs(4,2)"},
		{Path: "spec.windows[0].duration", After: "6h"},
		{Path: "spec.windows[0].schedule", Before: "@daily", After: "@hourly"},
	}
	if d := cmp.Diff(want, diff.Fields(before, after)); d != "" {
		t.Error(d)
	}
	if same := diff.Fields(before, before); same != nil {
		t.Errorf("a state differs from itself: %v", same)
	}
}

// A field that is empty is told from one that is not there, and from one with something in it.
func TestEmptyFieldsAreFields(t *testing.T) {
	before := flat(t, "budget: {bytesPerSecond: 1}\nwindows: [{}]\nlabels: {}\nprefixes: []\nsame: {}\nalike: []\nturns: []")
	after := flat(t, "budget: {}\nwindows: []\nprefixes: [a]\nsame: {}\nalike: []\nturns: {}\nnew: {}\ngone: null")
	want := []diff.Field{
		{Path: "spec.budget", After: map[string]any{}},
		{Path: "spec.budget.bytesPerSecond", Before: 1.0},
		{Path: "spec.labels", Before: map[string]any{}},
		{Path: "spec.new", After: map[string]any{}},
		{Path: "spec.prefixes", Before: []any{}},
		{Path: "spec.prefixes[0]", After: "a"},
		{Path: "spec.turns", Before: []any{}, After: map[string]any{}},
		{Path: "spec.windows", After: []any{}},
		{Path: "spec.windows[0]", Before: map[string]any{}},
	}
	if d := cmp.Diff(want, diff.Fields(before, after)); d != "" {
		t.Error(d)
	}
	text, err := json.Marshal(want[0])
	if err != nil || string(text) != `{"path":"spec.budget","after":{}}` {
		t.Errorf("as JSON: %s, %v", text, err)
	}
}

func TestScalarsAreWrittenAsYAML(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{nil, ""}, {"rep(3)", "rep(3)"}, {"true", `"true"`}, {true, "true"}, {int64(3), "3"}, {"", `""`},
		{[]any{}, "[]"}, {map[string]any{}, "{}"},
	} {
		if have := diff.Text(c.value); have != c.want {
			t.Errorf("%#v: have %s, want %s", c.value, have, c.want)
		}
	}
}

package diff

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Field is one scalar, or one list or map without anything in it, that differs. A side is nil where the field is not there.
type Field struct {
	Path   string `json:"path"` // such as spec.windows[0].schedule
	Before any    `json:"before,omitempty"`
	After  any    `json:"after,omitempty"`
}

// Flatten adds the scalars of a value, which is made of maps, slices and scalars as decoded JSON is, to a map by their paths.
// path is that of the value itself. Maps and slices without anything in them count as scalars: a field that is empty is not one
// that is not there. What is null is left out.
func Flatten(value any, path string, into map[string]any) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 {
			into[path] = map[string]any{}
		}
		for name, below := range value {
			Flatten(below, path+"."+name, into)
		}
	case []any:
		if len(value) == 0 {
			into[path] = []any{}
		}
		for i, below := range value {
			Flatten(below, fmt.Sprintf("%s[%d]", path, i), into)
		}
	case nil:
	default:
		into[path] = value
	}
}

// Fields returns what differs between two states that Flatten made, in the order of the paths.
func Fields(before, after map[string]any) []Field {
	var fields []Field
	paths := slices.AppendSeq(slices.Collect(maps.Keys(before)), maps.Keys(after))
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		if !reflect.DeepEqual(before[path], after[path]) {
			fields = append(fields, Field{Path: path, Before: before[path], After: after[path]})
		}
	}
	return fields
}

// Text writes what Flatten made of a field as YAML does; nil, which stands for a field that is not there, is empty.
func Text(value any) string {
	if value == nil {
		return ""
	}
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(string(text), "\n")
}

package policies

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TestSchemaAndTypesHaveTheSameFields compares every field of the Go types, at any depth, with the schema, both ways.
func TestSchemaAndTypesHaveTheSameFields(t *testing.T) {
	e := newEvaluator()
	fields := 0
	for _, kind := range Kinds {
		fields += sameFields(t, kind, reflect.TypeOf(newValue(kind)), e.kind(kind))
	}
	if fields < 200 {
		t.Errorf("only %d fields were compared", fields)
	}
}

// scalars are types that are written as one value.
var scalars = map[reflect.Type]cue.Kind{
	reflect.TypeFor[resource.Quantity]():  cue.StringKind | cue.IntKind,
	reflect.TypeFor[intstr.IntOrString](): cue.StringKind | cue.IntKind,
	reflect.TypeFor[metav1.Duration]():    cue.StringKind,
	reflect.TypeFor[metav1.Time]():        cue.StringKind,
	reflect.TypeFor[metav1.FieldsV1]():    cue.StructKind,
}

func sameFields(t *testing.T, path string, of reflect.Type, schema cue.Value) int {
	t.Helper()
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	kind := schema.IncompleteKind() &^ cue.NullKind
	if want, is := scalars[of]; is {
		if kind != want {
			t.Errorf("%s is %v in the schema and %v in Go", path, kind, want)
		}
		return 0
	}
	want := map[reflect.Kind]cue.Kind{
		reflect.String: cue.StringKind, reflect.Bool: cue.BoolKind, reflect.Int32: cue.IntKind, reflect.Int64: cue.IntKind,
		reflect.Slice: cue.ListKind, reflect.Map: cue.StructKind, reflect.Struct: cue.StructKind,
	}[of.Kind()]
	if kind != want {
		t.Errorf("%s is %v in the schema and %s in Go", path, kind, of)
		return 0
	}
	switch of.Kind() {
	case reflect.Slice:
		return sameFields(t, path+"[]", of.Elem(), element(schema))
	case reflect.Map:
		return sameFields(t, path+"{}", of.Elem(), member(schema, "anything"))
	case reflect.Struct:
		return sameMembers(t, path, of, schema)
	}
	return 0
}

func sameMembers(t *testing.T, path string, of reflect.Type, schema cue.Value) int {
	inGo := make(map[string]reflect.StructField)
	collect(of, inGo)
	all, required := members(schema)
	fields := len(all)
	for _, name := range all {
		if _, there := inGo[name]; !there {
			t.Errorf("%s.%s is in the schema, not in Go", path, name)
		}
	}
	for name, f := range inGo {
		if !slices.Contains(all, name) {
			t.Errorf("%s.%s is in Go, not in the schema", path, name)
			continue
		}
		// A required field is always written; approval.mode has a default of the API server.
		optional := strings.Contains(f.Tag.Get("json"), ",omit") || path+"."+name == "RedundancyPolicy.spec.approval.mode"
		if must := slices.Contains(required, name); must == optional && !slices.Contains([]string{"name", "metadata", "apiVersion", "kind"}, name) {
			t.Errorf("%s.%s: required in the schema: %v, optional in Go: %v", path, name, must, optional)
		}
		fields += sameFields(t, path+"."+name, f.Type, member(schema, name))
	}
	return fields
}

// collect lists the fields of a struct by their names in JSON, those of inlined structs among them.
func collect(of reflect.Type, fields map[string]reflect.StructField) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			collect(f.Type, fields)
		case f.IsExported() && name != "" && name != "-":
			fields[name] = f
		}
	}
}

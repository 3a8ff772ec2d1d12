package v1alpha1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// The list of the kinds has those of which a scheme knows objects and lists, and no others.
func TestKindsAreThoseOfTheScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	found := 0
	for kind, typ := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		if typ.PkgPath() != "github.com/restripe/restripe/operator/api/v1alpha1" || strings.HasSuffix(kind, "List") {
			continue // what every group has, and lists
		}
		found++
		object, err := scheme.New(v1alpha1.GroupVersion.WithKind(kind))
		if err != nil {
			t.Fatal(err)
		}
		if have := v1alpha1.KindOf(object); have != kind || v1alpha1.Kinds[kind] == "" {
			t.Errorf("an object of kind %s is of kind %q; its plural is %q", kind, have, v1alpha1.Kinds[kind])
		}
		if !scheme.Recognizes(v1alpha1.GroupVersion.WithKind(kind + "List")) {
			t.Errorf("there are no lists of kind %s", kind)
		}
	}
	if found != len(v1alpha1.Kinds) {
		t.Errorf("the scheme has %d kinds, the list %d", found, len(v1alpha1.Kinds))
	}
}

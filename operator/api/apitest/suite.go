package apitest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// Options say how the suite runs.
type Options struct {
	// Config reaches a server that serves the kinds and has no objects of them.
	Config *rest.Config

	// Testdata is where the files of cases lie: operator/api/apitest/testdata, from where the test runs.
	Testdata string

	// Rewrite writes what the server answers into the files of cases instead of comparing.
	Rewrite bool
}

// Run runs the suite. It leaves no objects.
func Run(t *testing.T, options Options) {
	s := &suite{Options: options}
	var err error
	if s.objects, err = dynamic.NewForConfig(options.Config); err != nil {
		t.Fatal(err)
	}
	t.Run("validation", s.validation)
	t.Run("columns", s.columns)
	t.Run("decodable", s.decodable)
	t.Run("server-side-apply", s.serverSideApply)
	t.Run("status", s.status)
	t.Run("watch", s.watch)
}

type suite struct {
	Options
	objects dynamic.Interface
}

// kinds maps the names of the kinds to their resources and Go types.
var kinds = map[string]struct {
	resource string
	typed    func() any
}{
	"StorageBackend":   {"storagebackends", func() any { return &v1alpha1.StorageBackend{} }},
	"RedundancyScheme": {"redundancyschemes", func() any { return &v1alpha1.RedundancyScheme{} }},
	"RedundancyPolicy": {"redundancypolicies", func() any { return &v1alpha1.RedundancyPolicy{} }},
	"Transition":       {"transitions", func() any { return &v1alpha1.Transition{} }},
}

func (s *suite) resource(kind string) dynamic.ResourceInterface {
	return s.objects.Resource(resourceOf(kind))
}

func resourceOf(kind string) schema.GroupVersionResource {
	return v1alpha1.GroupVersion.WithResource(kinds[kind].resource)
}

// create makes an object and removes it at the end of the test. With a status, it sets that too.
func (s *suite) create(t *testing.T, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	resource := s.resource(object.GetKind())
	created, err := resource.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := resource.Delete(context.WithoutCancel(t.Context()), object.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Errorf("removing %s: %v", object.GetName(), err)
		}
	})
	status, has := object.Object["status"]
	if !has {
		return created, nil
	}
	created.Object["status"] = status
	return resource.UpdateStatus(t.Context(), created, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
}

// decodesStrictly checks that the Go types take an object that the server has taken: one they do not take would stop
// every client that watches the kind.
func decodesStrictly(object *unstructured.Unstructured) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(text, kinds[object.GetKind()].typed()); err != nil {
		return fmt.Errorf("the server takes what the Go type does not: %w", err)
	}
	return nil
}

// refusal returns what the server says is wrong, a line for each mistake. The server has no order for them.
func refusal(err error) string {
	status, is := err.(errors.APIStatus)
	if !is {
		return err.Error() + "\n"
	}
	if details := status.Status().Details; details != nil && len(details.Causes) > 0 {
		var lines []string
		for _, cause := range details.Causes {
			line := cause.Message + "\n"
			if cause.Field != "" && cause.Field != "<nil>" { // else it is of the whole object
				line = cause.Field + ": " + line
			}
			lines = append(lines, line)
		}
		slices.Sort(lines)
		return strings.Join(lines, "")
	}
	return status.Status().Message + "\n"
}

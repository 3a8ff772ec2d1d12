package apitest

import (
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// validation runs the cases of testdata/validation, one file for each kind. "base.yaml" is an object that is accepted.
// Each case changes it by a merge patch: "create.yaml" before it is created, "update.yaml" afterwards. "says" is the
// refusal of the last step, or "accepted". "stored.yaml", if there, is the spec that is stored then.
func (s *suite) validation(t *testing.T) {
	for _, cases := range openArchives(t, filepath.Join(s.Testdata, "validation", "*.txtar")) {
		for _, name := range cases.cases() {
			t.Run(cases.name()+"/"+name, func(t *testing.T) {
				stored, err := s.steps(t, cases, name)
				said := "accepted\n"
				if err != nil {
					said = refusal(err)
				} else if err := decodesStrictly(stored); err != nil {
					t.Error(err)
				}
				cases.expect(t, name+"/says", said, s.Rewrite)
				if _, is := cases.file(name + "/stored.yaml"); is && err == nil {
					text, err := yaml.Marshal(stored.Object["spec"])
					if err != nil {
						t.Fatal(err)
					}
					cases.expect(t, name+"/stored.yaml", string(text), s.Rewrite)
				}
			})
		}
	}
}

func (s *suite) steps(t *testing.T, cases *archive, name string) (*unstructured.Unstructured, error) {
	t.Helper()
	base := cases.object(t, "base.yaml")
	created, err := s.create(t, named(cases.name(), name, merge(base, cases.object(t, name+"/create.yaml"))))
	change := cases.object(t, name+"/update.yaml")
	if change == nil {
		return created, err
	}
	if err != nil {
		t.Fatalf("what was to be updated is refused: %v", err)
	}
	changed := &unstructured.Unstructured{Object: merge(created.Object, change)}
	return s.resource(cases.name()).Update(t.Context(), changed, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
}

package apitest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// archive is a file of cases: its files have names such as "a ladder of nothing/change.yaml", the part before the slash
// being the case.
type archive struct {
	path string
	text *txtar.Archive
}

func openArchives(t *testing.T, pattern string) []*archive {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases at %s (%v)", pattern, err)
	}
	var archives []*archive
	for _, path := range paths {
		text, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, &archive{path: path, text: text})
	}
	return archives
}

func (a *archive) name() string { return strings.TrimSuffix(filepath.Base(a.path), ".txtar") }

// cases returns the names of the cases, in order.
func (a *archive) cases() []string {
	var names []string
	for _, file := range a.text.Files {
		name, _, is := strings.Cut(file.Name, "/")
		if is && (len(names) == 0 || names[len(names)-1] != name) {
			names = append(names, name)
		}
	}
	return names
}

func (a *archive) file(name string) (string, bool) {
	for _, file := range a.text.Files {
		if file.Name == name {
			return string(file.Data), true
		}
	}
	return "", false
}

// object reads the YAML of a file, or returns nil if there is no such file.
func (a *archive) object(t *testing.T, name string) map[string]any {
	t.Helper()
	text, is := a.file(name)
	if !is {
		return nil
	}
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%s: %s: %v", a.path, name, err)
	}
	return object
}

// expect compares a file with what came out, or rewrites it.
func (a *archive) expect(t *testing.T, name, got string, rewrite bool) {
	t.Helper()
	want, _ := a.file(name)
	if want == got {
		return
	}
	if !rewrite {
		t.Errorf("%s: %s (-want +got):\n%s", a.path, name, cmp.Diff(want, got))
		return
	}
	for i := range a.text.Files {
		if a.text.Files[i].Name == name {
			a.text.Files[i].Data = []byte(got)
		}
	}
	if _, is := a.file(name); !is {
		t.Fatalf("%s has no file %q to rewrite", a.path, name)
	}
	if err := os.WriteFile(a.path, txtar.Format(a.text), 0o644); err != nil {
		t.Fatal(err)
	}
}

var noName = regexp.MustCompile(`[^a-z0-9]+`)

// named completes an object: the kind as the archive says, the case as the name.
func named(kind, name string, object map[string]any) *unstructured.Unstructured {
	complete := &unstructured.Unstructured{Object: object}
	complete.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	if complete.GetName() == "" {
		complete.SetName(strings.Trim(noName.ReplaceAllString(strings.ToLower(name), "-"), "-"))
	}
	return complete
}

// merge changes an object as a JSON merge patch does (RFC 7386): null removes, maps merge, all else replaces.
func merge(object, change map[string]any) map[string]any {
	merged := map[string]any{}
	for key, value := range object {
		merged[key] = value
	}
	for key, value := range change {
		below, isMap := value.(map[string]any)
		switch old, wasMap := merged[key].(map[string]any); {
		case value == nil:
			delete(merged, key)
		case isMap && wasMap:
			merged[key] = merge(old, below)
		case isMap:
			merged[key] = merge(nil, below)
		default:
			merged[key] = value
		}
	}
	return merged
}

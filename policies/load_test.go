package policies_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/policies"
)

const backend = `apiVersion: restripe.io/v1alpha1
kind: StorageBackend
metadata: {name: main}
spec: {type: file, gateways: ["http://a:1"]}
`

const scheme = `apiVersion: restripe.io/v1alpha1
kind: RedundancyScheme
metadata: {name: warm}
spec: {k: 4, m: 2}
`

func policy(name, prefix, ladder string) string {
	return `apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: ` + name + `}
spec:
  backendRef: main
  selector: {prefixes: [` + prefix + `]}
  ladder: [` + ladder + `]
`
}

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	directory := t.TempDir()
	for name, text := range files {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

func TestLoadReadsDirectories(t *testing.T) {
	directory := write(t, map[string]string{
		"a.yaml": backend, "team/b.yml": scheme + "---\n" + policy("p", "a/", "warm"),
		"team/c.json": `{"apiVersion": "restripe.io/v1alpha1", "kind": "RedundancyScheme", "metadata": {"name": "cold"}, "spec": {"k": 8, "m": 2}}`,
		"team/d.cue":  `x: {apiVersion: "restripe.io/v1alpha1", kind: "RedundancyScheme", metadata: name: "hot", spec: replicas: 3}`,
		"notes.txt":   "not read", ".hidden.yaml": "[", "_old/e.yaml": "[", ".git/f.yaml": "[",
	})
	objects, err := policies.Load(directory)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range objects {
		names = append(names, object.String())
	}
	const want = "StorageBackend/main RedundancyScheme/warm RedundancyPolicy/p RedundancyScheme/cold RedundancyScheme/hot"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("loaded %s, want %s", got, want)
	}
	if policy, is := objects[2].Value.(*v1alpha1.RedundancyPolicy); !is || policy.Spec.Ladder[0] != "warm" {
		t.Errorf("the policy is %+v", objects[2].Value)
	}
}

func TestLoadReturnsAllErrors(t *testing.T) {
	directory := write(t, map[string]string{"a.yaml": backend + "---\n" + policy("p", "a/", "wram"), "b.yaml": scheme + "x: 1\n", "c.txt": "", "empty/d.txt": ""})
	missing, wrong, empty := filepath.Join(directory, "no.yaml"), filepath.Join(directory, "c.txt"), filepath.Join(directory, "empty")
	objects, err := policies.Load(filepath.Join(directory, "a.yaml"), filepath.Join(directory, "b.yaml"), missing, wrong, empty)
	var findings policies.Findings
	if !errors.As(err, &findings) || len(findings) != 5 {
		t.Fatalf("the error is %v", err)
	}
	for _, words := range []string{
		missing + ": cannot be read: no such file or directory", wrong + ": does not end in", empty + ": has no file",
		`a.yaml:12:12: RedundancyPolicy/p: spec.ladder[0]: no RedundancyScheme is called "wram"; did you mean warm?`, "b.yaml:5:1: RedundancyScheme/warm: x: there is no such field",
	} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%q is not in\n%v", words, err)
		}
	}
	if len(objects) != 3 {
		t.Errorf("%d objects can be read nevertheless, want 3", len(objects))
	}
}

func TestKnownObjectsCount(t *testing.T) {
	known, findings := check(t, policies.Options{}, backend, scheme, policy("old", "a/", "rep(3)"))
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	options := policies.Options{Known: known}
	if _, findings = check(t, options, policy("new", "b/", "warm")); len(findings) > 0 {
		t.Errorf("names of known objects are not found: %v", findings)
	}
	_, findings = check(t, options, policy("new", "a/", "rep(2)"))
	if len(findings) != 1 || !strings.Contains(findings[0].Message, `prefix "a/" of backend main belongs to RedundancyPolicy/old`) {
		t.Errorf("a known prefix: %v", findings)
	}
	if _, findings = check(t, options, policy("old", "a/", "rep(2)")); len(findings) > 0 {
		t.Errorf("a policy that replaces a known one: %v", findings)
	}
	moved := strings.Replace(policy("old", "b/", "rep(2)"), "---", "", 1)
	if _, findings = check(t, options, moved, policy("new", "a/", "rep(2)")); len(findings) > 0 {
		t.Errorf("a prefix that its policy gave up: %v", findings)
	}
}

func check(t *testing.T, options policies.Options, documents ...string) ([]policies.Object, policies.Findings) {
	t.Helper()
	return policies.Check(options, policies.Source{Name: "a.yaml", Format: policies.YAML, Text: []byte(strings.Join(documents, "---\n"))})
}

// TestAtFindsFields: an API server names fields as paths; people want to see them in their file.
func TestAtFindsFields(t *testing.T) {
	objects, _ := check(t, policies.Options{}, backend, policy("p", "a/, b/", "rep(3), rep(2)"))
	for path, want := range map[string]string{
		"":                          "a.yaml:6:1",
		"metadata.name":             "a.yaml:8:18",
		"spec":                      "a.yaml:9:1",
		"spec.backendRef":           "a.yaml:10:15",
		"spec.ladder":               "a.yaml:12:3",
		"spec.ladder[1]":            "a.yaml:12:20",
		"spec.ladder[7]":            "a.yaml:12:3",
		"spec.selector.prefixes[1]": "a.yaml:11:29",
		"spec.budget.concurrency":   "a.yaml:9:1",
		"spec.ladder[x":             "a.yaml:12:3",
		"[]..[":                     "a.yaml:6:1",
	} {
		if got := objects[1].At(path).String(); got != want {
			t.Errorf("%q is at %s, want %s", path, got, want)
		}
	}
	if at := (policies.Object{}).At("spec"); at != (policies.Position{}) {
		t.Errorf("an object that was not read is at %v", at)
	}
}

// TestAliasesAreBounded: a few lines of YAML can say billions of values.
func TestAliasesAreBounded(t *testing.T) {
	text := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for name := 'b'; name < 'k'; name++ {
		before := string(name - 1)
		text += string(name) + ": &" + string(name) + " [" + strings.TrimSuffix(strings.Repeat("*"+before+", ", 10), ", ") + "]\n"
	}
	_, findings := check(t, policies.Options{}, text)
	if len(findings) == 0 || !strings.Contains(findings.Error(), "aliases expanded") {
		t.Errorf("the findings are %v", findings)
	}
}

func TestLargeFilesAreRefused(t *testing.T) {
	_, findings := check(t, policies.Options{}, strings.Repeat("#", 2<<20))
	if len(findings) != 1 || !strings.Contains(findings[0].Message, "larger than 1 MiB") {
		t.Errorf("the findings are %v", findings)
	}
	if _, findings = check(t, policies.Options{}, strings.Repeat("[", 100_000)); len(findings) == 0 {
		t.Error("deep nesting is accepted")
	}
}

// TestRenderComesBack renders what was read and reads it again.
func TestRenderComesBack(t *testing.T) {
	all := ""
	for _, path := range []string{"library", "examples/yaml", "examples/cue", "examples/demo"} {
		before, _ := policies.Lint(policies.Options{}, path)
		text, err := policies.Render(before...)
		if err != nil {
			t.Fatal(err)
		}
		after, findings := check(t, policies.Options{}, string(text))
		if len(findings.Errors()) > 0 || len(after) != len(before) || len(after) == 0 {
			t.Fatalf("%d of %d objects came back: %v\n%s", len(after), len(before), findings.Errors(), text)
		}
		again, err := policies.Render(after...)
		if err != nil || string(again) != string(text) {
			t.Errorf("rendered again it is\n%s\n, was\n%s", again, text)
		}
		all += string(text)
	}
	for _, words := range []string{"halfLife: 168h\n", `atLeast: "0.25"`, "below: 64Ki", "foregroundLatency: 50ms"} {
		if !strings.Contains(all, words) {
			t.Errorf("%q is not in\n%s", words, all)
		}
	}
	if strings.Contains(all, "status") || strings.Contains(all, "creationTimestamp") {
		t.Errorf("it has fields that a person would not write:\n%s", all)
	}
}

package policies_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue/format"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/policies"
)

// TestReady lints everything that is offered ready to use: no errors, and no warnings but those named.
func TestReady(t *testing.T) {
	cases := []struct {
		path     string
		objects  string
		warnings []string
	}{
		{
			"library", "archive cache financial media temporary",
			[]string{`no StorageBackend "main" is declared here`, "RedundancyPolicy/temporary: spec.ladder[1]: warning: keeps no redundancy"},
		},
		{"examples/yaml", "main hot warm cold default logs", nil},
		{"examples/cue", "main quarters photos backups rest", nil},
		{"examples/demo", "demo media default", nil},
	}
	for _, c := range cases {
		t.Run(c.path, func(t *testing.T) {
			objects, findings := policies.Lint(policies.Options{}, c.path)
			var names []string
			for _, object := range objects {
				names = append(names, object.Name)
			}
			if got := strings.Join(names, " "); got != c.objects {
				t.Errorf("objects %s, want %s", got, c.objects)
			}
			for _, finding := range findings {
				if !expected(finding, c.warnings) {
					t.Error(finding)
				}
			}
		})
	}
}

func expected(finding policies.Finding, warnings []string) bool {
	for _, words := range warnings {
		if finding.Severity == policies.Warning && strings.Contains(finding.String(), words) {
			return true
		}
	}
	return false
}

// TestLibraryCanBeNarrowed overrides what the classes leave open, and what they do not.
func TestLibraryCanBeNarrowed(t *testing.T) {
	text := `
import "restripe.io/policies/library"

photos: library.#Media & {
	metadata: name: "photos"
	spec: {
		backendRef: "other"
		selector: prefixes: ["a/", "b/"]
		budget: bytesPerSecond: "20Mi"
		stopPolicy: "Hold"
	}
}
`
	objects, findings := policies.Check(policies.Options{}, policies.Source{Name: "a.cue", Format: policies.CUE, Text: []byte(text)})
	if len(objects) != 1 || len(findings.Errors()) > 0 {
		t.Fatalf("%d objects, %v", len(objects), findings)
	}
	spec := objects[0].Value.(*v1alpha1.RedundancyPolicy).Spec
	if spec.BackendRef != "other" || len(spec.Selector.Prefixes) != 2 || spec.Budget.BytesPerSecond.String() != "20Mi" || len(spec.Ladder) != 3 {
		t.Errorf("the overridden class is %+v", spec)
	}
	text = strings.Replace(text, `stopPolicy: "Hold"`, `ladder: ["rep(2)"]`, 1)
	if _, findings = policies.Check(policies.Options{}, policies.Source{Name: "a.cue", Format: policies.CUE, Text: []byte(text)}); len(findings.Errors()) == 0 {
		t.Error("another ladder, which the temperature rules do not fit, was accepted")
	}
}

// TestCUEIsFormatted: what is offered as CUE looks as `cue fmt` writes it.
func TestCUEIsFormatted(t *testing.T) {
	names := []string{"schema.cue"}
	for _, pattern := range []string{"library/*.cue", "examples/*/*.cue"} {
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatalf("%s: no files, %v", pattern, err)
		}
		names = append(names, more...)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		formatted, err := format.Source(text)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(formatted, text) {
			continue
		}
		if !*update {
			t.Errorf("%s is not formatted; go test ./policies -update formats it", name)
		} else if err := os.WriteFile(name, formatted, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkCheck checks a thousand policies.
func BenchmarkCheck(b *testing.B) {
	var text strings.Builder
	text.WriteString(backend)
	for i := range 1000 {
		text.WriteString("---\n" + policy(fmt.Sprintf("p%d", i), fmt.Sprintf("p%d/", i), "rep(3), 'rs(4,2)', 'rs(12,2)'"))
	}
	for b.Loop() {
		objects, findings := policies.Check(policies.Options{}, policies.Source{Name: "a.yaml", Format: policies.YAML, Text: []byte(text.String())})
		if len(objects) != 1001 || len(findings) > 0 {
			b.Fatal(len(objects), findings)
		}
	}
}

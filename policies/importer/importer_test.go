package importer

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/restripe/restripe/policies"
)

var update = flag.Bool("update", false, "write what comes out into the files of testdata")

// TestImports imports what each archive has (lifecycle.json, or pool.json with or without profile.json) and compares
// with its last file, want. What comes out has to pass the checks.
func TestImports(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) < 4 {
		t.Fatalf("too few archives: %v, %v", archives, err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files := make(map[string][]byte)
			for _, file := range archive.Files {
				files[file.Name] = file.Data
			}
			var result *Result
			if lifecycle, is := files["lifecycle.json"]; is {
				result, err = S3Lifecycle(lifecycle, S3Options{Backend: "main", KeyPrefix: "bucket/"})
			} else {
				result, err = Ceph(files["profile.json"], files["pool.json"], CephOptions{Backend: "main"})
			}
			compare(t, name, archive, outcome(t, result, err))
		})
	}
}

// outcome is the YAML of a result, or its error.
func outcome(t *testing.T, result *Result, err error) string {
	t.Helper()
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	text, err := result.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Objects) > 0 {
		objects, findings := policies.Check(policies.Options{}, policies.Source{Name: "import.yaml", Format: policies.YAML, Text: text})
		if len(objects) != len(result.Objects) || len(findings.Errors()) > 0 {
			t.Errorf("%d of %d objects pass the checks: %v", len(objects), len(result.Objects), findings)
		}
	}
	return string(text)
}

func compare(t *testing.T, name string, archive *txtar.Archive, got string) {
	t.Helper()
	want := &archive.Files[len(archive.Files)-1]
	switch {
	case want.Name != "want":
		t.Fatal("the last file of the archive is not called want")
	case got == string(want.Data):
	case *update:
		want.Data = []byte(got)
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("got\n%s\nwant\n%s\ngo test ./policies/importer -update writes what comes out into the file", got, want.Data)
	}
}

// TestSchemesOfClassesCanBeChosen gives other schemes than the default ones, one of them badly.
func TestSchemesOfClassesCanBeChosen(t *testing.T) {
	text := []byte(`{"Rules": [{"Filter": {"Prefix": "` + strings.Repeat("a", 1020) + `"}, "Status": "Enabled", "Transitions": [
		{"Days": 1, "StorageClass": "WARM"}, {"Days": 2, "StorageClass": "BAD"}, {"Days": 3, "StorageClass": "GLACIER"}]}]}`)
	options := S3Options{Backend: "main", Schemes: map[string]string{"STANDARD": "rep(2)", "WARM": "rs(5,1)", "BAD": "rs(5"}}
	result, err := S3Lifecycle(text, options)
	if err != nil {
		t.Fatal(err)
	}
	got := outcome(t, result, nil)
	for _, words := range []string{"- rep(2)\n  - rs(5,1)\n  selector", "the scheme given for BAD is no code", "no scheme stands for GLACIER"} {
		if !strings.Contains(got, words) {
			t.Errorf("%q is not in\n%s", words, got)
		}
	}
	options.KeyPrefix = "bucket/"
	if result, err = S3Lifecycle(text, options); err != nil || len(result.Objects) != 0 || !strings.Contains(outcome(t, result, err), "longer than 1024 characters") {
		t.Errorf("a prefix that is too long: %+v, %v", result, err)
	}
}

func FuzzS3Lifecycle(f *testing.F) {
	f.Add([]byte(`{"Rules": [{"ID": "a", "Prefix": "x", "Status": "Enabled", "Transitions": [{"Days": 30, "StorageClass": "GLACIER"}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if result, err := S3Lifecycle(text, S3Options{Backend: "main"}); err == nil {
			outcome(t, result, nil)
		}
	})
}

func FuzzCeph(f *testing.F) {
	f.Add([]byte(`{"k": "4", "m": "2", "plugin": "isa"}`), []byte(`{"pool": "a", "size": 6}{"pool": "a", "erasure_code_profile": "b"}`))
	f.Fuzz(func(t *testing.T, profile, pool []byte) {
		if result, err := Ceph(profile, pool, CephOptions{Backend: "main"}); err == nil {
			outcome(t, result, nil)
		}
	})
}

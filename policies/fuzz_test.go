package policies

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// fuzzPatience is how long one input may take. After 10 s the toolchain calls it a hang.
const fuzzPatience = 3 * time.Second

// fuzz feeds a format to what Check does. It must not panic, every finding has a message, and a place in the file, and everything
// accepted is whole.
func fuzz(f *testing.F, format Format, patterns ...string) {
	seed(f, format, patterns...)
	shared, runs := newEvaluator(), 0
	f.Fuzz(func(t *testing.T, text []byte) {
		if format == CUE && len(text) > 4<<10 {
			t.Skip("CUE is a language: long programs may take long")
		}
		// One evaluator for many runs, as compiling the schema takes longer than most inputs do.
		if runs++; runs%1000 == 0 {
			shared = newEvaluator()
		}
		l := loader{evaluator: shared}
		check := func() {
			l.source(Source{Name: "fuzz", Format: format, Text: text})
			l.together(nil)
		}
		if format != CUE {
			check()
		} else if !within(fuzzPatience, check) {
			// list.Range(1, 1e9, 1) is no mistake, and cannot be stopped here: see Sandbox.
			shared = newEvaluator()
			t.Skip("CUE is a language: short programs may take long as well")
		}
		objects, findings := l.objects, l.findings.sort([]string{"fuzz"})
		for _, finding := range findings {
			if finding.File != "fuzz" || finding.Message == "" || finding.Line < 0 || finding.Line > 0 && finding.Column < 1 {
				t.Errorf("a finding without place or message: %+v", finding)
			}
		}
		for _, object := range objects {
			if object.Name == "" || object.Value == nil || object.File != "fuzz" {
				t.Errorf("half an object: %+v", object)
			}
		}
	})
}

// within reports whether work ended in time. If not it goes on.
func within(patience time.Duration, work func()) bool {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		work()
	}()
	select {
	case <-ended:
		return true
	case <-time.After(patience):
		return false
	}
}

func seed(f *testing.F, format Format, patterns ...string) {
	f.Helper()
	archives, err := filepath.Glob("testdata/errors/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if formats[filepath.Ext(file.Name)] == format && len(file.Data) < 1000 {
				f.Add(file.Data)
			}
		}
	}
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			f.Fatalf("%s: no files, %v", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
}

func FuzzYAML(f *testing.F) {
	f.Add([]byte("a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]"))
	fuzz(f, YAML, "examples/*/*.yaml", "testdata/full.yaml")
}

func FuzzJSON(f *testing.F) { fuzz(f, JSON) }

func FuzzCUE(f *testing.F) { fuzz(f, CUE, "examples/*/*.cue", "library/*.cue") }

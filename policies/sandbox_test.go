package policies_test

import (
	"bytes"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/restripe/restripe/policies"
)

// What comes out of a sandbox is what comes out without one, right or wrong.
func TestSandboxAgrees(t *testing.T) {
	sandbox := func(request []byte) ([]byte, error) {
		var reply bytes.Buffer
		err := policies.ServeSandbox(bytes.NewReader(request), &reply)
		return reply.Bytes(), err
	}
	var cases [][]policies.Source
	archives, err := filepath.Glob("testdata/errors/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, sources := range together(archive.Files[:len(archive.Files)-1]) {
			if slices.ContainsFunc(sources, func(s policies.Source) bool { return s.Format == policies.CUE }) {
				cases = append(cases, sources)
			}
		}
	}
	for _, directory := range []string{"examples/cue", "library"} {
		sources, findings := policies.ReadPaths(directory)
		if len(findings) > 0 {
			t.Fatal(findings)
		}
		cases = append(cases, sources)
	}
	if len(cases) < 5 {
		t.Fatalf("%d cases show little", len(cases))
	}
	for _, sources := range cases {
		here, hereFindings := policies.Check(policies.Options{Now: lintedAt}, sources...)
		there, thereFindings := policies.Check(policies.Options{Now: lintedAt, Sandbox: sandbox}, sources...)
		if !reflect.DeepEqual(hereFindings, thereFindings) {
			t.Errorf("%s: findings here\n%v\nand of the sandbox\n%v", sources[0].Name, hereFindings, thereFindings)
		}
		if !reflect.DeepEqual(here, there) {
			t.Errorf("%s: %d objects here, %d of the sandbox, and they differ", sources[0].Name, len(here), len(there))
		}
	}
}

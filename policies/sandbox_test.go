package policies_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/restripe/restripe/policies"
)

// TestMain makes the test program a sandbox where it is started as one.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], []string{"sandbox"}) {
		if err := policies.ServeSandbox(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func newSandbox(t *testing.T) *policies.Sandbox {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &policies.Sandbox{Program: program, Arguments: []string{program, "sandbox"}, Time: time.Minute, Bytes: 1 << 30}
}

// What comes out of a sandbox is what comes out of this process, right or wrong.
func TestSandboxAgrees(t *testing.T) {
	sandbox := newSandbox(t)
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

// What takes too much ends with what to do, and takes nothing else with it.
func TestSandboxLimits(t *testing.T) {
	doubled := "a0: \"0123456789\"\n"
	for i := range 40 {
		doubled += fmt.Sprintf("a%d: \"\\(a%d)\\(a%d)\"\n", i+1, i, i)
	}
	const loops = "import \"list\"\na: list.Range(0, 1000, 1)\nb: len([for x in a for y in a for z in a for w in a if x+y+z+w < 0 {x}])"
	for name, test := range map[string]struct {
		text   string
		change func(*policies.Sandbox)
		want   string
	}{
		"a list":          {"import \"list\"\na: list.Range(0, 1e12, 1)", func(s *policies.Sandbox) { s.Bytes = 512 << 20 }, "takes more than 512 MiB of memory"},
		"doubled strings": {doubled, func(s *policies.Sandbox) { s.Bytes = 512 << 20 }, "takes more than 512 MiB of memory"},
		"loops":           {loops, func(s *policies.Sandbox) { s.Time = 2 * time.Second }, "takes more than 2s to evaluate"},
		"no program":      {"a: 1", func(s *policies.Sandbox) { s.Program += ".missing" }, "there is no process to evaluate it in"},
		"another program": {"a: 1", func(s *policies.Sandbox) { s.Program, s.Arguments = "/bin/false", []string{"false"} }, "CUE cannot evaluate it: EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sandbox := newSandbox(t)
			test.change(sandbox)
			objects, findings := policies.Check(policies.Options{Sandbox: sandbox}, policies.Source{Name: "k.cue", Format: policies.CUE, Text: []byte(test.text)})
			if len(objects) != 0 || len(findings) != 1 || findings[0].File != "k.cue" || !strings.Contains(findings[0].Message, test.want) {
				t.Errorf("%d objects, findings %v; want one that says %q", len(objects), findings, test.want)
			}
		})
	}
}

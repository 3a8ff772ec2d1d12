package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/policies"
)

// What takes too much ends with what to do, and takes nothing else with it.
func TestSandboxLimits(t *testing.T) {
	doubled := "a0: \"0123456789\"\n"
	for i := range 40 {
		doubled += fmt.Sprintf("a%d: \"\\(a%d)\\(a%d)\"\n", i+1, i, i)
	}
	const loops = "import \"list\"\na: list.Range(0, 1000, 1)\nb: len([for x in a for y in a for z in a for w in a if x+y+z+w < 0 {x}])"
	small := func(s *sandbox) { s.bytes = 512 << 20 }
	for name, test := range map[string]struct {
		text   string
		change func(*sandbox)
		want   string
	}{
		"nothing":         {"a: 1", func(*sandbox) {}, "declares nothing"},
		"a list":          {"import \"list\"\na: list.Range(0, 1e12, 1)", small, "takes more than 512 MiB of memory"},
		"doubled strings": {doubled, small, "takes more than 512 MiB of memory"},
		"loops":           {loops, func(s *sandbox) { s.time = 2 * time.Second }, "takes more than 2s to evaluate"},
		"no program":      {"a: 1", func(s *sandbox) { s.program += ".missing" }, "there is no process to evaluate it in"},
		"another program": {"a: 1", func(s *sandbox) { s.program = "/bin/false" }, "CUE cannot evaluate it: exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := newSandbox()
			if err != nil {
				t.Fatal(err)
			}
			s.time = time.Minute
			test.change(s)
			objects, findings := policies.Check(policies.Options{Sandbox: s.evaluate}, policies.Source{Name: "k.cue", Format: policies.CUE, Text: []byte(test.text)})
			if len(objects) != 0 || len(findings) != 1 || findings[0].File != "k.cue" || !strings.Contains(findings[0].Message, test.want) {
				t.Errorf("%d objects, findings %v; want one that says %q", len(objects), findings, test.want)
			}
		})
	}
}

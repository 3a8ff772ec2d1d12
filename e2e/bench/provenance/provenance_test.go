package provenance

import (
	"strings"
	"testing"
)

func TestProcessors(t *testing.T) {
	text := "processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: A CPU: fast\n\nprocessor\t: 1\nmodel name\t: another\n"
	if got := processor(text); got != "A CPU: fast (family 26, model 2)" {
		t.Errorf("the processor is %q", got)
	}
	if got := processor("nothing"); got != "unknown" {
		t.Errorf("the processor is %q", got)
	}
}

func TestFactsAreListed(t *testing.T) {
	facts, err := Read("x")
	if err != nil {
		t.Fatal(err)
	}
	list := facts.List("rates are then preliminary", "more")
	for _, want := range []string{
		"- date: 2", ", go1", "machine: ", " cores, ", " GiB, Linux ", "load average", "running: rates are then preliminary)",
		"commit: ", "command: `x`", "\n- more\n",
	} {
		if !strings.Contains(list, want) {
			t.Errorf("the list lacks %q:\n%s", want, list)
		}
	}
}

package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/restripe/restripe/tui/cli/program"
)

// explainLadder runs the command that explains plans and targets.
func explainLadder(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	s := &session{Streams: program.Streams{Out: &out, Messages: &out}}
	command := explainReliability(s, explainCommand(s))
	command.SetArgs(arguments)
	command.SilenceErrors, command.SilenceUsage = true, true
	program.MarkUsage(command)
	err := command.Execute()
	return out.String(), err
}

func TestExplainReliability(t *testing.T) {
	out, err := explainLadder(t, "--nines", "9", "--nodes", "14", "--failures", "4", "--repair", "100MiB")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"9 nines on 14 nodes at up to 1.50x: rep(5),rs(2,4),rs(4,4),rs(8,4)\n",
		"hot   rep(5)    5.00x  11.8 h", "cold  rs(8,4)   1.50x   3.9 d    9.9     9.5    0.51 %",
		"4 parity blocks a stripe are the fewest", "every step down the ladder sends nothing",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing from\n%s", want, out)
		}
	}
	for _, line := range strings.Split(out, "\n")[:7] {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("%q is wider than 80 columns", line)
		}
	}
}

// Without --nines the command explains plans as before.
func TestExplainStillExplainsPlans(t *testing.T) {
	if out, err := explainLadder(t, "--from", "rep(3)", "--to", "rs(12,2)"); err != nil || !strings.Contains(out, "0 blocks cross the network") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestExplainReliabilityRefuses(t *testing.T) {
	for _, c := range []struct {
		arguments, message string
		misuse             bool
	}{
		{"--nines 12 --nodes 14", "have 19 nodes, allow 1.65 bytes stored per byte, repair at 400 MiB/s or ask for 9 nines", false},
		{"--nines 16 --nodes 14", "ask for more than 0 and at most 15", false},
		{"--nines 9", "say how many nodes there are: --nodes N", true},
		{"--nines 9 --nodes 14 --from rep(3)", "--from is about a transition", true},
		{"--nodes 14 --from rep(3) --to rs(4,2)", "--nodes goes with --nines", true},
		{"--nines 9 --nodes 14 --repair fast", `--repair: rate "fast"`, true},
		{"--nines 9 --nodes 14 --repair 0", "repair at 0 bytes per second", true},
		{"--nines 9 --nodes 14 --node-bytes much", "such as 4TiB", true},
		{"--nines 9 --nodes 14 --failures -1", "-1 of a hundred nodes", true},
	} {
		_, err := explainLadder(t, strings.Fields(c.arguments)...)
		var wrong *program.UsageError
		if err == nil || !strings.Contains(err.Error(), c.message) || errors.As(err, &wrong) != c.misuse {
			t.Errorf("%s: %v", c.arguments, err)
		}
	}
}

package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// attempt is what one run of a check says, and whether it fails.
type attempt struct {
	says  string
	fails bool
}

// standIn is run in place of make: it does what the files of its check say, one for every attempt.
const standIn = `#!/usr/bin/env bash
check=${!#}
echo again >>"$check.count"
number=$(wc -l <"$check.count")
cat "$check.$number" || exit 3
[ ! -p hold ] || read -r _ <hold
[ ! -e "$check.$number.fails" ]
`

// fakeRun is the script that runs all checks, in a repository where nothing is real but it.
func fakeRun(t *testing.T, checks map[string][]attempt) *exec.Cmd {
	t.Helper()
	command := fakeRepository(t, "run.sh", map[string]string{
		"e2e/run.sh": contents(t, "e2e/run.sh"), "e2e/report.sh": contents(t, "e2e/report.sh"), "e2e/skips.txt": contents(t, "e2e/skips.txt"),
		"e2e/setup.sh": "#!/usr/bin/env bash\n", "bin/make": standIn,
	})
	for check, attempts := range checks {
		for i, a := range attempts {
			name := fmt.Sprintf("%s.%d", check, i+1)
			writeFile(t, filepath.Join(command.Dir, name), a.says)
			if a.fails {
				writeFile(t, filepath.Join(command.Dir, name+".fails"), "")
			}
		}
	}
	return command
}

const (
	failedVerbosely = `=== RUN   TestOuter
    outer_test.go:1: seed 3
=== RUN   TestOuter/calm
    outer_test.go:2: seed 4
=== RUN   TestOuter/rough
    outer_test.go:2: seed 17 (repeat with -chaos.seed=17)
=== RUN   TestOuter/still
--- FAIL: TestOuter (0.10s)
    --- PASS: TestOuter/calm (0.00s)
    --- FAIL: TestOuter/rough (0.00s)
    --- FAIL: TestOuter/still (0.00s)
=== RUN   TestNext
    next_test.go:1: seed 5
--- PASS: TestNext (0.00s)
FAIL
FAIL	example.org/a	0.101s
`
	failedByDraw = `--- FAIL: TestDrawn (0.02s)
    drawn_test.go:9: [rapid] failed after 3 tests: want 1
        To reproduce, specify -run="TestDrawn" -rapid.failfile="testdata/rapid/TestDrawn.fail" (or -rapid.seed=8812)
FAIL
FAIL	example.org/b	0.030s
ok  	example.org/c	0.010s
`
	failedByTime = "panic: test timed out after 1m0s\n\trunning tests:\n\t\tTestSlow (1m0s)\n\ngoroutine 1 [running]:\n"
	failedPages  = "\x1b[31m FAIL \x1b[39m src/table.test.tsx > a table > keeps its place\n FAIL  src/table.test.tsx > a table > keeps its place\n"
	failedBefore = "  1) [chromium] › browser/a.spec.ts:3:5 › finds a node ──────\n"
	failedSeeds  = "seed 738 short: liveness\nhost: seeds have failed: replay one with make sim SEED=738 SIZE=short\n"
)

func TestRunOfAllChecks(t *testing.T) {
	well, badly := attempt{says: "all is well\n"}, attempt{says: "all is lost\n", fails: true}
	cases := []struct {
		name   string
		checks map[string][]attempt
		failed string   // as the last line names them; none: all pass
		flaky  []string // without the word in front
	}{
		{"all pass", map[string][]attempt{"unit": {well}, "vet": {well}}, "", nil},
		{"one fails twice", map[string][]attempt{"e2e": {{failedVerbosely, true}, {failedVerbosely, true}}, "vet": {well}}, "e2e", nil},
		{"two fail twice", map[string][]attempt{"lint": {badly, badly}, "vet": {badly, badly}}, "lint vet", nil},
		{"a failure without a name", map[string][]attempt{"spec": {badly, well}}, "", []string{"spec unknown none"}},
		{"a failure of a seed", map[string][]attempt{"sim-short": {{failedSeeds, true}, well}}, "", []string{"sim-short unknown 738"}},
		{
			"failures with names and seeds", map[string][]attempt{
				"browser": {{failedBefore, true}, well}, "e2e": {{failedVerbosely, true}, well}, "race": {{failedByTime, true}, well},
				"unit": {{failedByDraw, true}, well}, "web": {{failedPages, true}, well},
			}, "", []string{
				"browser [chromium]_›_browser/a.spec.ts:3:5_›_finds_a_node none",
				"e2e TestOuter/rough 17", "e2e TestOuter/still 3", "race TestSlow none", "unit TestDrawn 8812",
				"web src/table.test.tsx_>_a_table_>_keeps_its_place none",
			},
		},
		{
			"one fails twice beside one that fails once", map[string][]attempt{"e2e": {{failedVerbosely, true}, well}, "vet": {badly, badly}},
			"vet", []string{"e2e TestOuter/rough 17", "e2e TestOuter/still 3"},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			command := fakeRun(t, c.checks)
			var names []string
			for name := range c.checks {
				names = append(names, name)
			}
			slices.Sort(names)
			command.Args = append(command.Args, names...)
			output, err := command.CombinedOutput()

			text := string(output)
			last := regexp.MustCompile(`^All checks passed in [0-9]+ s: ` + strings.Join(names, " ") + `$`)
			var exit *exec.ExitError
			switch {
			case c.failed == "" && err != nil:
				t.Errorf("it ends with %v", err)
			case c.failed != "" && (!errors.As(err, &exit) || exit.ExitCode() != 1):
				t.Errorf("it ends with %v, want exit code 1", err)
			case c.failed != "":
				last = regexp.MustCompile(`^FAILED: ` + c.failed + ` \([0-9]+ s\)$`)
			}
			lines := strings.Split(strings.TrimSpace(text), "\n")
			if got := lines[len(lines)-1]; !last.MatchString(got) {
				t.Errorf("the last line is %q, want %v", got, last)
			}
			var flaky []string
			for _, line := range lines {
				if found, is := strings.CutPrefix(line, "FLAKY "); is {
					flaky = append(flaky, found)
				}
			}
			half := len(flaky) / 2
			if slices.Sort(flaky[:half]); !slices.Equal(flaky[:half], c.flaky) || !slices.Equal(flaky[half:], c.flaky) {
				t.Errorf("flaky are %q, want %q: each where it happened, and all at the end", flaky, c.flaky)
			}
			if len(c.flaky) > 0 && !strings.Contains(strings.Join(lines[len(lines)-1-len(c.flaky):], "\n"), "FLAKY "+strings.Join(c.flaky, "\nFLAKY ")) {
				t.Errorf("the end of the run does not repeat what was flaky")
			}
			for _, attempts := range c.checks {
				for _, a := range attempts {
					if !strings.Contains(text, a.says) {
						t.Errorf("what a check said is not shown: %q", a.says)
					}
				}
			}
			if t.Failed() {
				t.Logf("the run said %q", text)
			}
		})
	}
}

// What a check says is seen while it runs.
func TestRunShowsAtOnce(t *testing.T) {
	command := fakeRun(t, map[string][]attempt{"unit": {{says: "begun\n"}}})
	command.Args = append(command.Args, "unit")
	hold := filepath.Join(command.Dir, "hold") // the check waits for a line of it
	if err := syscall.Mkfifo(hold, 0o600); err != nil {
		t.Skipf("there are no named pipes here: %v", err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	seen := false
	for !seen && lines.Scan() {
		seen = lines.Text() == "begun"
	}
	if !seen {
		t.Error("the check is not heard while it runs")
	}
	if err := os.WriteFile(hold, []byte("go on\n"), 0o600); err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, output); err != nil {
		t.Error(err)
	}
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
}

func TestRunListsItsChecks(t *testing.T) {
	output, err := exec.CommandContext(t.Context(), "./run.sh", "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	targets := phonyTargets(t)
	checks := strings.Fields(string(output))
	for _, check := range checks {
		if !slices.Contains(targets, check) {
			t.Errorf("%q is not a target of the Makefile", check)
		}
	}
	if len(checks) < 10 {
		t.Errorf("only %q are checks", checks)
	}
}

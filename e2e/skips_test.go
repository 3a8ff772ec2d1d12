package e2e

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// skipped is what `go test -v` says of a test that is skipped for that reason, within another.
func skipped(reason string) string {
	return "=== RUN   TestOuter\n=== RUN   TestOuter/inner\n    p256_amd64_test.go:12: " + reason + "\n--- PASS: TestOuter (0.00s)\n" +
		"    --- SKIP: TestOuter/inner (0.00s)\nPASS\nok  \texample.org/a\t0.1s\n"
}

var skipCases = []struct {
	check, reason string
	expected      bool
}{
	{"unit", "this processor does not have AVX-512", true},
	{"e2e", "this processor does not have AVX-512", true},
	{"race", "this processor does not have AVX-512", true},
	{"unit", "needs etcd built from source: run make kube", true},
	{"race", "needs etcd built from source: run make kube", false},
	{"kube", "needs etcd built from source: run make kube", false},
	{"unit", "a small file system can only be mounted by root", false},
	{"e2e", "NOT TESTED, faults of the network and of stores: it takes the rights of root", false},
	{"e2e", "perhaps the engine cannot be opened twice", false}, // a part of the reason is not the reason
}

// A run of all checks fails by a skip that is not expected, and does not try again what would be skipped again.
func TestRunFailsBySkipsThatAreNotExpected(t *testing.T) {
	for _, c := range skipCases {
		command := fakeRun(t, map[string][]attempt{c.check: {{says: skipped(c.reason)}}})
		command.Args = append(command.Args, c.check)
		judgeSkip(t, command, c.check, c.reason, c.expected)
	}
}

// So do the checks of the unit tests alone, of which one has the packages that the other leaves out.
func TestUnitFailsBySkipsThatAreNotExpected(t *testing.T) {
	for _, c := range skipCases {
		if c.check != "unit" && c.check != "race" {
			continue
		}
		script := c.check + ".sh"
		command := fakeRepository(t, script, map[string]string{
			"e2e/" + script: contents(t, "e2e/"+script), "e2e/report.sh": contents(t, "e2e/report.sh"),
			"e2e/skips.txt": contents(t, "e2e/skips.txt"), "log": skipped(c.reason), "bin/go": "#!/usr/bin/env bash\n[ \"$1\" = test ] && cat log || echo example.org/a\n",
		})
		command.Env = append(command.Env, "RACE_PACKAGES=./b", "RACE_TESTS=Under")
		judgeSkip(t, command, c.check, c.reason, c.expected)
	}
}

func judgeSkip(t *testing.T, command *exec.Cmd, check, reason string, expected bool) {
	t.Helper()
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	if expected && err != nil || !expected && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Errorf("%s, skipped as %s: it ends with %v", check, reason, err)
	}
	if !expected && !strings.Contains(string(output), "TestOuter/inner "+reason) {
		t.Errorf("%s: it does not name what was skipped as %s", check, reason)
	}
	if t.Failed() {
		t.Logf("it said %q", output)
	}
}

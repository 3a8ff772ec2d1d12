package kernel

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestEveryPathIsTested names the paths that the tests on this machine say nothing about.
func TestEveryPathIsTested(t *testing.T) {
	var missing []string
	for p := range path(len(pathNames)) {
		if !slices.Contains(machinePaths(), p) {
			missing = append(missing, p.String())
		}
	}
	if len(missing) > 0 {
		t.Skipf("this processor does not have %s", strings.Join(missing, ", "))
	}
}

func TestPathsOfTheMachine(t *testing.T) {
	have := machinePaths()
	if have[0] != generic {
		t.Errorf("the first of %v is not the one for any machine", have)
	}
	if !slices.IsSorted(have) || len(slices.Compact(slices.Clone(have))) != len(have) {
		t.Errorf("%v are not in the order of preference", have)
	}
	if best := choose(""); best != have[len(have)-1] {
		t.Errorf("without a name %v is chosen of %v", best, have)
	}
	names := map[string]bool{}
	for _, p := range have {
		if got := choose(p.String()); got != p {
			t.Errorf("choose(%q) is %v", p, got)
		}
		names[p.String()] = true
	}
	if len(names) != len(have) || names[""] {
		t.Errorf("the names of the paths are %v", names)
	}
}

func TestPathNamesTheOneChosen(t *testing.T) {
	onEveryPath(t, func(t *testing.T) {
		if got, want := Path(), chosen.String(); got != want {
			t.Errorf("Path is %q, want %q", got, want)
		}
		m, err := Compile(1, 1, []Term{{0, 0, 3}})
		if err != nil || m.path != chosen {
			t.Errorf("a matrix compiled on %v takes %v, error %v", chosen, m.path, err)
		}
	})
}

// TestMatricesKeepTheirPath applies matrices after another path has been chosen.
func TestMatricesKeepTheirPath(t *testing.T) {
	s := newSample(full(kinds[4], 4, 6), 700, 1)
	for _, before := range machinePaths() {
		var r *trial
		withPath(before, func() { r = newTrial(t, s, offsets(0, 0), offsets(0, 0)) })
		onEveryPath(t, func(t *testing.T) {
			for _, o := range operations() {
				r.check(t, o, 0, 700)
			}
		})
	}
}

func TestBadPathIsNamedWithTheGoodOnes(t *testing.T) {
	for _, bad := range []string{"fastest", "AVX512", " generic", "avx2,avx512"} {
		func() {
			defer func() {
				checkComplaint(t, fmt.Sprint(recover()), bad)
			}()
			choose(bad)
		}()
	}
}

// checkComplaint fails unless a message says which variable is wrong, what it is and what it can be.
func checkComplaint(t *testing.T, message, bad string) {
	t.Helper()
	parts := []string{"RESTRIPE_KERNEL", bad}
	for _, p := range machinePaths() {
		parts = append(parts, p.String())
	}
	for _, part := range parts {
		if !strings.Contains(message, part) {
			t.Errorf("%s=%q: the message %q does not have %q", PathVariable, bad, message, part)
		}
	}
}

// TestPathOfThisProcess is also what the test below starts processes for.
func TestPathOfThisProcess(t *testing.T) {
	want := os.Getenv(PathVariable)
	if have := machinePaths(); want == "" {
		want = have[len(have)-1].String()
	}
	if Path() != want {
		t.Errorf("%s=%q: the path is %q, want %q", PathVariable, os.Getenv(PathVariable), Path(), want)
	}
}

func TestPathVariable(t *testing.T) {
	start := func(value string) (output string, err error) {
		command := exec.Command(os.Args[0], "-test.run=^TestPathOfThisProcess$", "-test.v")
		// The race detector would wait a second before it lets a process end.
		command.Env = append(os.Environ(), PathVariable+"="+value, "GORACE=atexit_sleep_ms=0")
		text, err := command.CombinedOutput()
		return string(text), err
	}
	values := []string{""}
	for _, p := range machinePaths() {
		values = append(values, p.String())
	}
	for _, value := range values {
		if output, err := start(value); err != nil || !strings.Contains(output, "--- PASS: TestPathOfThisProcess") {
			t.Errorf("%s=%q: %v\n%s", PathVariable, value, err, output)
		}
	}
	output, err := start("fastest")
	if err == nil {
		t.Errorf("a process with %s=fastest runs:\n%s", PathVariable, output)
	}
	checkComplaint(t, output, "fastest")
}

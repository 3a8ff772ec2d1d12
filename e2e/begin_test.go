package e2e

import (
	"os/exec"
	"strings"
	"testing"
)

// TestRunBeginsWithAFile: while the program is not built yet a file is stored by what is built first, and what fails to build is told of.
func TestRunBeginsWithAFile(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves it out")
	}
	t.Parallel()
	begin := func(rest string) (string, error) {
		said, err := exec.CommandContext(t.Context(), "../tui/demo/begin.sh", "bash", "-c", rest).CombinedOutput()
		return string(said), err
	}
	if said, err := begin("true"); err != nil || !strings.Contains(said, "README.md is stored on three nodes and was read again") ||
		!strings.HasSuffix(said, "everything is built\n") {
		t.Errorf("it ends with %v and says:\n%s", err, said)
	}
	if said, err := begin("echo there is no compiler >&2; exit 3"); err == nil || !strings.HasSuffix(said, "there is no compiler\n") {
		t.Errorf("where the rest cannot be built it ends with %v and says:\n%s", err, said)
	}
}

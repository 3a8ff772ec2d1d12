//go:build !ceph

package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/restripe/restripe/tui/cli/program"
)

func TestCommandsSayThatCephIsNotBuiltIn(t *testing.T) {
	for _, line := range []string{"ceph init", "ceph check", "ceph remove", "adopt --pool p --class c", "export --pool p --class c"} {
		var out, messages bytes.Buffer
		if code := execute(t.Context(), strings.Fields(line), strings.NewReader(""), &out, &messages); code != program.ExitFailed {
			t.Errorf("restripe %s: exit code %d", line, code)
		}
		if !strings.Contains(messages.String(), "built without Ceph; build with -tags ceph") {
			t.Errorf("restripe %s says %q", line, messages.String())
		}
	}
}

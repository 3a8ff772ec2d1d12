package launch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A child that writes a lot fills no disk, and what it wrote last is there.
func TestLogsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "n1.log")
	child, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range []string{strings.Repeat("a", 100) + "\n", "b\n", strings.Repeat("c", 101) + "\n", "d\n"} {
		if _, err := child.WriteString(line); err != nil {
			t.Fatal(err)
		}
		if err := boundLog(path, 101); err != nil {
			t.Fatal(err)
		}
		now, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		before, err := os.ReadFile(path + ".1")
		if wants := []string{line, "", "", "d\n"}[i]; string(now) != wants {
			t.Errorf("after line %d the log is %q, not %q", i, now, wants)
		}
		wants := []string{"", strings.Repeat("a", 100) + "\nb\n", line, strings.Repeat("c", 101) + "\n"}[i]
		if string(before) != wants || (err == nil) != (i > 0) {
			t.Errorf("after line %d the log before is %q, %v, not %q", i, before, err, wants)
		}
	}
	if err := child.Close(); err != nil {
		t.Error(err)
	}
	if err := boundLog(filepath.Join(t.TempDir(), "absent"), 1); err == nil {
		t.Error("a log that is not there was turned over")
	}
}

package atomicfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/atomicfile"
)

func TestWrite(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "secret")
	if err := os.WriteFile(path+".new", []byte("what a crash left behind, which is longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "another", ""} {
		if err := atomicfile.Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v; want %q", got, err, text)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if left, err := os.ReadDir(directory); err != nil || len(left) != 1 {
		t.Errorf("%d files are left, %v", len(left), err)
	}
	missing := filepath.Join(directory, "missing", "secret")
	if err := atomicfile.Write(missing, nil); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("where there is no directory: %v", err)
	}
}

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var built struct {
	once sync.Once
	path string
	err  error
}

// program builds the restripe program once per test run.
func program(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		var directory string
		if directory, built.err = os.MkdirTemp("", "restripe-e2e-"); built.err != nil {
			return
		}
		built.path = filepath.Join(directory, "restripe")
		command := exec.Command("go", "build", "-tags", programTags, "-o", built.path, "github.com/restripe/restripe")
		command.Stderr = os.Stderr
		built.err = command.Run()
	})
	if built.err != nil {
		t.Fatalf("building the program: %v", built.err)
	}
	return built.path
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.path != "" {
		if err := os.RemoveAll(filepath.Dir(built.path)); err != nil {
			code = 1
		}
	}
	os.Exit(code)
}

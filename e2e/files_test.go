package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// contents returns a file of the repository, named from its root.
func contents(t *testing.T, name string) string {
	t.Helper()
	return readFile(t, "../"+name)
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// phonyTargets are those that the Makefile has for people.
func phonyTargets(t *testing.T) (targets []string) {
	t.Helper()
	for line := range strings.Lines(contents(t, "Makefile")) {
		if names, is := strings.CutPrefix(line, ".PHONY:"); is {
			targets = append(targets, strings.Fields(names)...)
		}
	}
	if len(targets) == 0 {
		t.Fatal("the Makefile has no .PHONY")
	}
	return targets
}

// fakeRepository makes a folder with files, and returns a command that runs a script of its e2e there. Programs in its bin
// go before others.
func fakeRepository(t *testing.T, script string, files map[string]string) *exec.Cmd {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		writeFile(t, filepath.Join(root, name), text)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, filepath.Join(root, "e2e", script))
	command.Dir = root
	command.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return command
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

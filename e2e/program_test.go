package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// build is a program that is built once per test run.
type build struct {
	once sync.Once
	path string
	err  error
}

var built, builtBefore, builtEtcd build

// before is the commit of the release before, with which this one works together.
const before = "28323ac0ddd01c6035f69b98cda699712b786842"

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

// etcdProgram builds the server of etcd, from the module that the console's API server has it from.
func etcdProgram(t *testing.T) string {
	t.Helper()
	b := &builtEtcd
	b.once.Do(func() {
		var directory string
		if directory, b.err = os.MkdirTemp("", "restripe-etcd-"); b.err != nil {
			return
		}
		b.path = filepath.Join(directory, "etcd")
		command := exec.Command("go", "build", "-o", b.path, "go.etcd.io/etcd/server/v3")
		command.Stderr = os.Stderr
		b.err = command.Run()
	})
	if b.err != nil {
		t.Fatalf("building etcd: %v", b.err)
	}
	return b.path
}

// programBefore builds the program of the release before.
func programBefore(t *testing.T) string {
	t.Helper()
	if err := exec.CommandContext(t.Context(), "git", "cat-file", "-e", before+"^{commit}").Run(); err != nil {
		t.Skipf("the release before is not in the history of this copy: git has no commit %s", before)
	}
	b := &builtBefore
	b.once.Do(func() {
		var directory string
		if directory, b.err = os.MkdirTemp("", "restripe-before-"); b.err != nil {
			return
		}
		b.path = filepath.Join(directory, "restripe")
		// With the modules of this release: all of them are built already.
		script := `git archive "$0" | tar -x -C "$1" && cp go.mod go.sum "$1" && cd "$1" && go build -o restripe .`
		command := exec.Command("bash", "-o", "pipefail", "-c", "cd .. && "+script, before, directory)
		command.Stderr = os.Stderr
		b.err = command.Run()
	})
	if b.err != nil {
		t.Fatalf("building the release before: %v", b.err)
	}
	return b.path
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, b := range []*build{&built, &builtBefore, &builtEtcd} {
		if b.path == "" {
			continue
		}
		if err := os.RemoveAll(filepath.Dir(b.path)); err != nil {
			code = 1
		}
	}
	os.Exit(code)
}

package postgres_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/catalog/postgres"
	"github.com/restripe/restripe/agent/catalog/postgres/postgrestest"
)

// found are the folders with the programs of each release of PostgreSQL that is here, the oldest first.
var found []string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "postgres")
	if err == nil {
		err = os.Chmod(folder, 0o755)
	}
	code := 1
	if err == nil {
		if found, err = postgrestest.Programs(folder); err == nil {
			code = m.Run()
		}
	}
	if err = errors.Join(err, os.RemoveAll(folder)); err != nil {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// programs are those of every release.
func programs(t *testing.T) []string {
	t.Helper()
	if len(found) == 0 {
		t.Skip("PostgreSQL is not installed")
	}
	return found
}

// release is the number of the release whose programs are in a folder.
func release(t *testing.T, folder string) string {
	t.Helper()
	said, err := exec.Command(filepath.Join(folder, "postgres"), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(said)) // postgres (PostgreSQL) 15.18 (Debian ...)
	return words[2]
}

// await asks until what is waited for is so.
func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !so() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			t.Fatalf("waiting for a minute, and it is not so: %s", what)
		}
	}
}

func open(t *testing.T, address string) *postgres.Engine {
	t.Helper()
	engine, err := postgres.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

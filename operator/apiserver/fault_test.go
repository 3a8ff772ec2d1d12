package apiserver

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// A server whose etcd ends is at an end itself, and says so.
func TestEndOfEtcdEndsTheServer(t *testing.T) {
	t.Parallel()
	server, err := Start(t.Context(), Options{Directory: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	server.etcd.Server.Stop()
	select {
	case <-server.Done():
	case <-time.After(time.Minute):
		t.Fatal("the server goes on without etcd")
	}
	if err := server.Stop(); err == nil {
		t.Error("a fault is not told")
	}
}

// A child that was being forked as a server ended may hold the files of its etcd for a moment longer.
func TestLogThatIsHeldForAMoment(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	path := filepath.Join(state, "member", "wal", "0000000000000000-0000000000000000.wal")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	held, err := fileutil.LockFile(path, os.O_CREATE|os.O_RDWR, fileutil.PrivateFileMode)
	if err != nil {
		t.Fatal(err)
	}
	hurried, cancel := context.WithCancel(t.Context())
	cancel()
	if err := awaitLog(hurried, state); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("while the log is held: %v, want an error that names %s", err, path)
	}
	waited := make(chan error)
	go func() { waited <- awaitLog(t.Context(), state) }()
	select {
	case err := <-waited:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(5 * pollInterval):
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waited; err != nil {
		t.Errorf("after the log was let go: %v", err)
	}
}

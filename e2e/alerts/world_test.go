package alerts_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

// The classes of the test, over five of six nodes. Small objects have one of their own.
const classes = `classes:
- name: files
  ladder: rep(2),rs(2,1),rs(4,1)
  prefixes: [""]
  groupBytes: 64KiB
- name: small
  ladder: rep(2),rs(2,1),rs(4,1)
  prefixes: [small/]
  packBelow: 8KiB
  groupBytes: 64KiB
`

const agents = 6

// token is that of Prometheus.
const token = "watching"

// world is a cluster over directories with its catalog in Redis, an operator and a console, and the Prometheus that asks them. Its methods
// fail the test.
type world struct {
	t          *testing.T
	directory  string
	binary     string
	cluster    *launch.Cluster
	client     *client.Client
	catalog    *server.Process
	operator   string // where it shows figures
	console    string
	other      string // gateway of another catalog, once it runs
	prometheus *prometheus
}

func (w *world) at(name string) string { return filepath.Join(w.directory, name) }

func (w *world) ok(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// start starts everything but Prometheus, which finds a few objects.
func start(t *testing.T) *world {
	t.Helper()
	if os.Getenv(programVariable) == "" {
		t.Skip("needs Prometheus: run make alerts")
	}
	w := &world{t: t, directory: t.TempDir(), binary: build(t)}
	sum := sha256.Sum256([]byte(token))
	w.write("users.yaml", "users: [{name: prometheus, tokenSHA256: "+hex.EncodeToString(sum[:])+", verbs: [metrics]}]\n")
	w.write("classes.yaml", classes)
	w.write("token", token)
	w.catalog = server.Redis(t, "--appendonly", "yes", "--maxmemory", "1gb", "--maxmemory-policy", "noeviction")
	var err error
	w.cluster, err = launch.Start(t.Context(), launch.Options{
		Directory: w.at("cluster"), Binary: w.binary, Agents: agents, Domains: agents, ClassFile: w.at("classes.yaml"), Users: w.at("users.yaml"),
		Catalog: "redis://" + w.catalog.Addr,
	})
	w.ok(err)
	t.Cleanup(func() {
		if err := w.cluster.Stop(); err != nil {
			t.Errorf("stopping the cluster: %v", err)
		}
		if t.Failed() {
			w.tails()
		}
	})
	admin, err := pki.Load(w.cluster.Certificate(launch.AdminName))
	w.ok(err)
	w.client, err = client.NewWith(w.cluster.GatewayURL(), client.Options{TLS: admin.Client("", pki.RoleGateway)})
	w.ok(err)
	t.Cleanup(w.client.Close)
	for i := range 20 {
		w.put(fmt.Sprintf("large/%d", i), bytes.Repeat([]byte{byte(i)}, 100<<10))
	}
	w.control()
	return w
}

// control starts an API server, an operator and a console, which show figures as gateways do, and declares the cluster.
func (w *world) control() {
	w.t.Helper()
	w.run("api-server", "", "api-server", "--dir", w.at("api"), "--listen", "127.0.0.1:0")
	kubeconfig := w.at("api/kubeconfig")
	w.await("the API server", func(context.Context) error { _, err := os.Stat(kubeconfig); return err })
	w.apply(`apiVersion: restripe.io/v1alpha1
kind: StorageBackend
metadata: {name: watched}
spec: {type: file, gateways: ["` + w.cluster.GatewayURL() + `"]}
`)
	w.operator, w.console, w.other = freeAddress(w.t), freeAddress(w.t), freeAddress(w.t)
	serving := []string{"--users", w.at("users.yaml"), "--https", "--kubeconfig", kubeconfig, "--tls"}
	w.run("operator", w.cluster.Certificate(launch.OperatorName), append([]string{"operator", "--metrics-listen", w.operator},
		append(serving, w.certify(pki.RoleOperator, launch.OperatorName, 0))...)...)
	w.run("console", w.cluster.Certificate(launch.ConsoleName), append([]string{"console", "--listen", w.console, "--audit", w.at("audit")},
		append(serving, w.certify(pki.RoleConsole, launch.ConsoleName, 0))...)...)
}

// build builds the program.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "restripe")
	if said, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, "github.com/restripe/restripe").CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, said)
	}
	return path
}

// run runs the program until the end of the test, as who has a certificate.
func (w *world) run(name, certificate string, arguments ...string) {
	w.t.Helper()
	command := exec.Command(w.binary, arguments...)
	command.Env = append(os.Environ(), "XDG_CACHE_HOME="+w.at("cache"), "RESTRIPE_TLS="+certificate)
	w.runs(name, command)
}

// runs runs a command until the end of the test.
func (w *world) runs(name string, command *exec.Cmd) {
	w.t.Helper()
	log, err := os.Create(w.at(name + ".log"))
	w.ok(err)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // should the test itself be killed
	w.ok(command.Start())
	w.t.Cleanup(func() {
		if err := command.Process.Signal(os.Interrupt); err != nil {
			w.t.Errorf("ending %s: %v", name, err)
		}
		late := time.AfterFunc(20*time.Second, func() { _ = command.Process.Kill() }) // it may have ended just now
		_ = command.Wait()                                                            // ended by a signal
		late.Stop()
		if err := log.Close(); err != nil {
			w.t.Error(err)
		}
	})
}

// tails shows the ends of all logs.
func (w *world) tails() {
	for _, pattern := range []string{"*.log", "cluster/logs/*.log"} {
		names, err := filepath.Glob(w.at(pattern))
		w.ok(err)
		for _, name := range names {
			if text, err := os.ReadFile(name); err == nil && len(text) > 0 {
				w.t.Logf("---- %s\n%s", filepath.Base(name), text[max(0, len(text)-1500):])
			}
		}
	}
}

// apply declares objects.
func (w *world) apply(text string) {
	w.t.Helper()
	command := exec.CommandContext(w.t.Context(), w.binary, "apply", "--kubeconfig", w.at("api/kubeconfig"), "-f", "-")
	command.Stdin = strings.NewReader(text)
	if said, err := command.CombinedOutput(); err != nil {
		w.t.Fatalf("declaring: %v\n%s", err, said)
	}
}

// certify issues a certificate of the cluster for this machine, for a time or the usual one, and returns its directory: an agent's
// own, or a new one.
func (w *world) certify(role pki.Role, name string, life time.Duration) string {
	w.t.Helper()
	authority, err := pki.Open(w.cluster.Certificate("ca"))
	w.ok(err)
	into := w.at("serving-" + name)
	if role == pki.RoleAgent {
		into = w.cluster.Certificate(name)
	}
	_, err = authority.Issue(pki.Identity{Role: role, Name: name}, []string{"127.0.0.1"}, life, into)
	w.ok(err)
	return into
}

// identity is who an agent is in its certificate.
func (w *world) identity(agent string) string {
	w.t.Helper()
	own, err := pki.Load(w.cluster.Certificate(agent))
	w.ok(err)
	return own.Identity().String()
}

// store is the directory of the store of an agent.
func (w *world) store(agent string) string {
	return filepath.Join(w.cluster.Directory(), "nodes", agent, "store")
}

// restart halts an agent, and starts it again after something was done.
func (w *world) restart(agent string, meanwhile func()) {
	w.t.Helper()
	w.ok(w.cluster.Halt(agent))
	meanwhile()
	w.ok(w.cluster.Restart(w.t.Context(), agent))
}

// dial connects to a Redis.
func (w *world) dial(address string) rueidis.Client {
	w.t.Helper()
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true})
	w.ok(err)
	return redis
}

func (w *world) put(key string, text []byte) {
	w.t.Helper()
	w.ok(w.tryPut(w.t.Context(), key, text))
}

func (w *world) tryPut(ctx context.Context, key string, text []byte) error {
	_, err := w.client.Put(ctx, key, bytes.NewReader(text), client.PutOptions{Size: int64(len(text)), SizeKnown: true})
	return err
}

func (w *world) write(name, text string) { w.ok(os.WriteFile(w.at(name), []byte(text), 0o600)) }

// await tries until it works, for five minutes at most.
func (w *world) await(what string, try func(context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Minute)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			w.t.Fatalf("in vain awaited: %s: %v", what, err)
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

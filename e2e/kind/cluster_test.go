package kind_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/pki"
)

// folderVariable names the folder that setup.sh made.
const folderVariable = "RESTRIPE_KIND"

// How long single commands, and things that nobody tells of, may take; machines are slow that do other things too.
const (
	commandLimit = 6 * time.Minute
	pollLimit    = 6 * time.Minute
)

// world is the cluster, and what is known of it.
type world struct {
	folder string // of setup.sh
	home   string // of kubectl and helm, and for files of the test
	old    string // versions of the images that the nodes have
	new    string

	workers   [2]string         // names of the two nodes for pods
	addresses map[string]string // of nodes, by name
	ca        string            // file of the authority of the release
	gateway   *client.Client    // by way of the Service
}

// open finds the cluster that setup.sh made.
func open(t *testing.T) *world {
	t.Helper()
	folder := os.Getenv(folderVariable)
	if folder == "" {
		t.Skip("needs a cluster of kind: run make kind")
	}
	text, err := os.ReadFile(filepath.Join(folder, "versions"))
	if err != nil {
		t.Fatalf("%s: %v: run make kind", folderVariable, err)
	}
	versions := strings.Fields(string(text))
	if len(versions) != 2 {
		t.Fatalf("%s/versions has %q, want two versions", folder, versions)
	}
	w := &world{folder: folder, home: t.TempDir(), old: versions[0], new: versions[1], addresses: map[string]string{}}
	nodes := w.kubectl(t, "", "get", "nodes", "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.status.addresses[?(@.type=="InternalIP")].address}{"\n"}{end}`)
	for line := range strings.Lines(nodes) {
		name, address, _ := strings.Cut(strings.TrimSpace(line), " ")
		w.addresses[name] = address
		switch {
		case strings.HasSuffix(name, "-control-plane"):
		case w.workers[0] == "":
			w.workers[0] = name
		default:
			w.workers[1] = name
		}
	}
	if len(w.addresses) != 3 || w.workers[1] == "" {
		t.Fatalf("the nodes are\n%s", nodes)
	}
	return w
}

// command is a program of the folder, which knows the cluster; it ends with ctx.
func (w *world) command(ctx context.Context, program string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(w.folder, program), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(w.folder, "kubeconfig"), "KUBECACHEDIR="+w.home,
		"HELM_CACHE_HOME="+w.home, "HELM_CONFIG_HOME="+w.home, "HELM_DATA_HOME="+w.home)
	return command
}

// try runs a program of the folder and returns its standard output, and an error with what it said.
func (w *world) try(ctx context.Context, input, program string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	command := w.command(ctx, program, arguments...)
	command.Stdin = strings.NewReader(input)
	said := &bytes.Buffer{}
	command.Stderr = said
	output, err := command.Output()
	if err != nil {
		return string(output), fmt.Errorf("%s %s: %w\n%s", program, strings.Join(arguments, " "), err, said)
	}
	return string(output), nil
}

// write makes a file and returns where it is.
func (w *world) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(w.home, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// kubectl returns the standard output; the command has to succeed.
func (w *world) kubectl(t *testing.T, input string, arguments ...string) string {
	t.Helper()
	output, err := w.try(t.Context(), input, "kubectl", arguments...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

func (w *world) helm(t *testing.T, arguments ...string) string {
	t.Helper()
	output, err := w.try(t.Context(), "", "helm", append(arguments, "--namespace", namespace)...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// onNode runs a command in a node, as root.
func (w *world) onNode(t *testing.T, node, script string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-ec", `source "$1/podman.env"; podman exec "$2" sh -ec "$3"`, "bash", w.folder, node, script)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("on %s: %s: %v\n%s", node, script, err, output)
	}
}

// eventually polls what nobody tells of.
func eventually(t *testing.T, what string, try func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 500*time.Millisecond, pollLimit, true, func(ctx context.Context) (bool, error) {
		last = try(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v (%v)", what, err, last)
	}
}

// explain shows how things are, for a test that failed.
func (w *world) explain(t *testing.T) {
	// The test's own context has ended.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, arguments := range [][]string{
		{"get", "nodes,pods,persistentvolumeclaims", "-A", "-o", "wide"},
		{"get", "restripe", "-o", "wide"},
		{"get", "storagebackends,redundancypolicies,transitions", "-o",
			`jsonpath={range .items[*]}{.kind} {.metadata.name} {.status.conditions}{"\n"}{end}`},
		{"-n", namespace, "get", "events", "--sort-by=.lastTimestamp"},
		{"-n", namespace, "logs", "--tail=30", "--prefix", "-l", "app.kubernetes.io/component=gateway"},
		{"-n", namespace, "logs", "--tail=30", "--prefix", "-l", "app.kubernetes.io/component=operator"},
		{"-n", namespace, "logs", "--tail=5", "--prefix", "-l", "app.kubernetes.io/component=agent", "--max-log-requests=20"},
	} {
		output, err := w.try(ctx, "", "kubectl", arguments...)
		t.Logf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
}

// issue makes an authority, and what the parts of the release show one another, as Secrets.
func (w *world) issue(t *testing.T, agents []string) {
	t.Helper()
	folder := filepath.Join(w.home, "certificates")
	authority, err := pki.Create(filepath.Join(folder, "ca"), "restripe")
	if err != nil {
		t.Fatal(err)
	}
	identities := map[string]pki.Identity{
		"gateway": {Role: pki.RoleGateway, Name: "gateway"}, "operator": {Role: pki.RoleOperator, Name: "operator"},
		"console": {Role: pki.RoleConsole, Name: "console"},
	}
	for _, agent := range agents {
		identities["agent-"+agent] = pki.Identity{Role: pki.RoleAgent, Name: agent}
	}
	for name, identity := range identities {
		var hosts []string
		if name == "gateway" { // by its names within the cluster, and at every node
			service := release + "-gateway." + namespace
			hosts = []string{service, service + ".svc", service + ".svc.cluster.local"}
			for address := range maps.Values(w.addresses) {
				hosts = append(hosts, address)
			}
		}
		into := filepath.Join(folder, name)
		if _, err := authority.Issue(identity, hosts, 0, into); err != nil {
			t.Fatal(err)
		}
		w.kubectl(t, "", "-n", namespace, "create", "secret", "generic", release+"-"+name, "--from-file", into)
	}
	w.ca = filepath.Join(folder, "ca", pki.AuthorityFile)
}

// dial makes the client of the gateway that reaches it through its Service, at the port that this has at every node.
func (w *world) dial(t *testing.T, id, secret string) {
	t.Helper()
	text, err := os.ReadFile(w.ca)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatalf("%s has no certificate", w.ca)
	}
	port := w.kubectl(t, "", "-n", namespace, "get", "service", release+"-gateway", "-o", "jsonpath={.spec.ports[0].nodePort}")
	if w.gateway != nil {
		w.gateway.Close()
	}
	// The second worker: the gateway itself is on the first one.
	w.gateway, err = client.NewWith("https://"+w.addresses[w.workers[1]]+":"+port, client.Options{
		TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}, KeyID: id, Secret: secret,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// put stores an object, and tries again while there is no gateway.
func (w *world) put(t *testing.T, key string, text []byte) {
	t.Helper()
	eventually(t, "storing "+key, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		_, err := w.gateway.Put(ctx, key, bytes.NewReader(text), client.PutOptions{Size: int64(len(text)), SizeKnown: true})
		return err
	})
}

// check reads objects, and tries again while they cannot be read; what is read has to be what was stored.
func (w *world) check(t *testing.T, objects map[string][]byte) {
	t.Helper()
	for key, want := range objects {
		var text []byte
		eventually(t, "reading "+key, func(ctx context.Context) (err error) {
			text, err = w.read(ctx, key)
			return err
		})
		if !bytes.Equal(text, want) {
			t.Fatalf("%s is not what was stored: %d bytes, of %d", key, len(text), len(want))
		}
	}
}

func (w *world) read(ctx context.Context, key string) (text []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	content, err := w.gateway.Get(ctx, key, client.Range{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	return io.ReadAll(content)
}

// schemes counts the groups of objects by scheme.
func (w *world) schemes(ctx context.Context, objects map[string][]byte) (map[string]int, error) {
	counts := map[string]int{}
	for key := range objects {
		stat, err := w.gateway.Stat(ctx, key)
		if err != nil {
			return nil, err
		}
		for _, group := range stat.Groups {
			counts[group.Scheme]++
		}
	}
	return counts, nil
}

// pods returns the lines of the pods of a component, by name: "NODE IMAGE UID".
func (w *world) pods(t *testing.T, component string) map[string]string {
	t.Helper()
	list := w.kubectl(t, "", "-n", namespace, "get", "pods", "-l", "app.kubernetes.io/component="+component, "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName} {.spec.containers[0].image} {.metadata.uid}{"\n"}{end}`)
	pods := map[string]string{}
	for line := range strings.Lines(list) {
		name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		pods[name] = rest
	}
	return pods
}

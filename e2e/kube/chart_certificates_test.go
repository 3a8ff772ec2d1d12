package kube_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/pki"
)

// certified is a release whose certificates cert-manager makes.
type certified struct {
	*kubectl
	helm   *helm
	folder string
}

// TestChartCertificatesOfCertManager has cert-manager make what the chart asks for: agents and a gateway that run with it, and as the chart
// configures them, believe one another, and a client believes the gateway by its name. The authority outlives the release, so that who
// believed it still does when the release is back.
func TestChartCertificatesOfCertManager(t *testing.T) {
	manager := program(t, "cert-manager")
	server := startKubernetes(t)
	c := &certified{kubectl: &kubectl{path: program(t, "kubectl"), kubeconfig: server.kubeconfig, home: t.TempDir()}, helm: newHelm(t)}
	c.helm.kubeconfig, c.folder = server.kubeconfig, t.TempDir()
	c.run(t, "", "apply", "--server-side", "-f", program(t, "cert-manager.yaml"))
	c.run(t, "", "wait", "--for=condition=Established", "customresourcedefinition", "--all", "--timeout=2m")
	startProgram(t, manager, "--kubeconfig", server.kubeconfig)
	c.run(t, "", "create", "namespace", "store")
	c.install(t)

	authority := c.secret(t, "r-ca").Data["tls.crt"]
	agent := built(t, "github.com/restripe/restripe/tui/restripe-agent")
	gateway := c.start(t, agent)
	c.answers(t, gateway)

	c.helm.run(t, "uninstall", "r", "-n", "store")
	if left := c.run(t, "", "-n", "store", "get", "certificates", "-o", "name"); left != "" {
		t.Errorf("when the release is gone there are\n%s", left)
	}
	c.install(t)
	if again := c.secret(t, "r-ca").Data["tls.crt"]; len(authority) == 0 || !bytes.Equal(again, authority) {
		t.Errorf("the authority of the release was\n%s\nand when it is back it is\n%s", authority, again)
	}
}

// TestChartIsValidWithAllValues: a server that knows the kinds of cert-manager and of the operator of Prometheus takes all that is made of
// the chart, and knows every field of it.
func TestChartIsValidWithAllValues(t *testing.T) {
	h := newHelm(t)
	server := startKubernetes(t)
	k := &kubectl{path: program(t, "kubectl"), kubeconfig: server.kubeconfig, home: t.TempDir()}
	for _, kinds := range []string{program(t, "cert-manager.yaml"), program(t, "prometheus.yaml"), chart + "/crds"} {
		k.run(t, "", "apply", "--server-side", "-f", kinds)
	}
	k.run(t, "", "wait", "--for=condition=Established", "customresourcedefinition", "--all", "--timeout=2m")
	k.run(t, "", "create", "namespace", "store")
	for name, values := range variants {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
		for _, object := range rendered(t, h, values) {
			list.Items = append(list.Items, *object)
		}
		text, err := list.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		command := k.command(t, string(text), "-n", "store", "apply", "--dry-run=server", "--validate=strict", "-f", "-")
		said, err := command.CombinedOutput()
		if err != nil || strings.Contains(string(said), "arning") || strings.Count(string(said), "\n") != len(list.Items) {
			t.Errorf("%s, of %d objects: %v\n%s", name, len(list.Items), err, said)
		}
	}
}

// install returns when there is a certificate of everything.
func (c *certified) install(t *testing.T) {
	t.Helper()
	c.helm.run(t, "install", "r", chart, "-n", "store", "--set", "gateways.users=people")
	c.run(t, "", "-n", "store", "wait", "--for=condition=Ready", "issuers,certificates", "--all", "--timeout=3m")
}

func (c *certified) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := json.Unmarshal([]byte(c.run(t, "", "-n", "store", "get", "secret", name, "-o", "json")), secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// mounted writes what is in a Secret to files, as it is mounted.
func (c *certified) mounted(t *testing.T, name string) string {
	t.Helper()
	directory := filepath.Join(c.folder, name)
	if err := os.MkdirAll(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	for key, text := range c.secret(t, name).Data {
		if err := os.WriteFile(filepath.Join(directory, key), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}

// start runs all agents and the gateway of the release, by the configuration that it has, and returns the address of the gateway.
func (c *certified) start(t *testing.T, program string) string {
	t.Helper()
	configuration := c.configuration(t, "r-gateway")
	list := configuration["nodes.yaml"]
	var told struct {
		Nodes []struct{ ID, Address string }
	}
	if err := yaml.Unmarshal([]byte(list), &told); err != nil || len(told.Nodes) != 5 {
		t.Fatalf("the gateway is told of %+v, %v", told, err)
	}
	for _, node := range told.Nodes {
		address := "127.0.0.1:" + freePort(t)
		list = strings.ReplaceAll(list, node.Address, address)
		c.serve(t, program, "agent", node.ID, c.configuration(t, "r-"+node.ID)["agent.yaml"],
			"0.0.0.0:7481", address, "/etc/restripe/tls", c.mounted(t, "r-agent-"+node.ID))
	}
	c.write(t, "nodes.yaml", list)
	c.write(t, "users.yaml", "users:\n- {name: tester, tokenSHA256: "+hashed("tester")+", verbs: [get, apply], objects: [{may: [admin]}]}\n")
	address := "127.0.0.1:" + freePort(t)
	c.serve(t, program, "gateway", "r-gateway-0", configuration["gateway.yaml"],
		"0.0.0.0:7480", address, "/etc/restripe/tls", c.mounted(t, "r-gateway"),
		"/etc/restripe/config", c.folder, "/etc/restripe/users", c.folder)
	return address
}

// configuration is what is in a ConfigMap.
func (c *certified) configuration(t *testing.T, name string) map[string]string {
	t.Helper()
	found := &corev1.ConfigMap{}
	if err := json.Unmarshal([]byte(c.run(t, "", "-n", "store", "get", "configmap", name, "-o", "json")), found); err != nil {
		t.Fatal(err)
	}
	return found.Data
}

// serve runs a part under its name, by a configuration in which some is replaced.
func (c *certified) serve(t *testing.T, program, part, name, configuration string, replaced ...string) {
	t.Helper()
	replaced = append(replaced, "/var/lib/restripe", t.TempDir())
	path := c.write(t, name+".yaml", strings.NewReplacer(replaced...).Replace(configuration))
	startCommand(t, exec.Command(program, part, "--config", path, "--id", name))
}

func (c *certified) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(c.folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// answers stores an object and reads it back, by the name that the gateway has in the cluster.
func (c *certified) answers(t *testing.T, address string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.folder, "r-gateway", pki.AuthorityFile))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	gateway, err := client.NewWith("https://"+address, client.Options{
		TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13, ServerName: "r-gateway.store.svc"}, Token: "tester",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gateway.Close)
	eventually(t, "waiting for all nodes", func(ctx context.Context) error {
		list, err := gateway.Nodes(ctx)
		for i := range list.Nodes {
			if node := &list.Nodes[i]; node.State != "up" {
				err = fmt.Errorf("%s is %s: %s", node.ID, node.State, node.Store)
			}
		}
		return err
	})
	five := api.ClassSpec{Name: "five", Ladder: "rs(3,2)", Prefixes: []string{"k"}} // which all nodes are enough for
	if _, err := gateway.PutClass(t.Context(), five); err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("certified"), 1<<14)
	options := client.PutOptions{Size: int64(len(want)), SizeKnown: true}
	if _, err := gateway.Put(t.Context(), "k", bytes.NewReader(want), options); err != nil {
		t.Fatal(err)
	}
	content, err := gateway.Get(t.Context(), "k", client.Range{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(content)
	if err := errors.Join(err, content.Close()); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes were stored and %d read, %v", len(want), len(got), err)
	}
}

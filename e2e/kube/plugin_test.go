package kube_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const declaredInCUE = `import "restripe.io/policies"

photos: policies.#RedundancyPolicy & {
	metadata: name: "photos"
	spec: {
		backendRef: backend.metadata.name
		selector: prefixes: ["photos/"]
		ladder: ["rep(3)", "rs(4,2)"]
	}
}

backend: policies.#StorageBackend & {
	metadata: name: "demo"
	spec: {type: "file", gateways: ["http://127.0.0.1:7480"]}
}
`

// TestKubectlRestripe: kubectl finds the program by the links that are in the PATH, and the program the server that kubectl asks.
func TestKubectlRestripe(t *testing.T) {
	path := program(t, "kubectl")
	kubernetes := startKubernetes(t)
	kubernetes.install(t)
	k := &plugged{t: t, path: path, home: t.TempDir()}
	plugins := t.TempDir()
	binary := built(t, "github.com/restripe/restripe")
	for _, name := range []string{"kubectl-restripe", "kubectl_complete-restripe"} {
		if err := os.Symlink(binary, filepath.Join(plugins, name)); err != nil {
			t.Fatal(err)
		}
	}
	k.environment = append(os.Environ(), "PATH="+plugins+string(filepath.ListSeparator)+os.Getenv("PATH"), "HOME="+k.home, "KUBECONFIG=")
	writeContexts(t, kubernetes.kubeconfig, filepath.Join(k.home, ".kube", "config"))
	cluster := filepath.Join(k.home, "cluster.cue")
	if err := os.WriteFile(cluster, []byte(declaredInCUE), 0o600); err != nil {
		t.Fatal(err)
	}

	if listed := k.says("", "plugin", "list"); !strings.Contains(listed, "kubectl-restripe") || strings.Contains(listed, "warning") {
		t.Errorf("the plugins:\n%s", listed)
	}
	if help := k.says("", "restripe", "get", "--help"); !strings.Contains(help, "\n  kubectl restripe get policies -o wide\n") {
		t.Errorf("the help:\n%s", help)
	}
	if offered := k.says("", "__complete", "restripe", "rend"); !strings.Contains(offered, "\nrender\t") {
		t.Errorf("what is offered after rend:\n%s", offered)
	}

	rendered := k.says("", "restripe", "render", cluster)
	if said := k.says(rendered, "apply", "-f", "-"); strings.Count(said, "created") != 2 {
		t.Errorf("rendered and applied:\n%s", said)
	}
	if said := k.says("", "restripe", "apply", "-f", cluster); said != "backend/demo unchanged\npolicy/photos unchanged\n" {
		t.Errorf("applied after that:\n%s", said)
	}
	list := k.says("", "restripe", "render", cluster, "-o", "json")
	if said := k.says(list, "apply", "-f", "-"); strings.Count(said, "unchanged") != 2 {
		t.Errorf("a List applied after that:\n%s", said)
	}
	if shown := k.says("", "restripe", "get", "policies", "-o", "name"); shown != "photos\n" {
		t.Errorf("the policies:\n%s", shown)
	}
	if shown := k.says("", "restripe", "get", "transitions"); !strings.HasPrefix(shown, "There are no transitions. ") {
		t.Errorf("the transitions:\n%s", shown)
	}

	elsewhere := k.command("", "restripe", "get", "policies", "--context", "elsewhere")
	if said, err := elsewhere.CombinedOutput(); err == nil || !strings.Contains(string(said), "no API server answers at https://127.0.0.1:1") {
		t.Errorf("another context: %v\n%s", err, said)
	}
	k.environment = append(k.environment, "HOME="+t.TempDir())
	if shown := k.says("", "restripe", "get", "policies", "--kubeconfig", kubernetes.kubeconfig, "-o", "name"); shown != "photos\n" {
		t.Errorf("the policies by a kubeconfig:\n%s", shown)
	}
}

// plugged is kubectl in an environment of its own.
type plugged struct {
	t           *testing.T
	path, home  string
	environment []string
}

func (k *plugged) command(input string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(k.t.Context(), k.path, arguments...)
	command.Stdin, command.Env = strings.NewReader(input), k.environment
	return command
}

// says returns all that a command says, which has to succeed.
func (k *plugged) says(input string, arguments ...string) string {
	k.t.Helper()
	said, err := k.command(input, arguments...).CombinedOutput()
	if err != nil {
		k.t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, said)
	}
	return string(said)
}

// writeContexts writes a kubeconfig to a new place, with another context, of a server that is not there.
func writeContexts(t *testing.T, from, to string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		t.Fatal(err)
	}
	config.Clusters["elsewhere"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.Contexts["elsewhere"] = &clientcmdapi.Context{Cluster: "elsewhere", AuthInfo: config.Contexts[config.CurrentContext].AuthInfo}
	if err := clientcmd.WriteToFile(*config, to); err != nil {
		t.Fatal(err)
	}
}

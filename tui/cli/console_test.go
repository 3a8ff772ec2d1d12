package cli

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/policies/compile"
	"github.com/restripe/restripe/tui/cli/program"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
)

const consolePolicy = `apiVersion: restripe.io/v1alpha1
kind: RedundancyPolicy
metadata: {name: media}
spec:
  backendRef: local
  selector: {prefixes: [media/]}
  ladder: [rep(3), 'rs(4,2)']
  default: rep(2)
`

// TestConsoleTexts: the console finds mistakes where they are, beside what the server has, and writes what it read.
func TestConsoleTexts(t *testing.T) {
	sandbox, err := newSandbox()
	if err != nil {
		t.Fatal(err)
	}
	compiler := compile.Compiler{Sandbox: sandbox.evaluate}
	backend := &v1alpha1.StorageBackend{Spec: v1alpha1.StorageBackendSpec{Type: "file", Gateways: []v1alpha1.GatewayAddress{"http://127.0.0.1:7480"}}}
	backend.SetName("local")
	known := []client.Object{backend}
	_, findings := compiler.Compile(&consolev1.Document{Name: "media.yaml", Text: consolePolicy}, known)
	if len(findings) != 1 || findings[0].Line != 8 || findings[0].File != "media.yaml" || findings[0].Severity != "error" || findings[0].Path != "spec.default" {
		t.Fatalf("findings: %v", findings)
	}
	right := strings.Replace(consolePolicy, "default: rep(2)", "default: rep(3)", 1)
	declared, findings := compiler.Compile(&consolev1.Document{Name: "media.yaml", Text: right}, known)
	if len(findings) != 0 || len(declared) != 1 {
		t.Fatalf("findings: %v, declared %v", findings, declared)
	}
	if at := declared[0].Finding("spec.ladder[1]", "no"); at.Line != 7 || at.Message != "no" || at.Object != "RedundancyPolicy/media" {
		t.Errorf("what the server finds: %v", at)
	}
	text, err := compiler.Render(declared[0].Object)
	if err != nil || !strings.Contains(text, "kind: RedundancyPolicy") || strings.Contains(text, "status") {
		t.Errorf("written: %s, %v", text, err)
	}
	_, findings = compiler.Compile(&consolev1.Document{Name: "media.cue", Format: consolev1.Format_FORMAT_CUE, Text: "a: 1\na: 2\n"}, known)
	if len(findings) == 0 || findings[0].Line == 0 {
		t.Errorf("two values of a CUE field: %v", findings)
	}
	_, findings = compiler.Compile(&consolev1.Document{Name: "media.cue", Format: consolev1.Format_FORMAT_CUE, Text: "import \"list\"\na: list.Range(0, 1e12, 1)\n"}, known)
	if len(findings) != 1 || !strings.Contains(findings[0].Message, "make its lists and loops smaller") {
		t.Errorf("more than there is memory for: %v", findings)
	}
}

// TestConsoleKeepsToItself: nothing listens where others can reach it unless callers must say who they are.
func TestConsoleKeepsToItself(t *testing.T) {
	kubeconfig := t.TempDir() + "/kubeconfig"
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	for arguments, complaint := range map[string]string{
		"--listen 0.0.0.0:0 --allow-remote":  "--users",
		"--listen nowhere":                   "host:port",
		"--health-listen 0.0.0.0:0":          "--health-listen",
		"--users a --cluster-users":          "one of them",
		"--users " + kubeconfig + ".missing": "reading the users",
	} {
		writeKubeconfig(t, kubeconfig)
		var out, messages bytes.Buffer
		code := execute(t.Context(), append([]string{"console", "--kubeconfig", kubeconfig}, strings.Fields(arguments)...), strings.NewReader(""), &out, &messages)
		if code == program.ExitDone || !strings.Contains(messages.String(), complaint) {
			t.Errorf("console %s: exit code %d, %s", arguments, code, messages.String())
		}
	}
}

// TestConsoleTellsOfItsHealth: to everybody, for as long as it runs.
func TestConsoleTellsOfItsHealth(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	var sick atomic.Bool
	health, err := answerHealth(ctx, "127.0.0.1:0", func(context.Context) error {
		if sick.Load() {
			return errors.New("it does not answer")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/metrics": http.StatusNotFound} {
		for _, is := range []bool{false, true} {
			if sick.Store(is); is && want == http.StatusOK {
				want = http.StatusServiceUnavailable
			}
			reply, err := client.Get("http://" + health.address + path)
			if err != nil {
				t.Fatal(err)
			}
			if err := reply.Body.Close(); err != nil || reply.StatusCode != want {
				t.Errorf("%s: %s, want %d, %v", path, reply.Status, want, err)
			}
		}
	}
	stop()
	if err := <-health.ended; err != nil {
		t.Error(err)
	}
}

// writeKubeconfig writes one that names a server that is not there.
func writeKubeconfig(t *testing.T, path string) {
	t.Helper()
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// aKubeconfig names an API server that nobody asks.
const aKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
current-context: c
`

// The configuration that packages bring is right as it is, and so is each line of it that is left out by a mark.
func TestPackagedConfigurations(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	kubeconfig := write("kubeconfig", aKubeconfig)
	for _, name := range []string{"agent", "gateway", "operator", "console"} {
		text, err := os.ReadFile("../../playbooks/package/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		brought := strings.ReplaceAll(string(text), "/etc/restripe/kubeconfig", kubeconfig)
		check := func(text string) string {
			var out, messages bytes.Buffer
			execute(t.Context(), []string{"check-config", write(name+".yaml", text)}, strings.NewReader(""), &out, &messages)
			return out.String() + messages.String()
		}
		if said := check(brought); !strings.HasSuffix(said, ": nothing wrong\n") {
			t.Errorf("%s.yaml: %s", name, said)
		}
		var whole strings.Builder
		for line := range strings.Lines(brought) {
			if key, _, is := strings.Cut(strings.TrimPrefix(line, "# "), ": "); is && strings.HasPrefix(line, "# ") && !strings.Contains(key, " ") {
				line = strings.TrimPrefix(line, "# ")
			}
			whole.WriteString(line)
		}
		if said := check(whole.String()); strings.Contains(said, "no such key") || strings.Contains(said, "want ") {
			t.Errorf("%s.yaml with all its keys: %s\n%s", name, said, whole.String())
		}
	}
}

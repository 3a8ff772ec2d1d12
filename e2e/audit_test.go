package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/console/v1/consolev1connect"
)

// peopleFile writes a file of users, whose tokens are their names, with verbs by name.
func peopleFile(t *testing.T, verbs map[string]string) string {
	t.Helper()
	text := "users:\n"
	for name, may := range verbs {
		sum := sha256.Sum256([]byte(name))
		text += fmt.Sprintf("- {name: %s, tokenSHA256: %s, verbs: [%s], objects: [{may: [admin]}]}\n", name, hex.EncodeToString(sum[:]), may)
	}
	return write(t, "users.yaml", text)
}

// figuresFor asks a server for its figures with a token, and returns the status.
func figuresFor(t *testing.T, url, token string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, reply.Body); err != nil {
		t.Error(err)
	}
	if err := reply.Body.Close(); err != nil {
		t.Error(err)
	}
	return reply.StatusCode
}

// TestWhoChangedTheCluster: a gateway keeps a record of what changes the cluster, which outlives a kill, shows that somebody edited
// it, and without which nothing is changed, while objects are served.
func TestWhoChangedTheCluster(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(t.TempDir(), "audit")
	var agents []*daemon
	for i, store := range directories(t, 6) {
		agents = append(agents, serve(t, "agent", "--id", fmt.Sprintf("n%d", i+1), "--store", store))
	}
	users := peopleFile(t, map[string]string{"ada": "get, apply", "eve": "get", "prometheus": "metrics"})
	arguments := []string{
		"gateway", "--catalog", "sqlite:" + filepath.Join(t.TempDir(), "catalog.db"), "--nodes", nodeFile(t, agents...),
		"--classes", write(t, "classes.yaml", faultClasses), "--users", users, "--audit", directory, "--listen", "127.0.0.1:0",
	}
	g := serve(t, arguments...)
	as := func(name string) func(arguments ...string) answer {
		return func(arguments ...string) answer {
			t.Helper()
			return restripeIn(t, []string{"RESTRIPE_GATEWAY=" + g.address, "RESTRIPE_TOKEN=" + name}, strings.NewReader("bytes"), arguments...)
		}
	}
	said := func(a answer, words ...string) {
		t.Helper()
		for _, word := range words {
			if a.code != 0 || !strings.Contains(a.out, word) {
				t.Errorf("exit code %d, no %q in\n%s%s", a.code, word, a.out, a.messages)
			}
		}
	}
	ada, eve := as("ada"), as("eve")
	until(t, "all nodes are up", func() bool { return strings.Count(ada("status", "-o", "wide").out, " up ") >= 6 })
	said(ada("put", "-", "k"), "")
	said(ada("node", "drain", "n1"), "")
	refused(t, eve("node", "undrain", "n1"), "the verb apply on storagebackends is missing")
	said(eve("audit", "list", "-o", "wide"), "ada", "token", "POST /v1/nodes/{id}/drain", "nodes/n1", "done", "eve", "undrain", "refused")
	if listed := eve("audit", "list", "-o", "name"); strings.Count(listed.out, "\n") != 2 {
		t.Errorf("listed are\n%s", listed.out)
	}
	refused(t, as("prometheus")("audit", "list"), "the verb audit on redundancypolicies is missing")
	for token, want := range map[string]int{"": 401, "prometheus": 200, "eve": 200} {
		if status := figuresFor(t, "http://"+g.address, token); status != want {
			t.Errorf("figures for %q: %d, want %d", token, status, want)
		}
	}
	said(restripe(t, "", "audit", "verify", directory), "records 1 to 4", "--sequence 4")
	refused(t, restripe(t, "", append(arguments, "--id", "gw2")...), "another program writes the audit log", directory)

	if err := g.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-g.exited
	g = serve(t, arguments...)
	said(ada("node", "undrain", "n1"), "")
	said(ada("audit", "verify"), "records 1 to 6")
	g.stop(t)

	file := filepath.Join(directory, "audit-000000000001.jsonl")
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, bytes.Replace(text, []byte(`"eve"`), []byte(`"ada"`), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	refused(t, restripe(t, "", "audit", "verify", directory), "line 3", "its hash differs", "begin a new one in another directory")
	refused(t, restripe(t, "", "audit", "verify", file), "line 3")
	refused(t, restripe(t, "", "audit", "verify", t.TempDir()), "there is no audit log")
	g = serve(t, arguments...)
	until(t, "objects are served", func() bool { return ada("get", "k", "-").out == "bytes" })
	refused(t, ada("node", "drain", "n1"), "nothing was changed", "line 3", "move "+directory+" away")
	if messages := g.messages(); !strings.Contains(messages, "nothing can be changed through this gateway") {
		t.Errorf("the log says\n%s", messages)
	}
	g.stop(t)
	if err := os.Rename(directory, directory+".damaged"); err != nil {
		t.Fatal(err)
	}
	g = serve(t, arguments...)
	until(t, "changes are made again", func() bool { return ada("node", "drain", "n1").code == 0 })
	said(ada("audit", "verify"), "as it was written")
}

// TestUpAsksWhoTheyAre: gateway and console of `restripe up --users` ask people who they are; its operator and console are let in.
func TestUpAsksWhoTheyAre(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	users := peopleFile(t, map[string]string{"ada": "get, apply", "prometheus": "metrics"})
	command := exec.Command(program(t), "up", "--agents", "5", "--classes", write(t, "classes.yaml", smallClasses), "--dir", state,
		"--listen", "127.0.0.1:0", "--console", "127.0.0.1:0", "--users", users)
	var messages bytes.Buffer
	command.Stderr = &messages
	printed, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := command.Process.Signal(os.Interrupt); err != nil {
			t.Errorf("interrupting restripe up: %v", err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("restripe up after Ctrl-C: %v\n%s", err, messages.String())
		}
	})
	told := map[string]string{}
	lines := bufio.NewScanner(printed)
	for lines.Scan() && !strings.Contains(lines.Text(), "Ctrl-C") {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export "), "=")
		if words := strings.Fields(name); len(words) > 1 {
			name, value = words[0], words[1]
		}
		told[name] = value
	}
	gateway, console := told["gateway"], told["console"]
	if !strings.HasPrefix(gateway, "https://127.0.0.1:") || told["RESTRIPE_GATEWAY"] != gateway || console == "" {
		t.Fatalf("restripe up tells %v\n%s", told, messages.String())
	}
	in := func(environment ...string) func(arguments ...string) answer {
		return func(arguments ...string) answer {
			t.Helper()
			return restripeIn(t, append(environment, "RESTRIPE_GATEWAY="+gateway), strings.NewReader("bytes"), arguments...)
		}
	}
	believing := "RESTRIPE_CA=" + filepath.Join(state, "pki", "ca", "ca.crt")
	ada := in(believing, "RESTRIPE_TOKEN=ada")
	until(t, "a person stores something", func() bool { return ada("put", "-", "k").code == 0 })
	refused(t, in(believing)("get", "k", "-"), "Authorization: Bearer TOKEN")
	refused(t, in(believing, "RESTRIPE_TOKEN=prometheus")("status"), "the verb get")
	if a := in("RESTRIPE_TLS="+filepath.Join(state, "pki", "admin"))("audit", "list"); a.code != 0 {
		t.Errorf("who runs it: %+v", a)
	}
	for token, want := range map[string]int{"": 401, "ada": 200, "prometheus": 200} {
		if status := figuresFor(t, console, token); status != want {
			t.Errorf("figures of the console for %q: %d, want %d", token, status, want)
		}
	}
	overview := func(token string) (seen *consolev1.Overview, err error) {
		ctx, call := connect.NewClientContext(t.Context())
		call.RequestHeader().Set("Authorization", "Bearer "+token)
		return consolev1connect.NewConsoleClient(http.DefaultClient, console).GetOverview(ctx, &consolev1.GetOverviewRequest{})
	}
	if _, err := overview("wrong"); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("a stranger sees the console: %v", err)
	}
	until(t, "the console sees the object", func() bool {
		seen, err := overview("ada")
		return err == nil && seen.SafetyLine == "The one object can lose 1 node."
	})
	kubeconfig := filepath.Join(state, "control", "kubeconfig")
	until(t, "the operator reaches the gateway", func() bool {
		return strings.Contains(restripe(t, "", "get", "backends", "--kubeconfig", kubeconfig).out, "True")
	})
	if a := restripe(t, "", "audit", "verify", filepath.Join(state, "audit")); a.code != 0 {
		t.Errorf("%+v", a)
	}
}

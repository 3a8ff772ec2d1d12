package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhoIsLetIn runs a cluster of which every part has a certificate, with a gateway that serves the addresses of all machines:
// people, programs and parts of the cluster are let in by what they show, to what they have a right to, and nobody else is.
func TestWhoIsLetIn(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	at := func(name string) string { return filepath.Join(directory, name) }
	must(t, "", "pki", "init", "blue", "--ca", at("ca"))
	must(t, "", "pki", "init", "green", "--ca", at("other"))
	issue := func(authority, role, name string, arguments ...string) string {
		t.Helper()
		into := at(authority + "-" + role + "-" + name)
		must(t, "", append([]string{"pki", "issue", role, name, "--ca", at(authority), "--out", into}, arguments...)...)
		return into
	}
	var agents []*daemon
	for i, store := range directories(t, 6) {
		name := fmt.Sprintf("n%d", i+1)
		agents = append(agents, serve(t, "agent", "--id", name, "--store", store, "--tls", issue("ca", "agent", name)))
	}
	sum := sha256.Sum256([]byte("token"))
	users := at("users.yaml")
	text := `users:
- {name: ada, tokenSHA256: ` + hex.EncodeToString(sum[:]) + `, verbs: [get]}
- name: gallery
  accessKey: {id: GALLERY, secret: 0f8c1b6e2a4d4f0b9e57c3a1d2b4e6f8}
  objects: [{may: [read, write, list], prefix: photos/}]
`
	if err := os.WriteFile(users, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g := serve(t, "gateway", "--catalog", "sqlite:"+at("catalog.db"), "--nodes", nodeFile(t, agents...), "--classes", write(t, "classes.yaml", faultClasses),
		"--tls", issue("ca", "gateway", "gw1", "--host", "127.0.0.1"), "--https", "--users", users, "--listen", "0.0.0.0:0", "--allow-remote")
	port := g.address[strings.LastIndex(g.address, ":"):]
	gateway := "RESTRIPE_GATEWAY=https://127.0.0.1" + port
	believing := "RESTRIPE_CA=" + at("ca/ca.crt")
	as := func(environment ...string) func(arguments ...string) answer {
		return func(arguments ...string) answer {
			t.Helper()
			return restripeIn(t, append(environment, gateway), strings.NewReader("a photo"), arguments...)
		}
	}
	done := func(a answer, words ...string) {
		t.Helper()
		if a.code != 0 {
			t.Errorf("exit code %d\n%s%s", a.code, a.out, a.messages)
		}
		for _, word := range words {
			if !strings.Contains(a.out, word) {
				t.Errorf("no %q in\n%s", word, a.out)
			}
		}
	}
	ada := as(believing, "RESTRIPE_TOKEN=@"+write(t, "token", "token\n"))
	gallery := as(believing, "RESTRIPE_ACCESS_KEY=GALLERY:0f8c1b6e2a4d4f0b9e57c3a1d2b4e6f8")
	admin := as("RESTRIPE_TLS=" + issue("ca", "admin", "eve"))
	until(t, "all nodes are up", func() bool { return strings.Count(admin("status", "-o", "wide").out, " up ") >= 6 })

	done(gallery("put", "-", "photos/a"))
	done(gallery("get", "photos/a", "-"), "a photo")
	done(gallery("list", "photos/"), "photos/a")
	refused(t, gallery("put", "-", "secret"), "gallery may not do this", "write on objects")
	refused(t, gallery("rm", "photos/a"), "delete on objects is missing")
	refused(t, gallery("list"), "list on objects is missing")
	refused(t, gallery("status"), "the verb get on storagebackends is missing")
	done(ada("status"))
	refused(t, ada("get", "photos/a", "-"), "ada may not do this", "read on objects")
	refused(t, ada("node", "drain", "n1"), "the verb apply")
	done(admin("node", "drain", "n1"))
	done(admin("node", "undrain", "n1"))

	refused(t, as(believing)("status"), "Authorization: Bearer TOKEN")
	refused(t, as(believing, "RESTRIPE_TOKEN=wrong")("status"), "not among those of the server")
	refused(t, as("RESTRIPE_TOKEN=token")("status"), "certificate")
	refused(t, as("RESTRIPE_TLS="+issue("ca", "agent", "n9"))("node", "drain", "n1"), "spiffe://blue/agent/n9 may not do this")
	refused(t, as("RESTRIPE_TLS="+issue("other", "admin", "eve"))("status"), `trust domain: "blue"`)
	if said := g.messages(); !strings.Contains(said, "spiffe://blue/admin/eve") || !strings.Contains(said, "/nodes/n1/drain") {
		t.Errorf("the log does not tell who drained a node:\n%s", said)
	}
	refused(t, restripe(t, "", "gateway", "--catalog", "sqlite:"+at("another.db"), "--listen", "0.0.0.0:0", "--allow-remote"), "--users")
	refused(t, restripe(t, "", "agent", "--id", "n9", "--store", "file:"+at("n9"), "--listen", "0.0.0.0:0", "--allow-remote"), "--tls")
}

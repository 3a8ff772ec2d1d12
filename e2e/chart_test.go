package e2e

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/pki"
)

// The chart has copies, as a chart has to bring everything along: they are of what they are copies of.
func TestPackageOfTheChartHasTrueCopies(t *testing.T) {
	copies := map[string]string{"playbooks/chart/files/alerts/alerts.yaml": "playbooks/monitoring/alerts.yaml"}
	for _, name := range []string{"rbac.yaml", "people.yaml", "guard.yaml", "console-rbac.yaml"} {
		copies["playbooks/chart/files/"+name] = "operator/config/" + name
	}
	definitions, err := filepath.Glob("../operator/config/crd/restripe.io_*.yaml")
	if err != nil || len(definitions) == 0 {
		t.Fatal(definitions, err)
	}
	for _, path := range definitions {
		copies["playbooks/chart/crds/"+filepath.Base(path)] = "operator/config/crd/" + filepath.Base(path)
	}
	for copied, of := range copies {
		if contents(t, copied) != contents(t, of) {
			t.Errorf("%s is not as %s: cp %s %s", copied, of, of, copied)
		}
	}
	found, err := filepath.Glob("../playbooks/chart/crds/*")
	if err != nil || len(found) != len(definitions) {
		t.Errorf("the chart has %q, want those of %q", found, definitions)
	}
}

// TestWhoOnlyLooksIsNotLogged: probes of Kubernetes and of balancers connect to an agent and leave, every few seconds for years; who
// says something that is not of the cluster is logged.
func TestWhoOnlyLooksIsNotLogged(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	authority, err := pki.Create(filepath.Join(folder, "ca"), "blue")
	if err != nil {
		t.Fatal(err)
	}
	certificate := filepath.Join(folder, "n1")
	if _, err := authority.Issue(pki.Identity{Role: pki.RoleAgent, Name: "n1"}, nil, 0, certificate); err != nil {
		t.Fatal(err)
	}
	agent := serve(t, "agent", "--id", "n1", "--store", directories(t, 1)[0], "--tls", certificate)
	look := func(says string) {
		t.Helper()
		conn, err := net.Dial("tcp", agent.address)
		if err == nil && says != "" {
			_, err = io.WriteString(conn, says)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	for range 3 {
		look("")
	}
	look("GET / HTTP/1.1\r\n\r\n")
	until(t, "a stranger is logged", func() bool { return strings.Contains(agent.messages(), "a connection was refused") })
	if count := strings.Count(agent.messages(), "a connection was refused"); count != 1 {
		t.Errorf("%d connections were refused, want that of the stranger\n%s", count, agent.messages())
	}
}

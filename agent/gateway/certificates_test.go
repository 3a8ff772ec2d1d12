package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/wire"
)

// certified gives a gateway a certificate.
func certified(own *pki.Source) func(*gateway.Options) {
	return func(o *gateway.Options) { o.Certificates = own }
}

// issued returns a new certificate, whose files are in a directory.
func issued(t *testing.T, authority *pki.Authority, role pki.Role, name, directory string) *pki.Source {
	t.Helper()
	if _, err := authority.Issue(pki.Identity{Role: role, Name: name}, nil, 0, directory); err != nil {
		t.Fatal(err)
	}
	source, err := pki.Load(directory)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func newAuthority(t *testing.T, cluster string) *pki.Authority {
	t.Helper()
	authority, err := pki.Create(filepath.Join(t.TempDir(), "ca"), cluster)
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// A cluster whose parts have certificates does all it does without; nobody else gets anything out of an agent.
func TestNobodyButTheClusterIsObeyed(t *testing.T) {
	authority, directory := newAuthority(t, "blue"), t.TempDir()
	c := newCertifiedCluster(t, 9, authority, directory)
	data := noise(200_000, 1)
	c.put("k", data, api.PutOptions{})
	c.transition(api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: "rs(6,2)"})
	victim := c.blocks("k", 0)[0]
	c.reads = api.RepairNever // the repair is to find it
	c.lose("k", 0)
	if !bytes.Equal(c.get("k"), data) {
		t.Error("what is read is not what was put")
	}
	if result, err := c.gateway.RepairAs(t.Context(), api.RepairRequest{Deep: true}); err != nil || result.GroupsRepaired == 0 {
		t.Errorf("%+v, %v", result, err)
	}
	c.audit()
	load := func(authority *pki.Authority, role pki.Role, name string) *pki.Source {
		t.Helper()
		return issued(t, authority, role, name, filepath.Join(t.TempDir(), name))
	}
	agent, foreign := c.agent(victim.Node), load(newAuthority(t, "green"), pki.RoleGateway, "gw")
	for name, test := range map[string]struct {
		dial wire.Dial // nil: TCP without encryption
		op   wire.Op
		want error
	}{
		"without a certificate":                  {nil, wire.OpDelete, wire.ErrUnreachable},
		"with a node's, as if it were a gateway": {load(authority, pki.RoleAgent, "n1").DialAgent(""), wire.OpDelete, wire.ErrForbidden},
		"with a node's, to learn the key":        {load(authority, pki.RoleAgent, "n1").DialAgent(""), wire.OpHello, wire.ErrForbidden},
		"with a person's":                        {load(authority, pki.RoleAdmin, "eve").DialAgent(""), wire.OpDelete, wire.ErrForbidden},
		"with a console's":                       {load(authority, pki.RoleConsole, "c").DialAgent(""), wire.OpHello, wire.ErrUnreachable},
		"with another cluster's":                 {foreign.DialAgent(""), wire.OpHello, wire.ErrUnreachable},
		"with a person's, to look":               {load(authority, pki.RoleAdmin, "eve").DialAgent(""), wire.OpHello, nil},
	} {
		client := wire.NewClientWith(agent.address, wire.ClientOptions{Dial: test.dial})
		var request any = wire.DeleteRequest{Addresses: []block.Address{victim}}
		if test.op == wire.OpHello {
			request = wire.HelloRequest{}
		}
		_, err := client.Call(t.Context(), test.op, request, nil, nil)
		if test.want == nil && err != nil || !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		if errors.Is(err, wire.ErrForbidden) && !strings.Contains(err.Error(), "may not ask for") {
			t.Errorf("%s: %v does not say what", name, err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	if !bytes.Equal(c.get("k"), data) {
		t.Error("something was deleted")
	}
}

// A certificate that is revoked ends the connections that were made with it, once the agent has the list.
func TestARevokedCertificateEndsItsConnections(t *testing.T) {
	ca, directory := filepath.Join(t.TempDir(), "ca"), t.TempDir()
	authority, err := pki.Create(ca, "blue")
	if err != nil {
		t.Fatal(err)
	}
	c := newCertifiedCluster(t, 1, authority, directory)
	eve := issued(t, authority, pki.RoleAdmin, "eve", filepath.Join(t.TempDir(), "eve"))
	client := wire.NewClientWith(c.agents[0].address, wire.ClientOptions{Dial: eve.DialAgent("n1")})
	ask := func() error {
		_, err := client.Call(t.Context(), wire.OpHello, wire.HelloRequest{}, nil, nil)
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Revoke("admin/eve"); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(ca, pki.RevokedFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(directory, "n1", pki.RevokedFile), list, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.await("the connection is ended", func() bool { return errors.Is(ask(), wire.ErrUnreachable) })
	if err := ask(); !errors.Is(err, wire.ErrUnreachable) {
		t.Errorf("connected anew: %v", err)
	}
	c.noticed("n1", "up") // nobody else is affected
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// Before a certificate expires the doctor says so, and metrics tell when.
func TestCertificatesThatExpireAreTold(t *testing.T) {
	authority, directory := newAuthority(t, "blue"), t.TempDir()
	c := newCertifiedCluster(t, 3, authority, directory)
	told := func() (about []string) {
		findings, err := c.gateway.Doctor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range findings {
			if strings.Contains(finding.Text, "certificate expires") {
				about = append(about, finding.Subject)
			}
		}
		return about
	}
	if about := told(); about != nil {
		t.Errorf("fresh certificates of %v expire", about)
	}
	for _, name := range []string{"n2", "gw"} {
		if _, err := authority.Renew(filepath.Join(directory, name), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	c.agents[1].stop() // what is dialled anew shows its certificate
	var err error
	if c.agents[1].own, err = pki.Load(filepath.Join(directory, "n2")); err != nil {
		t.Fatal(err)
	}
	c.startAgent(c.agents[1])
	c.await("the doctor tells of both", func() bool { return slices.Equal(told(), []string{"gateway gw", "node n2"}) })
	answer := httptest.NewRecorder()
	c.gateway.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, name := range []string{"gateway/gw", "agent/n1", "agent/n2", "agent/n3"} {
		if text := `restripe_certificate_expires_timestamp_seconds{identity="spiffe://blue/` + name + `"} `; !strings.Contains(answer.Body.String(), text) {
			t.Errorf("the metrics do not have %s", text)
		}
	}
}

// Before the authority expires the doctor says so, and afterwards that it has; metrics tell when.
func TestAnAuthorityThatExpiresIsTold(t *testing.T) {
	authority, err := pki.CreateFor(filepath.Join(t.TempDir(), "ca"), "blue", 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	c := newCertifiedCluster(t, 3, authority, directory)
	told := func() (found api.Finding) {
		findings, err := c.gateway.Doctor(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, finding := range findings {
			if finding.Subject == "authority of blue" {
				found = finding
			}
		}
		return found
	}
	soon := told()
	if soon.Severity != "warning" || !strings.Contains(soon.Text, "certificate expires at") ||
		!strings.Contains(soon.Cure, "restripe pki init") {
		t.Errorf("of an authority that expires tomorrow the doctor says %+v", soon)
	}
	answer := httptest.NewRecorder()
	c.gateway.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if !strings.Contains(answer.Body.String(), `restripe_certificate_expires_timestamp_seconds{identity="spiffe://blue"} `) {
		t.Error("the metrics do not tell when the authority expires")
	}

	expired := t.TempDir()
	if _, err := pki.CreateFor(expired, "blue", time.Nanosecond); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(expired, pki.AuthorityFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(directory, "gw", pki.RevokedFile)); err != nil { // which the other authority has signed
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, "gw", pki.AuthorityFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
	c.await("the doctor tells that the authority has expired", func() bool {
		found := told()
		return found.Severity == "error" && strings.Contains(found.Text, "has expired at") && strings.Contains(found.Cure, "restripe pki init")
	})
}

// An agent that has another node's certificate is not taken for the node whose address it has.
func TestANodeIsWhoItsCertificateSays(t *testing.T) {
	authority, directory := newAuthority(t, "blue"), t.TempDir()
	c := newCertifiedCluster(t, 3, authority, directory)
	impostor := c.agents[0]
	impostor.stop()
	impostor.own = c.agents[1].own
	impostor.id = c.agents[1].id // or it does not start
	c.startAgent(impostor)
	c.noticed("n1", "suspect")
}

// Certificates are renewed while clients read and write: none of them notices.
func TestCertificatesAreRenewedUnderLoad(t *testing.T) {
	authority, directory := newAuthority(t, "blue"), t.TempDir()
	c := newCertifiedCluster(t, 10, authority, directory)
	data := noise(100_000, 1)
	var clients errgroup.Group
	var ended atomic.Bool
	for i := range 3 {
		clients.Go(func() error {
			key := fmt.Sprint("k", i)
			for !ended.Load() {
				if _, err := c.gateway.Put(t.Context(), key, bytes.NewReader(data), api.PutOptions{Size: int64(len(data))}); err != nil {
					return err
				}
				var got bytes.Buffer
				reader, err := c.gateway.Objects.Open(t.Context(), key)
				if err == nil {
					err = reader.WriteTo(t.Context(), &got, 0, int64(len(data)))
				}
				if err != nil || !bytes.Equal(got.Bytes(), data) {
					return fmt.Errorf("reading %s: %d bytes, %w", key, got.Len(), err)
				}
			}
			return nil
		})
	}
	late := t.TempDir()
	parts, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		life := time.Duration(round+1) * time.Hour
		var shows time.Time // when the new certificate of n1 expires
		for _, part := range parts {
			renewed, err := authority.Renew(filepath.Join(directory, part.Name()), life)
			if err != nil {
				t.Fatal(err)
			}
			if part.Name() == "n1" {
				shows = renewed.Expires
			}
		}
		// A gateway that starts now connects with what is new, and those that have connections keep them.
		name := fmt.Sprint("late", round)
		if _, err := authority.Issue(pki.Identity{Role: pki.RoleGateway, Name: name}, nil, 0, filepath.Join(late, name)); err != nil {
			t.Fatal(err)
		}
		c.await("agents show their new certificates", func() bool {
			own, err := pki.Load(filepath.Join(late, name))
			if err != nil {
				t.Fatal(err)
			}
			_, g := c.makeGateway(name, certified(own))
			_, failed := g.Put(t.Context(), name, bytes.NewReader(data), api.PutOptions{Size: int64(len(data))})
			if err := g.Close(); err != nil {
				t.Error(err)
			}
			expires, _ := own.Agent("n1")
			return failed == nil && expires.Equal(shows)
		})
	}
	ended.Store(true)
	if err := clients.Wait(); err != nil {
		t.Error(err)
	}
}

package gateway_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/pki"
)

// serveTo serves the gateway of a cluster as options say, until the test ends, and returns its address.
func (c *cluster) serveTo(options ...func(*gateway.Options)) string {
	c.t.Helper()
	c.stopGateway()
	c.catalog, c.gateway = c.makeGateway("gw", options...)
	c.answering()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.gateway.Serve(ctx, listener) }()
	c.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
	})
	return listener.Addr().String()
}

// as returns a client, which is closed when the test ends.
func as(t *testing.T, address string, options client.Options) *client.Client {
	t.Helper()
	c, err := client.NewWith(address, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

const keySecret = "0f8c1b6e2a4d4f0b9e57c3a1d2b4e6f8"

// usersFile writes a file of users: a person who may see and pause, one who may see the audit log, a program that may see figures,
// and one with some objects.
func usersFile(t *testing.T) access.Authority {
	t.Helper()
	hash := func(name string) string {
		sum := sha256.Sum256([]byte("token of " + name))
		return hex.EncodeToString(sum[:])
	}
	text := fmt.Sprintf(`users:
- {name: ada, tokenSHA256: %s, verbs: [get, pause]}
- {name: auditor, tokenSHA256: %s, verbs: [audit]}
- {name: prometheus, tokenSHA256: %s, verbs: [metrics]}
- name: gallery
  accessKey: {id: GALLERY, secret: %s}
  objects:
  - {may: [read, list], prefix: photos/}
  - {may: [write, delete], prefix: photos/, class: odd}
`, hash("ada"), hash("auditor"), hash("prometheus"), keySecret)
	path := filepath.Join(t.TempDir(), "users.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	users, err := access.Users(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return users
}

// Whoever is not known gets nothing, and who is known what they have a right to, and is told what is missing.
func TestWhoMayDoWhat(t *testing.T) {
	c := newCluster(t, 8)
	users := usersFile(t)
	c.put("photos/a", noise(10_000, 1), api.PutOptions{})
	c.put("photos/b", noise(10_000, 2), api.PutOptions{Class: "odd"})
	c.put("secret", noise(10_000, 3), api.PutOptions{})
	address := c.serveTo(func(o *gateway.Options) { o.Users = users })
	nobody := as(t, address, client.Options{})
	ada := as(t, address, client.Options{Token: "token of ada"})
	gallery := as(t, address, client.Options{KeyID: "GALLERY", Secret: keySecret})
	ctx := t.Context()
	get := func(who *client.Client, key string) error {
		content, err := who.Get(ctx, key, client.Range{})
		if err != nil {
			return err
		}
		return content.Close()
	}
	put := func(who *client.Client, key, class string) error {
		_, err := who.Put(ctx, key, bytes.NewReader(noise(100, 4)), client.PutOptions{Class: class})
		return err
	}
	status := func(who *client.Client) error {
		_, err := who.StatusBrief(ctx)
		return err
	}
	down := func(who *client.Client) error {
		_, err := who.DownNode(ctx, "n1")
		return err
	}
	pause := func(who *client.Client) error {
		_, err := who.PauseRepair(ctx)
		return err
	}
	forger := as(t, address, client.Options{KeyID: "GALLERY", Secret: "x"})
	for _, test := range []struct {
		name string
		err  error
		want error
		says string
	}{
		{"nobody reads", get(nobody, "photos/a"), api.ErrUnauthenticated, "Bearer TOKEN"},
		{"nobody sees", status(nobody), api.ErrUnauthenticated, "Bearer TOKEN"},
		{"a wrong token", status(as(t, address, client.Options{Token: "x"})), api.ErrUnauthenticated, "not among those"},
		{"a wrong secret", get(forger, "photos/a"), api.ErrUnauthenticated, "secret"},
		{"a person sees", status(ada), nil, ""},
		{"a person pauses", pause(ada), nil, ""},
		{"a person changes nodes", down(ada), api.ErrForbidden, "ada may not do this: the verb apply on storagebackends is missing"},
		{"a person reads", get(ada, "photos/a"), api.ErrForbidden, "read on objects is missing"},
		{"a program reads", get(gallery, "photos/a"), nil, ""},
		{"a program reads elsewhere", get(gallery, "secret"), api.ErrForbidden, `"secret"`},
		{"a program sees", status(gallery), api.ErrForbidden, "the verb get"},
		{"a program writes its class", put(gallery, "photos/new", "odd"), nil, ""},
		{"a program writes another class", put(gallery, "photos/new", ""), api.ErrForbidden, "class default"},
		{"a program overwrites another class", put(gallery, "photos/a", "odd"), api.ErrForbidden, "class default"},
		{"a program deletes", gallery.Delete(ctx, "photos/b"), nil, ""},
		{"a program deletes another class", gallery.Delete(ctx, "photos/a"), api.ErrForbidden, "class default"},
		{"a program deletes elsewhere", gallery.Delete(ctx, "secret"), api.ErrForbidden, "delete on objects"},
	} {
		if test.want == nil && test.err == nil {
			continue
		}
		if test.want == nil || !errors.Is(test.err, test.want) || !strings.Contains(test.err.Error(), test.says) {
			t.Errorf("%s: %v, want %v with %q", test.name, test.err, test.want, test.says)
		}
	}
	if page, err := gallery.List(ctx, "photos/", "", 10); err != nil || len(page.Objects) != 2 {
		t.Errorf("its own listing: %+v, %v", page, err)
	}
	if _, err := gallery.List(ctx, "", "", 10); !errors.Is(err, api.ErrForbidden) {
		t.Errorf("a listing of all: %v", err)
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 401, "/v1/objects/secret": 401} {
		reply, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		asked := reply.Header.Get("WWW-Authenticate") != ""
		if err := reply.Body.Close(); err != nil || reply.StatusCode != want || asked != (want == 401) {
			t.Errorf("%s: %s, %v", path, reply.Status, err)
		}
	}
}

// shows has a client show a certificate, and believe in gateways of its cluster.
func shows(own *pki.Source) client.Options {
	return client.Options{TLS: own.Client("", pki.RoleGateway)}
}

// Over TLS the parts of the cluster are known by their certificates, and others by what they send.
func TestPartsOfTheClusterAtTheGateway(t *testing.T) {
	ca, directory := filepath.Join(t.TempDir(), "ca"), t.TempDir()
	authority, err := pki.Create(ca, "blue")
	if err != nil {
		t.Fatal(err)
	}
	c := newCertifiedCluster(t, 8, authority, directory)
	users := usersFile(t)
	own := issued(t, authority, pki.RoleGateway, "gw", filepath.Join(directory, "gw"))
	address := "https://" + c.serveTo(certified(own), func(o *gateway.Options) { o.Users, o.HTTPS = users, true })
	certificate := func(authority *pki.Authority, role pki.Role) client.Options {
		return shows(issued(t, authority, role, "x", filepath.Join(t.TempDir(), "x")))
	}
	put := func(o client.Options) error {
		_, err := as(t, address, o).Put(t.Context(), "k", bytes.NewReader(noise(100, 4)), client.PutOptions{})
		return err
	}
	declare := func(o client.Options) error {
		_, err := as(t, address, o).PauseRepair(t.Context())
		return err
	}
	for _, test := range []struct {
		name string
		err  error
		want error
	}{
		{"an administrator stores", put(certificate(authority, pki.RoleAdmin)), nil},
		{"an administrator changes", declare(certificate(authority, pki.RoleAdmin)), nil},
		{"the operator changes", declare(certificate(authority, pki.RoleOperator)), nil},
		{"the operator stores", put(certificate(authority, pki.RoleOperator)), api.ErrForbidden},
		{"a node changes", declare(certificate(authority, pki.RoleAgent)), api.ErrForbidden},
		{"a member of the catalog changes", declare(certificate(authority, pki.RoleCatalog)), api.ErrForbidden},
		{"a node stores", put(certificate(authority, pki.RoleAgent)), api.ErrForbidden},
		{"a stranger changes", declare(certificate(newAuthority(t, "green"), pki.RoleAdmin)), client.ErrUnreachable},
		{"whoever does not believe the authority", put(client.Options{Token: "token of ada"}), client.ErrUnreachable},
	} {
		if test.want == nil && test.err != nil || !errors.Is(test.err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, test.err, test.want)
		}
	}
	// A connection that is there already ends with the right to it.
	eve := as(t, address, shows(issued(t, authority, pki.RoleAdmin, "eve", filepath.Join(t.TempDir(), "eve"))))
	if _, err := eve.PauseRepair(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := authority.Revoke("admin/eve"); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(ca, pki.RevokedFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(directory, "gw", pki.RevokedFile), list, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.await("a revoked certificate is refused", func() bool {
		_, err := eve.PauseRepair(t.Context())
		return errors.Is(err, api.ErrUnauthenticated) && strings.Contains(err.Error(), "revoked")
	})
}

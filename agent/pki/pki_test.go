package pki

import (
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/atomicfile"
)

// office is an authority and what it has issued.
type office struct {
	t *testing.T
	*Authority
}

func newOffice(t *testing.T, cluster string) *office {
	t.Helper()
	authority, err := Create(filepath.Join(t.TempDir(), "ca"), cluster)
	if err != nil {
		t.Fatal(err)
	}
	return &office{t, authority}
}

// issue returns the directory of a certificate.
func (o *office) issue(role Role, name string, hosts ...string) string {
	o.t.Helper()
	directory := filepath.Join(o.t.TempDir(), string(role)+"-"+name)
	if _, err := o.Issue(Identity{Role: role, Name: name}, hosts, 0, directory); err != nil {
		o.t.Fatal(err)
	}
	return directory
}

func load(t *testing.T, directory string) *Source {
	t.Helper()
	source, err := Load(directory)
	if err != nil {
		t.Fatal(err)
	}
	source.every = 0
	return source
}

// meet has a client and a server shake hands over a connection and exchange a byte. It returns what each of them has against the
// other.
func meet(t *testing.T, server, client *tls.Config) (atServer, atClient error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	}()
	exchange := func(conn *tls.Conn) error {
		err := conn.SetDeadline(time.Now().Add(time.Minute))
		if err == nil {
			err = conn.HandshakeContext(t.Context())
		}
		if err == nil {
			_, err = conn.Write([]byte{1})
		}
		if err == nil {
			_, err = io.ReadFull(conn, make([]byte, 1))
		}
		return errors.Join(err, conn.NetConn().Close())
	}
	var sides errgroup.Group
	sides.Go(func() error {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		atServer = exchange(tls.Server(conn, server))
		return nil
	})
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	atClient = exchange(tls.Client(conn, client))
	if err := sides.Wait(); err != nil {
		t.Fatal(err)
	}
	return atServer, atClient
}

func TestWhoIsLetIn(t *testing.T) {
	own, other := newOffice(t, "blue"), newOffice(t, "green")
	same := newOffice(t, "blue") // another authority that uses the name
	server := load(t, own.issue(RoleAgent, "n1"))
	config := server.Server(RoleGateway, RoleAgent)
	gateway := own.issue(RoleGateway, "gw1")
	expired := own.issue(RoleGateway, "gw2")
	own.now = func() time.Time { return time.Now().Add(-2 * DefaultLife) }
	if _, err := own.Renew(expired, DefaultLife); err != nil {
		t.Fatal(err)
	}
	own.now = time.Now
	client := func(directory string) *tls.Config {
		config := load(t, directory).Client("n1", RoleAgent)
		config.VerifyPeerCertificate = nil // it talks to anybody, so that the server has to be the one who refuses
		return config
	}
	for name, test := range map[string]struct {
		client   *tls.Config
		atServer string // empty: it is let in
	}{
		"a gateway":                       {client(gateway), ""},
		"another agent":                   {client(own.issue(RoleAgent, "n2")), ""},
		"a console":                       {client(own.issue(RoleConsole, "c")), "spiffe://blue/console/c has none of the roles [gateway agent]"},
		"a gateway of another cluster":    {client(other.issue(RoleGateway, "gw1")), "green"},
		"one that another authority made": {client(same.issue(RoleGateway, "gw1")), "certificate signed by unknown authority"},
		"one that has expired":            {client(expired), "expired"},
		"nobody":                          {&tls.Config{InsecureSkipVerify: true}, "didn't provide a certificate"},
	} {
		atServer, atClient := meet(t, config, test.client)
		if (test.atServer == "") != (atServer == nil) || test.atServer != "" && !strings.Contains(atServer.Error(), test.atServer) {
			t.Errorf("%s: the server says %v, want %q", name, atServer, test.atServer)
		}
		if (test.atServer == "") != (atClient == nil) {
			t.Errorf("%s: the client says %v", name, atClient)
		}
	}
	// The other way round: who listens must be who is asked for.
	node := load(t, gateway).Client("n1", RoleAgent)
	for name, test := range map[string]struct{ directory, atClient string }{
		"another node":       {own.issue(RoleAgent, "n2"), "spiffe://blue/agent/n2 is not n1"},
		"no agent":           {own.issue(RoleGateway, "n1"), "has none of the roles [agent]"},
		"of another cluster": {other.issue(RoleAgent, "n1"), "green"},
	} {
		_, atClient := meet(t, load(t, test.directory).Server(Roles...), node)
		if atClient == nil || !strings.Contains(atClient.Error(), test.atClient) {
			t.Errorf("%s listens, and the client says %v, want %q", name, atClient, test.atClient)
		}
	}
}

func TestRevoked(t *testing.T) {
	o := newOffice(t, "blue")
	agent := o.issue(RoleAgent, "n1")
	server := load(t, agent)
	first, second, third := o.issue(RoleGateway, "gw1"), o.issue(RoleGateway, "gw1"), o.issue(RoleGateway, "gw2")
	let := func(directory string) bool {
		atServer, _ := meet(t, server.Server(RoleGateway), load(t, directory).Client("", RoleAgent))
		if atServer != nil && !strings.Contains(atServer.Error(), "is revoked") {
			t.Error(atServer)
		}
		return atServer == nil
	}
	tell := func() { // the list is put beside the certificate, as by hand
		text, err := os.ReadFile(filepath.Join(o.directory, RevokedFile))
		if err == nil {
			err = atomicfile.Write(filepath.Join(agent, RevokedFile), text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !let(first) || !let(second) || !let(third) {
		t.Error("nothing is revoked, and somebody is refused")
	}
	list, err := o.List()
	if err != nil || len(list) != 4 {
		t.Fatalf("%+v, %v", list, err)
	}
	if count, err := o.Revoke(list[1].Serial); count != 1 || err != nil {
		t.Errorf("%d, %v", count, err)
	}
	if tell(); let(first) || !let(second) || !let(third) {
		t.Error("one serial number is revoked, and not it alone is refused")
	}
	if count, err := o.Revoke("gateway/gw1"); count != 1 || err != nil {
		t.Errorf("%d, %v", count, err)
	}
	if tell(); let(first) || let(second) || !let(third) {
		t.Error("gw1 is revoked, and not it alone is refused")
	}
	for _, which := range []string{"gateway/gw1", "gw2", "77", ""} {
		if count, err := o.Revoke(which); count != 0 || err == nil {
			t.Errorf("revoking %q: %d, %v", which, count, err)
		}
	}
	// What is issued later has the list from the beginning.
	if late := load(t, o.issue(RoleAgent, "n2")); len(late.current().revoked) != 2 {
		t.Errorf("%v", late.current().revoked)
	}
	// A list that nobody signed revokes nothing, and is no list.
	foreign := newOffice(t, "blue")
	foreign.issue(RoleGateway, "gw9")
	if _, err := foreign.Revoke("gateway/gw9"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(foreign.directory, RevokedFile))
	if err == nil {
		err = atomicfile.Write(filepath.Join(agent, RevokedFile), text)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load(agent); err == nil || !strings.Contains(err.Error(), "signed by none") {
		t.Errorf("%v", err)
	}
}

// Certificates are renewed again and again while others connect: nobody is refused, and the new ones are used.
func TestRenewingUnderLoad(t *testing.T) {
	o := newOffice(t, "blue")
	agent, gateway := o.issue(RoleAgent, "n1"), o.issue(RoleGateway, "gw1")
	server, client := load(t, agent), load(t, gateway)
	before := server.serial()
	var load errgroup.Group
	var ended atomic.Bool
	for range 2 {
		load.Go(func() error {
			for !ended.Load() {
				if atServer, atClient := meet(t, server.Server(RoleGateway), client.Client("n1", RoleAgent)); atServer != nil || atClient != nil {
					return errors.Join(atServer, atClient)
				}
			}
			return nil
		})
	}
	for range 50 {
		for _, directory := range []string{agent, gateway} {
			if _, err := o.Renew(directory, 0); err != nil {
				t.Error(err)
			}
		}
	}
	ended.Store(true)
	if err := load.Wait(); err != nil {
		t.Error(err)
	}
	if server.serial() == before {
		t.Error("the certificate is still the one before")
	}
}

// Files that do not belong together are not taken, and it is told why.
func TestFilesThatAreWrongAreTold(t *testing.T) {
	o := newOffice(t, "blue")
	directory := o.issue(RoleAgent, "n1")
	source := load(t, directory)
	before := source.serial()
	key := filepath.Join(directory, KeyFile)
	right, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(filepath.Join(o.issue(RoleAgent, "n2"), KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(key, other); err != nil {
		t.Fatal(err)
	}
	if err := source.Err(); err == nil || !strings.Contains(err.Error(), directory) || source.serial() != before {
		t.Errorf("with the key of another: %v", err)
	}
	if err := atomicfile.Write(key, right); err != nil {
		t.Fatal(err)
	}
	if err := source.Err(); err != nil || source.serial() != before {
		t.Errorf("with its own again: %v", err)
	}
}

// serial returns the serial number of the certificate in use.
func (s *Source) serial() string {
	return s.current().own.Certificates[0].SerialNumber.String()
}

// Nobody whom an authority has certified is believed once it has expired, and who refuses says which authority that was and what to do. It
// signs nothing more; another one does, and then all is well again.
func TestAnAuthorityThatHasExpired(t *testing.T) {
	before := time.Now().Add(-2 * time.Hour)
	authority, err := create(filepath.Join(t.TempDir(), "ca"), "blue", time.Hour, before)
	if err != nil {
		t.Fatal(err)
	}
	old := &office{t, authority}
	old.now = func() time.Time { return before }
	agent, gateway := old.issue(RoleAgent, "n1"), old.issue(RoleGateway, "gw1")
	old.now = time.Now
	at := before.Add(time.Hour).UTC().Format(time.RFC3339)
	says := func(what, where string, err error) {
		t.Helper()
		if !errors.Is(err, ErrAuthorityExpired) || !strings.Contains(err.Error(), where+", at "+at) ||
			!strings.Contains(err.Error(), "restripe pki init") {
			t.Errorf("%s: %v, want that %s has expired at %s", what, err, where, at)
		}
	}
	_, err = old.Issue(Identity{Role: RoleAgent, Name: "n2"}, nil, 0, t.TempDir())
	says("issuing", authority.directory, err)
	_, err = old.Renew(agent, DefaultLife)
	says("renewing", authority.directory, err)
	server, client := load(t, agent), load(t, gateway)
	if !server.Expires().After(time.Now()) {
		t.Fatal("the certificate itself has expired, which is another fault")
	}
	says("the certificate", filepath.Join(agent, AuthorityFile), server.CheckAuthority())
	atServer, atClient := meet(t, server.Server(RoleGateway), client.Client("n1", RoleAgent))
	says("who dials", filepath.Join(gateway, AuthorityFile), atClient)
	if atServer == nil {
		t.Error("the server has talked to a client that refused it")
	}
	trusting := client.Client("n1", RoleAgent)
	trusting.VerifyPeerCertificate = nil // so that the server has to be the one who refuses
	atServer, _ = meet(t, server.Server(RoleGateway), trusting)
	says("who listens", filepath.Join(agent, AuthorityFile), atServer)
	text, err := os.ReadFile(filepath.Join(agent, AuthorityFile))
	if err != nil {
		t.Fatal(err)
	}
	says("a file of authorities", "some.crt", CheckAuthorities("some.crt", text))

	renewed := newOffice(t, "blue")
	for _, directory := range []string{agent, gateway} {
		if _, err := renewed.Renew(directory, DefaultLife); err != nil {
			t.Fatal(err)
		}
	}
	if atServer, atClient = meet(t, server.Server(RoleGateway), client.Client("n1", RoleAgent)); atServer != nil || atClient != nil {
		t.Errorf("with the new authority the server says %v and the client %v", atServer, atClient)
	}
	if err := server.CheckAuthority(); err != nil {
		t.Error(err)
	}
	both, err := os.ReadFile(filepath.Join(agent, AuthorityFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckAuthorities("both.crt", append(both, text...)); err != nil {
		t.Errorf("one of two authorities is valid: %v", err)
	}
}

func TestAuthority(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "ca")
	if _, err := Open(directory); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "restripe pki init") {
		t.Errorf("opening none: %v", err)
	}
	for _, cluster := range []string{"", "Blue", "a/b", "a b"} {
		if _, err := Create(directory, cluster); err == nil {
			t.Errorf("a cluster named %q", cluster)
		}
	}
	authority, err := Create(directory, "blue-1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(directory, "blue-1"); err == nil || !strings.Contains(err.Error(), "there is an authority") {
		t.Errorf("a second one: %v", err)
	}
	for _, wrong := range []Identity{
		{Role: RoleAgent}, {Role: "king", Name: "n1"}, {Role: RoleAgent, Name: "a/b"}, {Role: RoleAgent, Name: ".."},
	} {
		if _, err := authority.Issue(wrong, nil, 0, t.TempDir()); err == nil {
			t.Errorf("issued to %+v", wrong)
		}
	}
	into := filepath.Join(t.TempDir(), "n1")
	issued, err := authority.Issue(Identity{Role: RoleAgent, Name: "n1"}, []string{"host", "10.0.0.1", "::1"}, time.Hour, into)
	if err != nil || issued.Identity.String() != "spiffe://blue-1/agent/n1" {
		t.Fatalf("%+v, %v", issued, err)
	}
	again, err := Open(directory)
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := again.Renew(into, 0)
	if err != nil || strings.Join(renewed.Hosts, " ") != "host 10.0.0.1 ::1" || renewed.Serial == issued.Serial {
		t.Errorf("%+v, %v", renewed, err)
	}
	if _, err := newOffice(t, "green").Renew(into, 0); err == nil || !strings.Contains(err.Error(), "is of cluster blue-1") {
		t.Errorf("renewed by another authority: %v", err)
	}
	source := load(t, into)
	if source.Identity() != (Identity{Cluster: "blue-1", Role: RoleAgent, Name: "n1"}) || !source.Expires().Equal(renewed.Expires) {
		t.Errorf("%v until %v, want %v", source.Identity(), source.Expires(), renewed.Expires)
	}
	for _, folder := range []string{directory, into} {
		if err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v", path, info.Mode())
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
	// What has expired is forgotten.
	again.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	if list, err := again.List(); err != nil || len(list) != 1 || list[0].Serial != renewed.Serial {
		t.Errorf("%+v, %v", list, err)
	}
}

// Commands that issue at the same moment wait for one another, as several processes do: each opens the authority for itself.
func TestTwoIssueAtOnce(t *testing.T) {
	authority := newOffice(t, "blue")
	into := filepath.Join(t.TempDir(), "n1")
	const atOnce, each = 4, 8
	var all errgroup.Group
	for range atOnce {
		all.Go(func() error {
			own, err := Open(authority.directory)
			if err != nil {
				return err
			}
			for range each {
				if _, err := own.Issue(Identity{Role: RoleAgent, Name: "n1"}, nil, 0, into); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	load(t, into) // fails for a key beside another's certificate
	list, err := authority.List()
	if err != nil {
		t.Fatal(err)
	}
	serials := map[string]bool{}
	for _, one := range list {
		serials[one.Serial] = true
	}
	if len(list) != atOnce*each || len(serials) != atOnce*each {
		t.Errorf("%d certificates with %d serial numbers are recorded, want %d", len(list), len(serials), atOnce*each)
	}
}

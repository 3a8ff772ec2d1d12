package redis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

func TestCredentialsAreChecked(t *testing.T) {
	process := server.Redis(t, "--requirepass", "right")
	for _, c := range []struct {
		username, password string
		want               error
	}{{"", "right", nil}, {"default", "right", nil}, {"", "wrong", store.ErrAuth}, {"nobody", "right", store.ErrAuth}, {"", "", store.ErrAuth}} {
		s, err := Open(t.Context(), Options{Address: process.Addr, Username: c.username, Password: c.password})
		if !errors.Is(err, c.want) {
			t.Errorf("user %q, password %q: %v, want %v", c.username, c.password, err, c.want)
		}
		if err == nil {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestDatabasesAreApart(t *testing.T) {
	process := server.Redis(t)
	first := open(t, process)
	defer first.Close()
	second, err := Open(t.Context(), Options{Address: process.Addr, Database: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := first.Create(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	if _, err := second.ReadAt(t.Context(), "k", make([]byte, 1), 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("database 5 has a key of database 0: %v", err)
	}
}

func TestInfoTellsWhatTheServerWillDoToTheData(t *testing.T) {
	for _, c := range []struct {
		args    []string
		durable bool
		says    []string
	}{
		{[]string{"--appendonly", "yes", "--appendfsync", "always"}, true, nil},
		{[]string{"--appendonly", "yes"}, false, []string{"last second", "appendfsync everysec"}},
		{nil, false, []string{"appendonly no"}},
		{[]string{"--appendonly", "yes", "--appendfsync", "always", "--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"}, true,
			[]string{"52428800", "allkeys-lru", "noeviction"}},
	} {
		s := open(t, server.Redis(t, c.args...))
		info, err := s.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.Durable != c.durable {
			t.Errorf("%q: durable %v, want %v", c.args, info.Durable, c.durable)
		}
		warnings := strings.Join(info.Warnings, "\n")
		if len(c.says) == 0 && warnings != "" {
			t.Errorf("%q: warnings %q, want none", c.args, warnings)
		}
		for _, part := range c.says {
			if !strings.Contains(warnings, part) {
				t.Errorf("%q: warnings %q do not say %q", c.args, warnings, part)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestInfoDoesWithoutCONFIG(t *testing.T) {
	s := open(t, server.Redis(t, "--appendonly", "yes", "--appendfsync", "always", "--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru",
		"--rename-command", "CONFIG", ""))
	defer s.Close()
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	warnings := strings.Join(info.Warnings, "\n")
	if info.Durable || info.CapacityBytes != 50<<20 || !strings.Contains(warnings, "allkeys-lru") || !strings.Contains(warnings, "appendfsync unknown") {
		t.Errorf("info of a server without CONFIG: %+v", info)
	}
}

func TestEvictionIsReported(t *testing.T) {
	s := open(t, server.Redis(t, "--maxmemory", "4mb", "--maxmemory-policy", "allkeys-lru"))
	defer s.Close()
	for i := range 100 {
		if err := s.Create(t.Context(), fmt.Sprint(i), make([]byte, 100_000)); err != nil {
			t.Fatal(err)
		}
	}
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if warnings := strings.Join(info.Warnings, "\n"); !strings.Contains(warnings, "has dropped") {
		t.Errorf("warnings %q do not say that keys were dropped", warnings)
	}
}

func TestAReplicaRefusesWritesAndSaysWhatItIs(t *testing.T) {
	primary := server.Redis(t)
	host, port, err := net.SplitHostPort(primary.Addr)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, server.Redis(t, "--replicaof", host+" "+port))
	defer s.Close()
	if err := s.Create(t.Context(), "k", nil); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("creating on a replica: %v, want %v", err, store.ErrReadOnly)
	}
	info, err := s.Info(t.Context())
	if err != nil || !strings.Contains(strings.Join(info.Warnings, "\n"), "is a replica") {
		t.Errorf("info of a replica: %+v, %v", info, err)
	}
}

func TestAKeyOfAnotherTypeIsCorruptAndNeverOverwritten(t *testing.T) {
	s := open(t, server.Redis(t))
	defer s.Close()
	push := s.client.B().Rpush().Key(keyPrefix + "k").Element("foreign").Build()
	if err := s.client.Do(t.Context(), push).Error(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReadAt(t.Context(), "k", make([]byte, 1), 0); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("reading a list: %v, want %v", err, store.ErrCorrupt)
	}
	if err := s.Create(t.Context(), "k", nil); !errors.Is(err, store.ErrExists) {
		t.Errorf("creating over a list: %v, want %v", err, store.ErrExists)
	}
}

func TestValuesOverTheLimitAreRefused(t *testing.T) {
	s := open(t, server.Redis(t))
	defer s.Close()
	if err := s.Create(t.Context(), "k", make([]byte, valueLimit+1)); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("creating %d bytes: %v, want %v", valueLimit+1, err, store.ErrTooLarge)
	}
}

func TestASilentServerIsDown(t *testing.T) {
	process := server.Redis(t)
	s, err := Open(t.Context(), Options{Address: process.Addr, Timeout: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Create(t.Context(), "k", []byte("value")); err != nil {
		t.Fatal(err)
	}
	process.Suspend()
	if _, err := s.ReadAt(t.Context(), "k", make([]byte, 5), 0); !errors.Is(err, store.ErrDown) {
		t.Errorf("reading from a suspended server: %v, want %v", err, store.ErrDown)
	}
	process.Resume()
	p := make([]byte, 5)
	count, err := s.ReadAt(t.Context(), "k", p, 0)
	for deadline := time.Now().Add(time.Minute); errors.Is(err, store.ErrDown) && time.Now().Before(deadline); { // a busy machine answers late
		count, err = s.ReadAt(t.Context(), "k", p, 0)
	}
	if err != nil || string(p[:count]) != "value" {
		t.Errorf("reading after the server resumed: %q, %v", p[:count], err)
	}
}

func TestTLSIsCheckedAgainstTheAuthority(t *testing.T) {
	certificate, authorities := selfSigned(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	if err := errors.Join(err, listener.Close()); err != nil {
		t.Fatal(err)
	}
	server.Redis(t, "--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", certificate, "--tls-auth-clients", "no")
	s, err := Open(t.Context(), Options{Address: address, TLS: &tls.Config{RootCAs: authorities}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Create(t.Context(), "k", []byte("v")); err != nil {
		t.Error(err)
	}
	if info, err := s.Info(t.Context()); err != nil || !strings.HasPrefix(info.Location, "rediss://") {
		t.Errorf("info over TLS: %+v, %v", info, err)
	}
	if s, err := Open(t.Context(), Options{Address: address, TLS: &tls.Config{}}); err == nil {
		s.Close()
		t.Error("a server whose certificate nobody vouches for is trusted")
	}
}

// selfSigned writes a certificate for 127.0.0.1 and its key into one file, and returns the pool that trusts it.
func selfSigned(t *testing.T) (path string, authorities *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	encodedKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	path = t.TempDir() + "/server.pem"
	content := append(authority, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encodedKey})...)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	authorities = x509.NewCertPool()
	authorities.AppendCertsFromPEM(authority)
	return path, authorities
}

func FuzzInfo(f *testing.F) {
	f.Add("# Memory\r\nused_memory:1000\r\nmaxmemory:5\r\nmaxmemory_policy:allkeys-lru\r\nrole:slave\r\naof_enabled:1\r\n")
	f.Add("maxmemory:-3\nused_memory:x\nevicted_keys:7")
	f.Fuzz(func(t *testing.T, answer string) {
		info := describe(parseInfo(answer), "redis://host:1/0")
		if info.Durable {
			t.Error("durable, though INFO alone cannot tell")
		}
		if info.CapacityBytes < 0 || info.UsedBytes < 0 {
			t.Errorf("negative sizes: %+v", info)
		}
		if len(info.Warnings) == 0 {
			t.Error("no warning of a server that may lose data")
		}
	})
}

func TestPatternsMatchThePrefixAlone(t *testing.T) {
	if got, want := escapePattern(`a*b?[c]^-\d/%`), `a\*b\?\[c\]\^\-\\d/%`; got != want {
		t.Errorf("escaped %q, want %q", got, want)
	}
}

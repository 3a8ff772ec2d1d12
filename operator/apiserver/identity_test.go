package apiserver

import (
	"net"
	"os"
	"testing"
	"time"
)

func TestCertificateIsReplacedInTime(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	hosts := []string{"localhost", "127.0.0.1"}
	certificate, key, err := newCertificate(hosts, now)
	if err != nil {
		t.Fatal(err)
	}
	_, otherKey, err := newCertificate(hosts, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what  string
		key   []byte
		hosts []string
		now   time.Time
		good  bool
	}{
		{"new", key, hosts, now, true},
		{"with more than a year left", key, hosts, now.Add(certificateLifetime - certificateReserve - time.Hour), true},
		{"with less than a year left", key, hosts, now.Add(certificateLifetime - certificateReserve + time.Hour), false},
		{"before its time", key, hosts, now.Add(-24 * time.Hour), false},
		{"for another address", key, []string{"127.0.0.1", "192.0.2.1"}, now, false},
		{"with the key of another", otherKey, hosts, now, false},
		{"without a key", nil, hosts, now, false},
	} {
		if good := goodFor(certificate, test.key, test.hosts, test.now); good != test.good {
			t.Errorf("a certificate %s: good is %v", test.what, good)
		}
	}
}

func TestIdentityStaysUntilItIsNoLongerGood(t *testing.T) {
	d := &directory{path: t.TempDir()}
	identify := func(address string) *identity {
		i, err := d.identity(&net.TCPAddr{IP: net.ParseIP(address)})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	first, again := identify("127.0.0.1"), identify("127.0.0.1")
	if first.token != again.token || string(first.certificate) != string(again.certificate) {
		t.Error("asked twice, two identities")
	}
	other := identify("127.0.0.2")
	if other.token != first.token || string(other.certificate) == string(first.certificate) {
		t.Error("another address needs another certificate, and the token stays")
	}
	if err := os.Remove(d.file("key.pem")); err != nil {
		t.Fatal(err)
	}
	if last := identify("127.0.0.2"); string(last.certificate) == string(other.certificate) {
		t.Error("a certificate without its key stays")
	}
}

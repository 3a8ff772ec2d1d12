package etcd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/restripe/restripe/agent/catalog/etcd"
)

// memberVariable has the settings of a member that this program is, as a child of the tests.
const memberVariable = "RESTRIPE_TEST_ETCD"

// settings of a member; addresses are host:port.
type settings struct {
	Name, Directory, Client, Peer, Cluster string
	Operations, Bytes                      uint
	Quota                                  int64
	Secure                                 bool
	Certificates                           string // folder; the member serves with those and lets nobody in but whom its authority knows
}

func TestMain(m *testing.M) {
	if text := os.Getenv(memberVariable); text != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the tests, however they do
			os.Exit(1)
		}()
		fmt.Fprintln(os.Stderr, serve(text))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serve is a member until it is killed. What it wrote outlives it without being synced: only the process dies.
func serve(text string) error {
	var s settings
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return fmt.Errorf("reading the settings: %w", err)
	}
	c := embed.NewConfig()
	c.BcryptCost = 4 // the least: under the race detector a look at a password takes seconds
	c.Name, c.Dir, c.InitialCluster = s.Name, s.Directory, s.Cluster
	c.ListenClientUrls = []url.URL{{Scheme: "http", Host: s.Client}}
	if s.Secure {
		c.ListenClientUrls[0].Scheme, c.ClientAutoTLS, c.SelfSignedCertValidity = "https", true, 1
	}
	if s.Certificates != "" {
		c.ListenClientUrls[0].Scheme = "https"
		c.ClientTLSInfo.CertFile, c.ClientTLSInfo.KeyFile = filepath.Join(s.Certificates, "tls.crt"), filepath.Join(s.Certificates, "tls.key")
		c.ClientTLSInfo.TrustedCAFile, c.ClientTLSInfo.ClientCertAuth = filepath.Join(s.Certificates, "ca.crt"), true
	}
	c.ListenPeerUrls = []url.URL{{Scheme: "http", Host: s.Peer}}
	c.AdvertiseClientUrls, c.AdvertisePeerUrls = c.ListenClientUrls, c.ListenPeerUrls
	c.MaxTxnOps, c.MaxRequestBytes, c.QuotaBackendBytes = s.Operations, s.Bytes, s.Quota
	c.UnsafeNoFsync, c.TickMs, c.ElectionMs = true, 100, 2000
	c.LogLevel, c.Logger, c.LogOutputs = "warn", "zap", []string{"stderr"}
	member, err := embed.StartEtcd(c)
	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	return <-member.Err()
}

// member is a child that is one.
type member struct {
	settings settings
	process  *exec.Cmd
	runs     bool
}

func (m *member) run(t *testing.T) {
	t.Helper()
	text, err := json.Marshal(m.settings)
	if err != nil {
		t.Fatal(err)
	}
	m.process = exec.Command(os.Args[0])
	m.process.Env = append(os.Environ(), memberVariable+"="+string(text))
	log, err := os.OpenFile(m.settings.Directory+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	m.process.Stdout, m.process.Stderr = log, log
	if _, err := m.process.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := m.process.Start(); err != nil {
		t.Fatal(err)
	}
	m.runs = true
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}

func (m *member) kill(t *testing.T) {
	t.Helper()
	if !m.runs {
		return
	}
	if err := m.process.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = m.process.Wait() // it says that the process was killed
	m.runs = false
}

// freePort returns a port that nobody listens at, outside those that the system gives to connections.
func freePort(t *testing.T) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return address
	}
	t.Fatal("no port is free")
	return ""
}

// cluster is its members.
type cluster []*member

// start runs a cluster of so many members until the test ends, with what a catalog needs unless change says otherwise.
func start(t *testing.T, count int, change func(*settings)) cluster {
	t.Helper()
	var members cluster
	var peers []string
	for i := range count {
		s := settings{
			Name: fmt.Sprintf("m%d", i), Directory: filepath.Join(t.TempDir(), "member"), Client: freePort(t), Peer: freePort(t),
			Operations: etcd.MemberOperations, Bytes: etcd.MemberBytes,
		}
		peers = append(peers, s.Name+"=http://"+s.Peer)
		if change != nil {
			change(&s)
		}
		members = append(members, &member{settings: s})
	}
	for _, m := range members {
		m.settings.Cluster = strings.Join(peers, ",")
		m.run(t)
		t.Cleanup(func() { m.kill(t) })
	}
	members.leader(t)
	return members
}

// crash kills all members and runs them again.
func (c cluster) crash(t *testing.T) {
	t.Helper()
	for _, m := range c {
		m.kill(t)
	}
	for _, m := range c {
		m.run(t)
	}
	c.leader(t)
}

func (c cluster) hosts() string {
	var hosts []string
	for _, m := range c {
		hosts = append(hosts, m.settings.Client)
	}
	return strings.Join(hosts, ",")
}

func (c cluster) address(query string) string { return "etcd://" + c.hosts() + query }

// client of the members, as an operator has one.
func (c cluster) client(t *testing.T) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(c.hosts(), ","), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

// leader waits until those of the members that run have a leader, of which each knows and which answers, and returns it.
func (c cluster) leader(t *testing.T) *member {
	t.Helper()
	for _, m := range c {
		if m.settings.Secure || m.settings.Certificates != "" {
			return m
		}
	}
	client := c.client(t)
	var led *member
	await(t, "a leader", func(ctx context.Context) bool {
		led = nil
		var known uint64
		for _, m := range c {
			if !m.runs {
				continue
			}
			status, err := client.Status(ctx, m.settings.Client)
			if err != nil || status.Leader == 0 || known != 0 && status.Leader != known {
				return false
			}
			if known = status.Leader; known == status.Header.MemberId {
				led = m
			}
		}
		if led == nil {
			return false
		}
		_, err := client.Get(ctx, "none")
		return err == nil
	})
	return led
}

// await asks again and again until what it waits for is there.
func await(t *testing.T, what string, there func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		asked, done := context.WithTimeout(ctx, 5*time.Second)
		is := there(asked)
		done()
		if is {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("there is not %s", what)
		}
	}
}

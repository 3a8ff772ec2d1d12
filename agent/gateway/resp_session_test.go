package gateway_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/resp"
	"github.com/restripe/restripe/agent/gateway/server"
	"github.com/restripe/restripe/agent/gateway/values"
	"github.com/restripe/restripe/agent/pki"
)

// Clients say who they are by a token or an access key, and may do what that user may.
func TestRedisUsers(t *testing.T) {
	c := newCluster(t, 8)
	users := usersFile(t)
	guarded := c.newGateway("guarded", func(o *gateway.Options) { o.Users = users })
	address := c.serveRedis(func(o *resp.Options) { o.Store = guarded.Values() })
	w := dialRedis(t, address)
	for _, command := range []string{"GET a", "PING", "MULTI", "SELECT 0", "CLIENT ID", "INFO"} {
		w.want("-NOAUTH Authentication required.", strings.Fields(command)...)
	}
	if got := w.do("HELLO", "3"); !strings.HasPrefix(got, "-NOAUTH HELLO must be called with") {
		t.Error(got)
	}
	const refused = "-WRONGPASS invalid username-password pair or user is disabled."
	w.want(refused, "AUTH", "guessed-guessed-guessed")
	w.want(refused, "AUTH", "GALLERY", "guessed-guessed-guessed")
	w.want(refused, "HELLO", "3", "AUTH", "GALLERY", "guessed-guessed-guessed")
	w.want("-NOAUTH Authentication required.", "GET", "photos/a")
	w.want("+OK", "AUTH", "token of ada")
	w.want("ada", "ACL", "WHOAMI")
	if got := w.do("GET", "photos/a"); !strings.HasPrefix(got, "-NOPERM ") {
		t.Error(got)
	}
	w.want("+RESET", "RESET")
	w.want("-NOAUTH Authentication required.", "PING")
	w.want("+OK", "AUTH", "default", "token of ada")
	w.want("+OK", "AUTH", "GALLERY", keySecret)
	w.want("gallery", "ACL", "WHOAMI")
	if got := w.do("SET", "photos/a", "x"); !strings.HasPrefix(got, "-NOPERM ") {
		t.Error(got)
	}
	w.want("+OK", "SELECT", "odd")
	w.want("+OK", "SET", "photos/a", "x")
	w.want(":1", "EXISTS", "photos/a")
	w.want("*[photos/a]", "KEYS", "*")
	w.want("+OK", "MULTI")
	w.want("+QUEUED", "SET", "photos/b", "y")
	w.want("+QUEUED", "SET", "others/b", "y")
	if got := w.do("EXEC"); !strings.HasPrefix(got, "*[+OK -NOPERM ") {
		t.Error(got)
	}
	three := dialRedis(t, address)
	if got := three.do("HELLO", "3", "AUTH", "GALLERY", keySecret, "SETNAME", "me"); !strings.HasPrefix(got, "%[server redis version ") {
		t.Error(got)
	}
	three.want("me", "CLIENT", "GETNAME")
	three.want("(nil)", "GET", "photos/none")
	// Whoever has not logged in sends no large commands.
	stranger := dialRedis(t, address)
	stranger.send("*2\r\n$3\r\nGET\r\n$100000\r\n")
	if got := stranger.reply(); got != "-ERR Protocol error: unauthenticated bulk length" {
		t.Error(got)
	}
}

// Over TLS a certificate of the cluster says who the client is, until it is revoked.
func TestRedisOverTLS(t *testing.T) {
	ca, directory := filepath.Join(t.TempDir(), "ca"), t.TempDir()
	authority, err := pki.Create(ca, "blue")
	if err != nil {
		t.Fatal(err)
	}
	c := newCertifiedCluster(t, 8, authority, directory)
	own := issued(t, authority, pki.RoleGateway, "gw2", filepath.Join(directory, "gw2"))
	users := usersFile(t)
	guarded := c.newGateway("guarded", certified(own), func(o *gateway.Options) { o.Users = users })
	store := values.New(values.Parts{
		Objects: guarded.Objects, Classes: guarded.Registry, Users: users, Certified: certifiedBy(own), Believed: time.Millisecond,
	})
	address := c.serveRedis(func(o *resp.Options) { o.Store, o.TLS = store, own.Doors() })
	dial := func(config *tls.Config) *redisWire {
		t.Helper()
		conn, err := tls.Dial("tcp", address, config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() }) // the server may have closed it
		return &redisWire{t, conn, bufio.NewReader(conn)}
	}
	eve := issued(t, authority, pki.RoleAdmin, "eve", filepath.Join(t.TempDir(), "eve"))
	admin := dial(eve.Client("gw2", pki.RoleGateway))
	admin.want("+OK", "SET", "a", "1")
	large := string(noise(300_000, 1))
	admin.want("+OK", "SET", "large", large)
	admin.send(redisCommand("GET", "large") + redisCommand("GET", "a"))
	if got := []string{admin.reply(), admin.reply()}; got[0] != large || got[1] != "1" {
		t.Errorf("%.100q", got)
	}
	config := eve.Client("gw2", pki.RoleGateway)
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }
	nobody := dial(config)
	nobody.want("-NOAUTH Authentication required.", "GET", "a")
	nobody.want("+OK", "AUTH", "GALLERY", keySecret)
	if _, err := authority.Revoke("admin/eve"); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(ca, pki.RevokedFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(directory, "gw2", pki.RevokedFile), list, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.await("a revoked certificate is refused", func() bool {
		got := admin.do("GET", "a")
		return strings.HasPrefix(got, "-NOAUTH ") && strings.Contains(got, "revoked")
	})
	plain := dialRedis(t, address)
	plain.send(redisCommand("PING"))
	if text, err := plain.from.ReadString('\n'); err == nil && strings.Contains(text, "PONG") {
		t.Errorf("without TLS: %q", text)
	}
}

// certifiedBy returns what tells whom a certificate is of, as a gateway does.
func certifiedBy(own *pki.Source) func(*tls.ConnectionState) (*access.User, error) {
	return func(state *tls.ConnectionState) (*access.User, error) { return server.Certified(own, state) }
}

// Values go into the class that their key says, or that was selected. What changes them keeps their class, metadata and expiry.
func TestRedisKeepsWhatItDoesNotKnow(t *testing.T) {
	c := newCluster(t, 9)
	w := dialRedis(t, c.serveRedis())
	is := func(key, class string, metadata bool, expires bool) {
		t.Helper()
		object, err := c.gateway.Find(t.Context(), key)
		if err != nil || object == nil {
			t.Fatalf("%s: %v, %v", key, object, err)
		}
		if object.Class != class || (object.Metadata["by"] == "ada") != metadata || object.Expires.IsZero() == expires {
			t.Errorf("%s: class %s, metadata %v, expires %v", key, object.Class, object.Metadata, object.Expires)
		}
	}
	late := time.Now().Add(time.Hour)
	c.put("k", []byte("10"), api.PutOptions{Class: "firm", Expires: late, Metadata: map[string]string{"by": "ada"}})
	for _, command := range []string{"INCR k", "APPEND k 5", "SETRANGE k 0 2", "INCRBYFLOAT k 0.5", "GETEX k EX 5000", "EXPIRE k 6000"} {
		if got := w.do(strings.Fields(command)...); strings.HasPrefix(got, "-") {
			t.Errorf("%s: %s", command, got)
		}
		is("k", "firm", true, true)
	}
	w.want("215.5", "GET", "k")
	w.want(":1", "PERSIST", "k")
	is("k", "firm", true, false)
	w.want(":1", "COPY", "k", "copy")
	is("copy", "firm", true, false)
	w.want("+OK", "RENAME", "copy", "renamed")
	is("renamed", "firm", true, false)
	w.want("+OK", "SELECT", "odd")
	w.want("+OK", "SET", "k", "new")
	is("k", "odd", false, false)
	w.want("+OK", "MSET", "m", "new")
	is("m", "odd", false, false)
	w.want("+OK", "SELECT", "0")
	w.want("+OK", "SET", "k", "new", "EX", "100")
	is("k", "default", false, true)
	w.want("+OK", "SET", "odd/k", "new")
	is("odd/k", "odd", false, false)
	w.want("+OK", "SET", "k", "soon", "PX", "50")
	c.await("a value is gone", func() bool { return w.do("GET", "k") == "(nil)" })
	w.want(":-2", "TTL", "k")
}

// A walk by SCAN sees every key that is there all the while, once, whoever else walks.
func TestRedisWalks(t *testing.T) {
	c := newCluster(t, 8)
	w := dialRedis(t, c.serveRedis())
	var want []string
	command := []string{"MSET"}
	for i := range 500 {
		key := fmt.Sprintf("walk/%03d", i)
		command = append(command, key, "x")
		if i%2 == 0 {
			want = append(want, key)
		}
	}
	w.want("+OK", command...)
	walk := func(arguments ...string) (seen []string) {
		cursor := "0"
		for {
			w.send(redisCommand(append([]string{"SCAN", cursor}, arguments...)...))
			reply := w.reply()
			fields := strings.Fields(strings.NewReplacer("*[", "", "]", "").Replace(reply))
			cursor, seen = fields[0], append(seen, fields[1:]...)
			if cursor == "0" {
				return seen
			}
			if len(seen) < 30 { // what goes away is seen or not
				w.do("DEL", fmt.Sprintf("walk/%03d", 499-2*len(seen)))
			}
		}
	}
	for _, arguments := range [][]string{nil, {"COUNT", "100"}, {"MATCH", "walk/*"}, {"MATCH", "walk/*[02468]", "COUNT", "7"}} {
		seen := walk(arguments...)
		even := slices.DeleteFunc(slices.Clone(seen), func(key string) bool { return (key[len(key)-1]-'0')%2 == 1 })
		if !slices.IsSorted(seen) || !slices.Equal(even, want) {
			t.Errorf("%q: %d keys, of them %d even ones, want %d", arguments, len(seen), len(even), len(want))
		}
	}
	if got := w.do("SCAN", "123456"); !strings.HasPrefix(got, "-ERR bad request: invalid cursor: ") {
		t.Error(got)
	}
	count := len(c.keys())
	w.want(":"+strconv.Itoa(count), "DBSIZE")
	if got := w.do("KEYS", "walk/*"); strings.Count(got, "walk/") != count {
		t.Errorf("KEYS lists %d of %d", strings.Count(got, "walk/"), count)
	}
	if got := w.do("RANDOMKEY"); !strings.HasPrefix(got, "walk/") {
		t.Error(got)
	}
}

// CLIENT REPLY says which commands are answered.
func TestRedisRepliesThatNobodyWants(t *testing.T) {
	c := newCluster(t, 8)
	w := dialRedis(t, c.serveRedis())
	w.send(redisCommand("CLIENT", "REPLY", "OFF") + redisCommand("SET", "a", "1") + redisCommand("NOSUCH") +
		redisCommand("CLIENT", "REPLY", "SKIP") + redisCommand("INCR", "a") +
		redisCommand("CLIENT", "REPLY", "ON") + redisCommand("GET", "a") +
		redisCommand("CLIENT", "REPLY", "SKIP") + redisCommand("INCR", "a") + redisCommand("GET", "a"))
	if got := []string{w.reply(), w.reply(), w.reply()}; !slices.Equal(got, []string{"+OK", "2", "3"}) {
		t.Errorf("%q", got)
	}
}

// Commands are counted by name and by how they ended.
func TestRedisMetrics(t *testing.T) {
	c := newCluster(t, 8)
	registry := prometheus.NewPedanticRegistry()
	w := dialRedis(t, c.serveRedis(func(o *resp.Options) { o.Metrics = registry }))
	for _, command := range []string{"SET a b", "GET a", "GET b", "INCR a", "NOSUCH x", "CLIENT ID"} {
		w.do(strings.Fields(command)...)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, family := range families {
		for _, metric := range family.Metric {
			labels := ""
			for _, label := range metric.Label {
				labels += " " + label.GetValue()
			}
			count := float64(metric.GetHistogram().GetSampleCount()) + metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			got = append(got, fmt.Sprintf("%s%s %v", strings.TrimPrefix(family.GetName(), "restripe_redis_"), labels, count))
		}
	}
	want := []string{
		"command_seconds client|id done 1", "command_seconds get done 2", "command_seconds incr refused 1", "command_seconds set done 1",
		"command_seconds unknown refused 1", "connections 1", "connections_refused_total 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

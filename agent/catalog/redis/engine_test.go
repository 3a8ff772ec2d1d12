package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/catalogtest"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/redis"
	"github.com/restripe/restripe/agent/catalog/schema"
	"github.com/restripe/restripe/agent/pki"
)

// server is a Redis server the test started.
type server struct {
	port      int
	directory string
	arguments []string
	process   *exec.Cmd
}

// start runs redis-server on a free port of the loopback interface until the test ends.
func start(t *testing.T, arguments ...string) *server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("redis-server is not installed")
	}
	s := &server{port: freePort(t), directory: t.TempDir(), arguments: arguments}
	s.run(t)
	t.Cleanup(func() { s.kill(t) })
	return s
}

// freePort is one of the loopback interface that nobody listens at.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return port
}

func (s *server) run(t *testing.T) {
	t.Helper()
	// A secret in the configuration must not be on the command line, as in earnest.
	configuration := filepath.Join(s.directory, "redis.conf")
	lines := append([]string{fmt.Sprintf("port %d", s.port), "bind 127.0.0.1", "save \"\"", "dir " + s.directory}, s.arguments...)
	if err := os.WriteFile(configuration, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.process = exec.Command("redis-server", configuration)
	output, err := os.OpenFile(filepath.Join(s.directory, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s.process.Stdout, s.process.Stderr = output, output
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	if err := output.Close(); err != nil {
		t.Fatal(err)
	}
	s.await(t)
}

// await asks the server until it answers.
func (s *server) await(t *testing.T) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		if s.answers() {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			t.Fatal("redis-server does not answer")
		}
	}
}

// answers reports whether the server answers a ping, or asks for credentials.
func (s *server) answers() bool {
	connection, err := net.DialTimeout("tcp", s.host(), time.Second)
	if err != nil {
		return false
	}
	answer := make([]byte, 64)
	_, errWrite := connection.Write([]byte("PING\r\n"))
	count, errRead := connection.Read(answer)
	errClose := connection.Close()
	text := string(answer[:count])
	return errors.Join(errWrite, errRead, errClose) == nil && (strings.HasPrefix(text, "+PONG") || strings.HasPrefix(text, "-NOAUTH"))
}

func (s *server) host() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

func (s *server) kill(t *testing.T) {
	if err := s.process.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = s.process.Wait() // it says that the process was killed
}

func open(t *testing.T, address string) *redis.Engine {
	t.Helper()
	engine, err := redis.Open(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func TestEngine(t *testing.T) {
	s := start(t, "appendonly yes", "appendfsync always")
	count := 0
	catalogtest.Run(t, func(t *testing.T) catalogtest.Instance {
		count++
		address := fmt.Sprintf("redis://%s/0?catalog=test%d", s.host(), count)
		engine := open(t, address)
		if warnings := engine.Warnings(); len(warnings) > 0 {
			t.Errorf("a durable server is warned of: %q", warnings)
		}
		if engine.MayLose() {
			t.Error("a durable server is said to lose acknowledged updates")
		}
		return catalogtest.Instance{
			Engine: engine,
			Second: func() (kv.Engine, error) { return redis.Open(context.Background(), address) },
			Crash: func() kv.Engine {
				s.kill(t)
				s.run(t)
				return open(t, address)
			},
			Server: s.host(),
			Dial: func(server string) (kv.Engine, error) {
				return redis.Open(context.Background(), strings.Replace(address, s.host(), server, 1))
			},
		}
	})
}

func TestEvictingServer(t *testing.T) {
	s := start(t, "maxmemory 100mb", "maxmemory-policy allkeys-lru")
	_, err := redis.Open(context.Background(), "redis://"+s.host())
	if err == nil || !strings.Contains(err.Error(), "noeviction") {
		t.Errorf("opening a server that evicts: %v", err)
	}
}

func TestWarnings(t *testing.T) {
	for _, test := range []struct {
		configuration []string
		want          string
	}{
		{[]string{"appendonly no"}, "keeps no append-only file"},
		{[]string{"appendonly yes", "appendfsync everysec"}, "everysec"},
		{[]string{"rename-command CONFIG \"\""}, "does not say what appendonly"},
	} {
		s := start(t, test.configuration...)
		engine := open(t, "redis://"+s.host())
		if warnings := strings.Join(engine.Warnings(), "\n"); !strings.Contains(warnings, test.want) {
			t.Errorf("%q: warned of %q", test.configuration, warnings)
		}
		if !engine.MayLose() {
			t.Errorf("%q: said to lose nothing", test.configuration)
		}
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A server that loses nothing itself has a replica, which may take its place: it is warned of that.
func TestReplicas(t *testing.T) {
	s := start(t, "appendonly yes", "appendfsync always", "repl-diskless-sync-delay 0")
	replica := start(t, fmt.Sprintf("replicaof 127.0.0.1 %d", s.port))
	deadline := time.Now().Add(time.Minute)
	for {
		engine := open(t, "redis://"+s.host())
		warnings, mayLose := strings.Join(engine.Warnings(), "\n"), engine.MayLose()
		replicas, err := engine.Replicas(t.Context())
		if err := errors.Join(err, engine.Close()); err != nil {
			t.Fatal(err)
		}
		want := kv.Replica{Name: replica.host(), Up: true, LagEntries: -1}
		switch {
		case mayLose && strings.Contains(warnings, "has replicas") && len(replicas) == 1 && replicas[0] == want:
			return
		case mayLose && strings.Contains(warnings, "has replicas") && time.Now().Before(deadline): // not all was sent to it yet
		case mayLose || warnings != "":
			t.Fatalf("may lose writes: %t, warned of %q", mayLose, warnings)
		case time.Now().After(deadline): // the replica takes a moment to come
			t.Fatalf("a server with a replica is not warned of, or the replica is not told of: %v", replicas)
		}
	}
}

func TestPassword(t *testing.T) {
	const secret = "s3cr3t-%2Fword"
	s := start(t, "requirepass s3cr3t-/word")
	engine := open(t, "redis://:"+secret+"@"+s.host())
	if err := engine.Close(); err != nil {
		t.Error(err)
	}
	for _, address := range []string{"redis://:wrong-s3cr3t@" + s.host(), "redis://:s3cr3t%zz@" + s.host(), "http://:s3cr3t@" + s.host()} {
		_, err := redis.Open(context.Background(), address)
		if err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("opening with a wrong address: %v", err)
		}
	}
}

// With rediss:// both sides show certificates of one authority, and the password is in a file.
func TestCertificates(t *testing.T) {
	authority, err := pki.Create(filepath.Join(t.TempDir(), "authority"), "test")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if _, err := authority.Issue(pki.Identity{Role: pki.RoleGateway, Name: "catalog"}, []string{"127.0.0.1"}, 0, folder); err != nil {
		t.Fatal(err)
	}
	password := filepath.Join(folder, "password")
	if err := os.WriteFile(password, []byte("s3cr3t-/word\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	certificates := "cacert=" + folder + "/ca.crt&cert=" + folder + "/tls.crt&key=" + folder + "/tls.key"
	port := freePort(t)
	start(t, "requirepass s3cr3t-/word", fmt.Sprintf("tls-port %d", port), "tls-cert-file "+folder+"/tls.crt",
		"tls-key-file "+folder+"/tls.key", "tls-ca-cert-file "+folder+"/ca.crt")
	host := fmt.Sprintf("127.0.0.1:%d", port)
	engine := open(t, "rediss://"+host+"?catalog=x&passwordfile="+password+"&"+certificates)
	if _, err := engine.Update(t.Context(), nil, []kv.Write{{Key: "a", Value: []byte("1")}}); err != nil {
		t.Error(err)
	}
	if err := engine.Close(); err != nil {
		t.Error(err)
	}
	for query, want := range map[string]string{
		"passwordfile=" + password:                                   "certificate",
		"passwordfile=" + password + "&cacert=" + folder + "/ca.crt": "", // the server just goes away
		"cacert=" + password:                                         "no certificate is in",
		"cert=/none":                                                 "/none",
		"passwordfile=/none":                                         "/none",
	} {
		_, err := redis.Open(t.Context(), "rediss://"+host+"?"+query)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("opening with %s: %v, want %s", query, err, want)
		}
	}
	for address, want := range map[string]string{
		"redis://" + host + "?cacert=" + folder + "/ca.crt": "rediss://",
		"rediss://:x@" + host + "?passwordfile=" + password: "beside passwordfile=",
	} {
		if err := redis.Check(address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("checking %s: %v, want %s", address, err, want)
		}
	}
}

// A server at its memory limit refuses updates as a whole.
func TestFullServer(t *testing.T) {
	s := start(t, "maxmemory 3mb", "maxmemory-policy noeviction")
	engine := open(t, "redis://"+s.host())
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx := context.Background()
	for i := range 200 {
		name := fmt.Sprintf("%03d", i)
		_, err := engine.Update(ctx, nil, []kv.Write{{Key: "a" + name, Value: make([]byte, 30_000)}, {Key: "b" + name, Value: []byte("x")}})
		if err == nil {
			continue
		}
		values, readErr := engine.Read(ctx, "a"+name, "b"+name)
		if readErr != nil || values[0] != nil || values[1] != nil {
			t.Errorf("an update refused with %v left %d and %d bytes, %v", err, len(values[0]), len(values[1]), readErr)
		}
		return
	}
	t.Error("the server took everything")
}

// In cluster mode all keys are in one slot.
func TestClusterMode(t *testing.T) {
	s := start(t, "cluster-enabled yes")
	connection, err := net.Dial("tcp", s.host())
	if err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4096)
	if _, err := connection.Write([]byte("CLUSTER ADDSLOTSRANGE 0 16383\r\n")); err != nil {
		t.Fatal(err)
	}
	if count, err := connection.Read(answer); err != nil || !strings.HasPrefix(string(answer[:count]), "+OK") {
		t.Fatalf("taking all slots: %q, %v", answer[:count], err)
	}
	for state := ""; !strings.Contains(state, "cluster_state:ok"); {
		if _, err := connection.Write([]byte("CLUSTER INFO\r\n")); err != nil {
			t.Fatal(err)
		}
		count, err := connection.Read(answer)
		if err != nil {
			t.Fatal(err)
		}
		state = string(answer[:count])
	}
	if err := connection.Close(); err != nil {
		t.Fatal(err)
	}
	engine := open(t, "redis://"+s.host())
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	c, err := catalog.Open(context.Background(), engine, catalog.Owner("gateway", "start"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ChangeNode(context.Background(), catalog.Node{}, catalog.Node{ID: "n0"}); err != nil {
		t.Fatal(err)
	}
	held, err := engine.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	before, err := engine.Scan(context.Background(), "", "", 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.ChangeNode(context.Background(), catalog.Node{}, catalog.Node{ID: "n1"}); err != nil {
		t.Fatal(err)
	}
	if records, err := held.Scan(context.Background(), "", "", 100); err != nil || fmt.Sprint(records) != fmt.Sprint(before) {
		t.Errorf("a snapshot has %v, and it was %v; %v", records, before, err)
	}
	if nodes, err := c.Nodes(context.Background()); err != nil || len(nodes) != 2 {
		t.Errorf("nodes: %v, %v", nodes, err)
	}
}

// A snapshot takes memory for what is changed while it is read, and nothing of it stays: neither when it is closed, nor when the server
// has dropped it. Of a catalog at which gateways of the release before may be at work all is copied.
func TestSnapshotsKeepWhatChanges(t *testing.T) {
	t.Parallel()
	s := start(t)
	engine := open(t, "redis://"+s.host())
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	server, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.host()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ask := func(words ...string) rueidis.RedisResult {
		return server.Do(t.Context(), server.B().Arbitrary(words...).Build())
	}
	set := func(key, value string) kv.Write { return kv.Write{Key: key, Value: []byte(value)} }
	update := func(writes ...kv.Write) {
		t.Helper()
		if failed, err := engine.Update(t.Context(), nil, writes); err != nil || len(failed) > 0 {
			t.Fatal(failed, err)
		}
	}
	var records []kv.Write
	for i := range 1000 {
		records = append(records, set(fmt.Sprintf("o/%04d", i), "before"))
	}
	update(records...)
	keys := func() []string {
		t.Helper()
		there, err := ask("KEYS", "*snapshots*").AsStrSlice()
		if err != nil {
			t.Fatal(err)
		}
		return there
	}
	begun := func() kv.Snapshot {
		t.Helper()
		snapshot, err := engine.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return snapshot
	}

	read, dropped := begun(), begun()
	update(set("o/0003", "after"), kv.Write{Key: "o/0005", Kind: kv.Remove}, set("o/0005a", "new"))
	all := keys()
	if len(all) != 5 { // the set, and a hash and an index of each
		t.Errorf("while two snapshots are read there is %v", all)
	}
	for _, key := range all {
		if strings.HasSuffix(key, ":index") {
			if count, err := ask("ZCARD", key).AsInt64(); err != nil || count != 4 { // and the one that no record has
				t.Errorf("%s has %d members for three records that were changed, %v", key, count, err)
			}
		}
	}
	page, err := read.Scan(t.Context(), "o/", "o/0002", 4)
	if err != nil || fmt.Sprintf("%s", page) != "[{o/0003 before} {o/0004 before} {o/0005 before} {o/0006 before}]" {
		t.Errorf("%s, %v", page, err)
	}
	if page, err := read.Scan(t.Context(), "o/", "", -1); err != nil || len(page) != 0 {
		t.Errorf("%s, %v", page, err)
	}
	if err := read.Close(); err != nil {
		t.Error(err)
	}
	left := keys()
	if len(left) != 3 {
		t.Errorf("when one of two is closed there is %v", left)
	}
	for _, key := range left {
		if strings.Contains(key, "snapshots:") {
			if err := ask("DEL", key).Error(); err != nil { // as by its time to live
				t.Fatal(err)
			}
		}
	}
	if _, err := dropped.Scan(t.Context(), "o/", "", 4); err == nil || !strings.Contains(err.Error(), "begin again") {
		t.Errorf("a snapshot that the server dropped: %v", err)
	}
	update(set("o/0003", "later"))
	if left := keys(); len(left) != 0 {
		t.Errorf("after a snapshot was dropped there is %v", left)
	}

	update(set(schema.KeySchema, "2"))
	copied := begun()
	update(set("o/0003", "last"))
	if page, err := copied.Scan(t.Context(), "o/0003", "", 1); err != nil || fmt.Sprintf("%s", page) != "[{o/0003 later}]" {
		t.Errorf("%s, %v", page, err)
	}
	if left := keys(); len(left) != 0 {
		t.Errorf("a catalog of the release before has %v", left)
	}
	if err := copied.Close(); err != nil {
		t.Error(err)
	}
}

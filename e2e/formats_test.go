package e2e

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

// makeFormats has TestFormatsOfReleases write what it opens otherwise.
var makeFormats = flag.String("formats.make", "",
	"write the files of a release of that name, as the program of -formats.program leaves them, instead of opening those of all releases")
var formatsProgram = flag.String("formats.program", "", "the program of a release whose files are written")

// left is a cluster that a release has left behind: a catalog, five directories and a Redis as stores, objects, a transition that
// is paused, and what a gateway had in hand when it was killed.
type left struct {
	t         *testing.T
	directory string
	catalog   string // sqlite or redis
	binary    string
}

const leftRedis = "n6" // the node whose store is a Redis

// objects are what is stored: keys, and the seeds and sizes of their bytes.
type leftObjects map[string]struct {
	Seed uint64 `json:"seed"`
	Size int    `json:"size"`
}

func (l *left) path(name string) string { return filepath.Join(l.directory, name) }

// redis starts a server whose data is in a directory of what was left.
func (l *left) redis(name string) string {
	l.t.Helper()
	if err := os.MkdirAll(l.path(name), 0o700); err != nil {
		l.t.Fatal(err)
	}
	return server.Redis(l.t, "--dir", l.path(name), "--dbfilename", "dump.rdb").Addr
}

// start starts the stores, the agents, and what the gateway is started by, and returns the last.
func (l *left) start() (agents []*daemon, gateway func() *daemon, servers []string) {
	l.t.Helper()
	for i := range 6 {
		name := fmt.Sprintf("n%d", i+1)
		store := "file:" + l.path(name)
		if name == leftRedis {
			servers = append(servers, l.redis(name))
			store = "redis://" + servers[0]
		}
		agents = append(agents, l.run("agent", "--id", name, "--store", store, "--gateway-silence", silence))
	}
	catalog := "sqlite:" + l.path("catalog.db")
	if l.catalog == "redis" {
		servers = append(servers, l.redis("catalog"))
		catalog = "redis://" + servers[1]
	}
	nodes := nodeFile(l.t, agents...)
	return agents, func() *daemon {
		return l.run("gateway", "--catalog", catalog, "--nodes", nodes, "--classes", write(l.t, "classes.yaml", faultClasses),
			"--listen", "127.0.0.1:0", "--grace", "0s")
	}, servers
}

func (l *left) run(arguments ...string) *daemon {
	l.t.Helper()
	return serveCommand(l.t, exec.Command(l.binary, append(arguments, "--"+launch.LifelineFlag)...))
}

// make leaves a cluster behind.
func (l *left) make() {
	t := l.t
	agents, gateway, servers := l.start()
	g := gateway()
	c := clientOf(t, g.address)
	until(t, "every node is up", func() bool {
		return strings.Count(restripe(t, g.address, "status", "-o", "wide").out, " up ") >= len(agents)
	})
	objects := leftObjects{}
	store := func(key string, seed uint64, size int) {
		t.Helper()
		put(t, c, key, noise(seed, size), client.PutOptions{})
		objects[key] = struct {
			Seed uint64 `json:"seed"`
			Size int    `json:"size"`
		}{seed, size}
	}
	for i := range 20 {
		store(fmt.Sprintf("small/%d", i), uint64(i), 700+i)
	}
	for i := range 3 {
		store(fmt.Sprintf("large/%d", i), uint64(100+i), 100_000)
	}
	store("small/3", 103, 900) // over another
	if err := c.Delete(t.Context(), "small/4"); err != nil {
		t.Fatal(err)
	}
	delete(objects, "small/4")
	started := must(t, g.address, "transition", "start", "--to", "rs(4,1)", "--class", "default", "--rate", "1KiB/s", "-o", "name")
	id := strings.TrimSpace(started[strings.LastIndex(started, "/")+1:])
	must(t, g.address, "transition", "pause", id)
	body, feed := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Put(t.Context(), "never", body, client.PutOptions{})
		ended <- err
	}()
	if _, err := feed.Write(noise(7, 100_000)); err != nil { // more than a group
		t.Fatal(err)
	}
	until(t, "an attempt is under way", func() bool {
		status, err := c.Status(t.Context())
		return err == nil && status.Active > 0
	})
	g.kill(t)
	if err := feed.CloseWithError(io.ErrUnexpectedEOF); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("what was never sent was stored")
	}
	for _, agent := range agents {
		agent.stop(t)
	}
	for _, address := range servers {
		save(t, address)
	}
	text, err := json.MarshalIndent(objects, "", "  ")
	if err == nil {
		err = os.WriteFile(l.path("objects.json"), append(text, '\n'), 0o600)
	}
	if err == nil {
		err = os.WriteFile(l.path("transition"), []byte(id), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// allUp waits until so many nodes are up.
func allUp(t *testing.T, gateway string, nodes int) {
	t.Helper()
	until(t, "every node is up", func() bool {
		return strings.Count(restripe(t, gateway, "status", "-o", "wide").out, " up ") >= nodes
	})
}

// save has a Redis write its data to its file.
func save(t *testing.T, address string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // everything was said
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "SAVE\r\n"); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 5)
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "+OK\r\n" {
		t.Fatalf("saving: %q, %v", answer, err)
	}
}

// open takes up what was left, and finds everything.
func (l *left) open() {
	t := l.t
	text, err := os.ReadFile(l.path("objects.json"))
	if err != nil {
		t.Fatal(err)
	}
	var objects leftObjects
	if err := json.Unmarshal(text, &objects); err != nil || len(objects) == 0 {
		t.Fatal(objects, err)
	}
	transition, err := os.ReadFile(l.path("transition"))
	if err != nil {
		t.Fatal(err)
	}
	agents, gateway, _ := l.start()
	g := gateway()
	c := clientOf(t, g.address)
	for i, agent := range agents { // they were elsewhere
		must(t, g.address, "node", "replace", fmt.Sprintf("n%d", i+1), "--address", agent.address)
	}
	until(t, "every node is up", func() bool {
		return strings.Count(restripe(t, g.address, "status", "-o", "wide").out, " up ") >= len(agents)
	})
	check := func() {
		t.Helper()
		for key, object := range objects {
			holds(t, c, key, noise(object.Seed, object.Size))
		}
	}
	check()
	must(t, g.address, "transition", "resume", string(transition), "--rate", "0")
	until(t, "the transition is done", func() bool {
		return strings.Contains(restripe(t, g.address, "transition", "show", string(transition), "-o", "json").out, `"state": "done"`)
	})
	check()
	must(t, g.address, "repair")
	atRest(t, c)
	check()
	if page, err := c.List(t.Context(), "", "", 100); err != nil || len(page.Objects) != len(objects) {
		t.Errorf("%d objects are listed, %d were left: %v", len(page.Objects), len(objects), err)
	}
}

// TestFormatsOfReleases opens what each release has left: no release takes an earlier one's data away.
func TestFormatsOfReleases(t *testing.T) {
	t.Parallel()
	const folder = "testdata/formats"
	if *makeFormats != "" {
		for _, catalog := range []string{"sqlite", "redis"} {
			l := &left{t: t, directory: t.TempDir(), catalog: catalog, binary: *formatsProgram}
			l.make()
			archive := filepath.Join(folder, *makeFormats+"-"+catalog+".tar.gz")
			command := exec.CommandContext(t.Context(), "tar", "--create", "--gzip", "--file", archive, "--directory", l.directory, ".")
			if text, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		return
	}
	archives, err := filepath.Glob(filepath.Join(folder, "*.tar.gz"))
	if err != nil || len(archives) < 2 {
		t.Fatal(archives, err)
	}
	for _, archive := range archives {
		name := strings.TrimSuffix(filepath.Base(archive), ".tar.gz")
		t.Run(name, func(t *testing.T) {
			l := &left{t: t, directory: t.TempDir(), catalog: name[strings.LastIndex(name, "-")+1:], binary: program(t)}
			command := exec.CommandContext(t.Context(), "tar", "--extract", "--gzip", "--file", archive, "--directory", l.directory)
			if text, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			l.open()
		})
	}
}

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

// smallClasses has one class over three nodes; every object has groups of its own.
const smallClasses = `classes:
- name: default
  ladder: rep(2),rs(2,1)
  prefixes: [""]
  packBelow: 1KiB
`

// TestDoctorFindsEvictingStores runs agents over a memcached and a Redis that are told to drop what they have when they
// are full, which would lose blocks one by one.
func TestDoctorFindsEvictingStores(t *testing.T) {
	t.Parallel()
	evicting := server.Memcached(t)
	dropping := server.Redis(t, "--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru")
	keeping := server.Memcached(t, "-M")
	safe := server.Redis(t, "--maxmemory-policy", "noeviction", "--appendonly", "yes", "--appendfsync", "always")
	g := gatewayOver(t, smallClasses, agentsOver(t, "memcached://"+evicting.Addr, "redis://"+dropping.Addr, "memcached://"+keeping.Addr, "redis://"+safe.Addr)...)
	a := restripe(t, g.address, "doctor", "-o", "json")
	if a.code != 0 {
		t.Errorf("exit code %d: %s; warnings are no errors", a.code, a.messages)
	}
	var findings []api.Finding
	if err := json.Unmarshal([]byte(a.out), &findings); err != nil {
		t.Fatalf("%v in\n%s", err, a.out)
	}
	said := map[string]string{}
	for _, finding := range findings {
		said[finding.Subject] += finding.Text + "\n"
	}
	for node, words := range map[string][]string{
		"node n1": {evicting.Addr, "drops values", "lost block", "restart it with -M"},
		"node n2": {dropping.Addr, "allkeys-lru", "set maxmemory-policy to noeviction"},
	} {
		for _, word := range words {
			if !strings.Contains(said[node], word) {
				t.Errorf("the doctor does not say %q of %s, but\n%s", word, node, said[node])
			}
		}
	}
	for _, node := range []string{"node n3", "node n4"} {
		if strings.Contains(said[node], "evict") || strings.Contains(said[node], "drops") {
			t.Errorf("the doctor says of %s, which keeps what it has:\n%s", node, said[node])
		}
	}
	if said["node n4"] != "" {
		t.Errorf("the doctor says of a Redis as it should be:\n%s", said["node n4"])
	}
	status := must(t, g.address, "status")
	if !strings.Contains(status, "warning: n1: ") || !strings.Contains(status, "warning: n2: ") {
		t.Errorf("the status does not warn of n1 and n2:\n%s", status)
	}
}

// TestDoctorFindsForgetfulCatalog keeps the catalog in a Redis that loses what it has acknowledged when it is restarted.
func TestDoctorFindsForgetfulCatalog(t *testing.T) {
	t.Parallel()
	nodes, classes := nodeFile(t, agentsOver(t, directories(t, 4)...)...), write(t, "classes.yaml", smallClasses)
	for _, test := range []struct {
		intent    string
		arguments []string
		words     string
	}{
		{"no append-only file", []string{"--appendonly", "no"}, "Set appendonly yes and appendfsync always"},
		{"a file that lags behind", []string{"--appendonly", "yes", "--appendfsync", "everysec"}, "Set appendfsync always"},
	} {
		t.Run(test.intent, func(t *testing.T) {
			g := serve(t, "gateway", "--catalog", "redis://"+server.Redis(t, test.arguments...).Addr, "--nodes", nodes, "--classes", classes, "--listen", "127.0.0.1:0")
			doctor := restripe(t, g.address, "doctor").out // which also finds, the second time, that the stores belong to the first catalog
			if !strings.Contains(doctor, "The catalog redis://") || !strings.Contains(doctor, test.words) {
				t.Errorf("the doctor does not say %q of the catalog:\n%s", test.words, doctor)
			}
		})
	}
	refused(t, restripe(t, "", "gateway", "--catalog", "redis://"+server.Redis(t, "--maxmemory-policy", "allkeys-lru").Addr, "--nodes", nodes),
		"the server evicts keys (maxmemory-policy allkeys-lru) and would lose the catalog", "set maxmemory-policy noeviction, or name another server")
}

// TestWrongPassword gives Redis a password and the agent, or the gateway for its catalog, another one or none.
func TestWrongPassword(t *testing.T) {
	t.Parallel()
	guarded := server.Redis(t, "--requirepass", "right-secret")
	for _, test := range []struct{ intent, credentials string }{
		{"another password", ":wrong-secret@"}, {"no password", ""}, {"an unknown user", "somebody:right-secret@"},
	} {
		t.Run(test.intent, func(t *testing.T) {
			address := secretFile(t, "redis://"+test.credentials+guarded.Addr)
			asStore := restripe(t, "", "agent", "--id", "n1", "--store", address)
			refused(t, asStore, "opening the store of n1", guarded.Addr, "store refused the credentials", "give the right user and password")
			asCatalog := restripe(t, "", "gateway", "--catalog", address, "--listen", "127.0.0.1:0")
			refused(t, asCatalog, "opening the catalog", guarded.Addr, "give the right user and password in redis://user:password@host:port")
			if strings.Contains(asStore.messages+asCatalog.messages, "secret") {
				t.Error("an error shows a password")
			}
		})
	}
	right := "redis://:right-secret@" + guarded.Addr
	shown := restripe(t, "", "agent", "--id", "n1", "--store", right)
	refused(t, shown, "--store has a password, which every user of this machine could see", "--store @FILE", "RESTRIPE_STORE")
	if strings.Contains(shown.messages, "secret") {
		t.Error("an error shows a password")
	}
	serve(t, "agent", "--id", "n1", "--store", secretFile(t, right))
}

// secretFile returns how the command line names an address that stands in a file.
func secretFile(t *testing.T, address string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "address")
	if err := os.WriteFile(path, []byte(address+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "@" + path
}

// TestStoreDown kills stores below running agents. With a node to spare puts go on; without one they are refused with
// the cause; reads go on in both cases, and nothing is lost once the stores are back.
func TestStoreDown(t *testing.T) {
	t.Parallel()
	var servers []*server.Process
	var stores []string
	for range 4 {
		s := server.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
		servers, stores = append(servers, s), append(stores, "redis://"+s.Addr)
	}
	g := gatewayOver(t, smallClasses, agentsOver(t, stores...)...)
	c := clientOf(t, g.address)
	data := noise(4, 60_000)
	var keys []string
	store := func(key string) {
		t.Helper()
		put(t, c, key, data, client.PutOptions{})
		keys = append(keys, key)
	}
	everything := func() {
		t.Helper()
		for _, key := range keys {
			holds(t, c, key, data)
		}
	}
	for i := range 4 {
		store(fmt.Sprintf("all-up-%d", i))
	}
	servers[0].Kill()
	everything()
	for i := range 4 {
		store(fmt.Sprintf("one-down-%d", i))
	}
	everything()
	doctor := restripe(t, g.address, "doctor")
	if !strings.Contains(doctor.out, "node n1") {
		t.Errorf("the doctor does not name the node whose store is down:\n%s", doctor.out)
	}
	t.Logf("one store down, the doctor says:\n%s%s", doctor.out, doctor.messages)
	servers[1].Kill()
	a := restripe(t, g.address, "put", write(t, "file", string(data)), "two-down")
	refused(t, a, "node")
	if _, err := c.Put(t.Context(), "two-down", bytes.NewReader(data), client.PutOptions{}); !errors.Is(err, api.ErrUnavailable) && !errors.Is(err, api.ErrTooFewNodes) {
		t.Errorf("a put with two of four stores down: %v; want that it is not available now", err)
	}
	servers[0].Restart()
	servers[1].Restart()
	until(t, "puts are taken again", func() bool {
		_, err := c.Put(t.Context(), "two-down", bytes.NewReader(data), client.PutOptions{})
		return err == nil
	})
	keys = append(keys, "two-down")
	everything()
	if _, err := c.Repair(t.Context()); err != nil {
		t.Error(err)
	}
	everything()
	atRest(t, c)
}

// TestItemsOverTheLimitOfMemcached stores blocks that are larger than what the servers take as one item, and then more
// than the servers hold.
func TestItemsOverTheLimitOfMemcached(t *testing.T) {
	t.Parallel()
	var stores []string
	for range 3 {
		stores = append(stores, "memcached://"+server.Memcached(t, "-M", "-I", "512k", "-m", "12").Addr)
	}
	g := gatewayOver(t, smallClasses, agentsOver(t, stores...)...)
	c := clientOf(t, g.address)
	stored := map[string][]byte{"large": noise(5, 5<<20)} // blocks of 2 MiB and more
	put(t, c, "large", stored["large"], client.PutOptions{Scheme: "rs(2,1)"})
	holds(t, c, "large", stored["large"])
	var err error
	for i := 0; err == nil && i < 100; i++ {
		key, data := fmt.Sprintf("fill-%d", i), noise(uint64(i), 700_000)
		if _, err = c.Put(t.Context(), key, bytes.NewReader(data), client.PutOptions{}); err == nil {
			stored[key] = data
		}
	}
	if !errors.Is(err, api.ErrFull) {
		t.Fatalf("filling servers of 12 MiB ends with %v; want that they are full", err)
	}
	refused(t, restripe(t, g.address, "put", write(t, "more", string(noise(6, 2<<20))), "more"), "store is full", "out of memory", "node n")
	for key, data := range stored {
		holds(t, c, key, data)
	}
	atRest(t, c)
	if err := c.Delete(t.Context(), "large"); err != nil {
		t.Fatal(err)
	}
	delete(stored, "large")
	atRest(t, c)
	put(t, c, "again", noise(8, 700_000), client.PutOptions{})
	for key, data := range stored {
		holds(t, c, key, data)
	}
	t.Logf("%d objects of 0.7 MB beside one of 5 MiB on three servers of 12 MiB", len(stored))
}

// TestCorruptBlocks damages blocks on the disk below running agents. A read notices and works around the damage, stat
// and repair show it, and what is beyond repair is said to be lost rather than served.
func TestCorruptBlocks(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var stores []string
	for i := range 7 {
		stores = append(stores, "file:"+filepath.Join(root, fmt.Sprintf("n%d", i+1)))
	}
	g := gatewayOver(t, "classes: [{name: default, ladder: 'rep(3),rs(2,2),rs(4,2)', prefixes: ['']}]", agentsOver(t, stores...)...)
	c := clientOf(t, g.address)
	objects := map[string][]byte{"own": noise(11, 300_000), "packed": noise(12, 3_000), "copied": noise(13, 100_000)}
	put(t, c, "own", objects["own"], client.PutOptions{Scheme: "rs(4,2)"})
	put(t, c, "packed", objects["packed"], client.PutOptions{Scheme: "rs(2,2)"})
	put(t, c, "copied", objects["copied"], client.PutOptions{})
	damage := func(key string, slot int, do func(path string, size int64) error) {
		t.Helper()
		stat, err := c.Stat(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		group := stat.Groups[0]
		place := fmt.Sprintf("b %s %02x ", group.ID, slot)
		done := 0
		for _, path := range blocksIn(t, filepath.Join(root, string(group.Slots[slot].Node))) {
			if !strings.HasPrefix(filepath.Base(path), place) {
				continue
			}
			info, err := os.Stat(path)
			if err == nil {
				err = do(path, info.Size())
			}
			if err != nil {
				t.Fatal(err)
			}
			done++
		}
		if done == 0 {
			t.Fatalf("slot %d of %q has no file that begins with %q", slot, key, place)
		}
	}
	// flip turns bits of what the block holds, behind its header; a packed object of 3,000 bytes reaches that far.
	flip := func(path string, size int64) error {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		letter := make([]byte, 1)
		at := size * 2 / 3
		if _, err = file.ReadAt(letter, at); err == nil {
			letter[0] ^= 0x40
			_, err = file.WriteAt(letter, at)
		}
		return errors.Join(err, file.Close())
	}
	truncate := func(path string, size int64) error { return os.Truncate(path, size/2) }
	states := func(key string, arguments ...string) map[string]int {
		t.Helper()
		var stat api.Stat
		if err := json.Unmarshal([]byte(must(t, g.address, append([]string{"stat", key, "-o", "json"}, arguments...)...)), &stat); err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, slot := range stat.Groups[0].Slots {
			count[slot.State]++
		}
		return count
	}
	everything := func() {
		t.Helper()
		for key, data := range objects {
			holds(t, c, key, data)
		}
	}

	// The packed object lies in the first column; the others are empty, and the parities come after them.
	for slot := range 2 {
		damage("own", slot, []func(string, int64) error{flip, truncate}[slot])
		damage("packed", []int{0, 4}[slot], flip)
		damage("copied", slot, []func(string, int64) error{truncate, flip}[slot])
	}
	if found := states("own"); found["missing"] != 1 {
		t.Errorf("stat shows %v; want the truncated block missing", found)
	}
	if found := states("own", "--deep"); found["missing"] != 2 {
		t.Errorf("stat --deep shows %v; want both damaged blocks missing", found)
	}
	everything()
	t.Logf("%s", must(t, g.address, "repair"))
	until(t, "what a read has met is rebuilt", func() bool { return states("own", "--deep")["ok"] == 6 }) // by repair, or by the gateway itself
	everything()
	// What no read has met is found by looking at everything.
	must(t, g.address, "repair", "--deep")
	for key := range objects {
		if found := states(key, "--deep"); found["missing"] != 0 {
			t.Errorf("after the repair stat --deep shows %v of %q", found, key)
		}
	}
	everything()

	// Damage that nobody has read yet: a transition meets it, and an update.
	damage("copied", 2, flip)
	if a := restripe(t, g.address, "move", "copied", "rs(4,2)"); a.code != 0 {
		t.Errorf("moving an object with a corrupt block: %s%s", a.out, a.messages)
	}
	damage("own", 2, flip)
	copy(objects["own"][1_000:], "changed")
	if _, err := c.Update(t.Context(), "own", 1_000, strings.NewReader("changed"), 7); err != nil {
		t.Errorf("updating an object with a corrupt block: %v", err)
	}
	everything()
	must(t, g.address, "repair", "--deep")

	// More than the scheme survives: an error, no bytes, and no file.
	for slot := range 3 {
		damage("own", slot, flip)
	}
	target := filepath.Join(t.TempDir(), "own")
	refused(t, restripe(t, g.address, "get", "own", target), "group")
	if _, err := os.Stat(target); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a read that failed left a file: %v", err)
	}
	refused(t, restripe(t, g.address, "repair", "--deep"), "could not be repaired", "survives the loss of 2")
	delete(objects, "own")
	everything()
}

package clients_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"
)

// notCapable are the tests of memccapable that fail, and why. No others may.
var notCapable = map[string]string{
	"ascii flush":         "flush_all would delete what other clients and other protocols stored, so it is refused",
	"ascii flush noreply": "the same: nothing is said of it, and the object is still there",
}

func (s *suite) memccapable(t *testing.T) {
	host, port := hostAndPort(t, s.first.memcached)
	said := run(t, "", "memccapable", "-h", host, "-p", port, "-a")
	results := regexp.MustCompile(`(ascii(?: [a-z]+)+) +(\[pass\])?`).FindAllStringSubmatch(said.out, -1) // what fails, it says elsewhere
	if len(results) != 27 {
		t.Fatalf("%d of 27 tests were made: %v", len(results), said)
	}
	for _, result := range results {
		name, failed := result[1], result[2] == ""
		reason, expected := notCapable[name]
		switch {
		case failed && !expected:
			t.Errorf("%s fails: %v", name, said)
		case !failed && expected:
			t.Errorf("%s passes: take it off the list of those that fail (%s)", name, reason)
		}
	}
}

func (s *suite) memcslap(t *testing.T) {
	for _, test := range []string{"set", "get", "mget"} {
		said := run(t, "", "memcslap", "--servers="+s.first.memcached, "--concurrency=4", "--execute-number=20", "--initial-load=20",
			"--test="+test)
		if said.code != 0 || said.messages != "" && regexp.MustCompile(`(?i)error|fail`).MatchString(said.messages) ||
			!strings.Contains(said.out+said.messages, "Time total") {
			t.Errorf("memcslap --test=%s: %v", test, said)
		}
	}
}

// libmemcached uses the programs for files and keys that come with libmemcached.
func (s *suite) libmemcached(t *testing.T) {
	servers := "--servers=" + s.first.memcached
	name := filepath.Join(t.TempDir(), "libmemcached-file")
	text := strings.Repeat("a line of a file\n", 1000)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	key := filepath.Base(name)
	run(t, "", "memcping", servers).must(t)
	run(t, "", "memccp", servers, name).must(t)
	if got := run(t, "", "memccat", servers, key).must(t); got != text+"\n" && got != text {
		t.Errorf("memccat prints %d bytes that are not the file's %d", len(got), len(text))
	}
	run(t, "", "memcexist", servers, key).must(t)
	run(t, "", "memctouch", servers, "--expire=100", key).must(t)
	if said := run(t, "", "memcstat", servers).must(t); !strings.Contains(said, "version: 1.6.18-restripe") {
		t.Errorf("memcstat prints %q", said)
	}
	run(t, "", "memcrm", servers, key).must(t)
	for _, program := range []string{"memcexist", "memccat", "memcrm"} {
		if said := run(t, "", program, servers, key); said.code == 0 {
			t.Errorf("%s finds what was removed: %v", program, said)
		}
	}
}

func (s *suite) pymemcache(t *testing.T) {
	if out := runPython(t, "memcached_values.py", s.first.memcached, s.second.memcached).must(t); strings.TrimSpace(out) != "done" {
		t.Errorf("it ends with %q", out)
	}
}

func (s *suite) gomemcache(t *testing.T) {
	m := memcache.New(s.first.memcached, s.second.memcached)
	m.Timeout = patience
	defer m.Close()
	if err := m.Ping(); err != nil {
		t.Error(err)
	}
	const key = "gomemcache/a"
	if err := m.Set(&memcache.Item{Key: key, Value: []byte("one"), Flags: 7, Expiration: 100}); err != nil {
		t.Error(err)
	}
	if err := m.Add(&memcache.Item{Key: key, Value: []byte("no")}); !errors.Is(err, memcache.ErrNotStored) {
		t.Errorf("add to what is there: %v", err)
	}
	item, err := m.Get(key)
	if err != nil || string(item.Value) != "one" || item.Flags != 7 {
		t.Fatalf("get: %+v, %v", item, err)
	}
	if err := m.Append(&memcache.Item{Key: key, Value: []byte("+")}); err != nil {
		t.Error(err)
	}
	item.Value = []byte("stale")
	if err := m.CompareAndSwap(item); !errors.Is(err, memcache.ErrCASConflict) {
		t.Errorf("cas of what was changed: %v", err)
	}
	if item, err = m.Get(key); err != nil || string(item.Value) != "one+" || item.Flags != 7 {
		t.Fatalf("get: %+v, %v", item, err)
	}
	item.Value = []byte("41")
	if err := m.CompareAndSwap(item); err != nil {
		t.Errorf("cas: %v", err)
	}
	if got, err := m.Increment(key, 1); err != nil || got != 42 {
		t.Errorf("incr: %d, %v", got, err)
	}
	if err := m.Touch(key, 200); err != nil {
		t.Error(err)
	}
	var keys []string
	for i := range 40 {
		keys = append(keys, fmt.Sprintf("gomemcache/many/%02d", i))
		if err := m.Set(&memcache.Item{Key: keys[i], Value: []byte(keys[i])}); err != nil {
			t.Error(err)
		}
	}
	items, err := m.GetMulti(append(slices.Clone(keys), "gomemcache/none"))
	if err != nil || len(items) != len(keys) {
		t.Errorf("%d of %d items are found, %v", len(items), len(keys), err)
	}
	for _, key := range keys {
		if items[key] == nil || string(items[key].Value) != key {
			t.Errorf("%s is %+v", key, items[key])
		}
	}
	if err := m.Delete(key); err != nil {
		t.Error(err)
	}
	if _, err := m.Get(key); !errors.Is(err, memcache.ErrCacheMiss) {
		t.Errorf("get of what was deleted: %v", err)
	}
}

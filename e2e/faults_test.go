package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
)

// faultClasses has a class that six nodes carry with one to spare, and one that they cannot.
const faultClasses = `classes:
- name: default
  ladder: rep(2),rs(2,1),rs(4,1)
  prefixes: [""]
  packBelow: 8KiB
  groupBytes: 64KiB
- name: wide
  ladder: rs(4,1),rs(8,3)
  prefixes: ["wide/"]
`

// TestBadInput types what cannot work. Each case must be refused with the cause and the cure, and must leave everything
// as it was.
func TestBadInput(t *testing.T) {
	t.Parallel()
	g := gatewayOver(t, faultClasses, agentsOver(t, directories(t, 6)...)...)
	c := clientOf(t, g.address)
	data := noise(1, 20_000)
	file := write(t, "file", string(data))
	put(t, c, "kept", data, client.PutOptions{})
	before := must(t, g.address, "ls", "-o", "json")
	cases := []struct {
		intent    string
		arguments []string
		code      int
		words     []string
	}{
		{"a scheme nobody knows", []string{"put", file, "k", "--scheme", "banana"}, 1, []string{`no scheme is called "banana"`, "write rep(3)"}},
		{"more parity than there is a matrix for", []string{"put", file, "k", "--scheme", "rs(4,9)"}, 1, []string{"too many parity blocks", "use at most m = 8"}},
		{"a stripe of nothing", []string{"put", file, "k", "--scheme", "rs(0,1)"}, 1, []string{"at least one data block", "use k from 1 to 64"}},
		{"a stripe wider than any layout", []string{"put", file, "k", "--scheme", "rs(65,1)"}, 1, []string{"too many data blocks", "use at most k = 64"}},
		{"a scheme off the ladder", []string{"put", file, "k", "--scheme", "rs(3,1)"}, 1, []string{"rs(3,1) is not on the ladder rep(2),rs(2,1),rs(4,1) of class default", "choose one of its schemes"}},
		{"an unknown class", []string{"put", file, "k", "--class", "nope"}, 1, []string{`no class "nope"`, "the classes are default, wide"}},
		{"a ladder wider than the nodes", []string{"put", file, "wide/k"}, 1, []string{"class wide (ladder rs(4,1),rs(8,3))", "over 11 nodes", "6 of 6 nodes", "add some, or use a narrower ladder"}},
		{"a put over what is there", []string{"put", file, "kept", "--if-absent"}, 1, []string{"there is an object of this key already", "nothing was changed"}},
		{"a put over another revision", []string{"put", file, "kept", "--if-revision", "0000000000000001.00000000000000aa"}, 1, []string{"is not at revision 0000000000000001", "`restripe stat KEY` shows the present one"}},
		{"an empty key", []string{"put", file, ""}, 2, []string{"the KEY is empty", "1 to 4096 bytes"}},
		{"a key over the limit", []string{"put", file, strings.Repeat("k", 4097)}, 1, []string{"a key has 1 to 4096 bytes, this one has 4097"}},
		{"a file that is not there", []string{"put", "/no/such/file", "k"}, 1, []string{"/no/such/file", "no such file"}},
		{"an object that is not there", []string{"get", "k"}, 1, []string{`object "k"`, "no such object"}},
		{"a range behind the end", []string{"get", "kept", "--range", "20000-"}, 1, []string{"bytes=20000-", "20000 bytes", "from 0 to 19999"}},
		{"a move off the ladder", []string{"move", "kept", "rs(3,1)"}, 1, []string{"scheme rs(3,1) is not on the ladder rep(2),rs(2,1),rs(4,1)", "put this one on the ladder"}},
		{"a move of nothing", []string{"move", "k", "rs(2,1)"}, 1, []string{`object "k"`, "no such object"}},
		{"a transition off the ladder", []string{"transition", "start", "--to", "rs(3,1)", "--class", "default"}, 1, []string{"rs(3,1) is not on the ladder", "choose one of its schemes"}},
		{"a transition of an unknown class", []string{"transition", "start", "--to", "rs(2,1)", "--class", "nope"}, 1, []string{`no class "nope"`, "the classes are default, wide"}},
		{"a transition to no scheme", []string{"transition", "start", "--to", "rs(2", "--class", "default"}, 2, []string{"rs(2"}},
		{"k over the columns, planned", []string{"plan", "--from", "rs(4,3)", "--to", "rs(5,3)", "--columns", "3"}, 1, []string{"over 3 columns", "needs 5 columns; use at least as many"}},
		{"k over the columns, laid out", []string{"layout", "--ladder", "rs(4,3),rs(5,3)", "--columns", "3"}, 1, []string{"over 3 columns", "needs 5 columns; use at least as many"}},
		{"a plan off the ladder", []string{"plan", "--from", "rs(2,3)", "--to", "rs(4,3)", "--ladder", "rs(2,3),rs(8,3)"}, 1, []string{"rs(4,3) is no step of the ladder rs(2,3),rs(8,3)", "choose one of its steps"}},
	}
	for _, test := range cases {
		t.Run(test.intent, func(t *testing.T) {
			a := restripe(t, g.address, test.arguments...)
			refused(t, a, test.words...)
			if a.code != test.code || a.out != "" {
				t.Errorf("exit code %d, output %q; want code %d and no output", a.code, a.out, test.code)
			}
		})
	}
	t.Run("uploads that break off", func(t *testing.T) { breakOff(t, g.address) })
	if after := must(t, g.address, "ls", "-o", "json"); after != before {
		t.Errorf("the objects before:\n%s\nand after:\n%s", before, after)
	}
	holds(t, c, "kept", data)
	atRest(t, c)
}

// breakOff begins uploads and hangs up in the middle: small and large, of announced and of unknown length.
func breakOff(t *testing.T, address string) {
	body := strings.Repeat("x", 150_000)
	for _, upload := range []string{
		"Content-Length: 5000\r\n\r\n" + body[:100],
		"Content-Length: 300000\r\n\r\n" + body,
		"Transfer-Encoding: chunked\r\n\r\n64\r\n" + body[:100] + "\r\n",
		fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(body), body),
	} {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(connection, "PUT /v1/objects/half HTTP/1.1\r\nHost: gateway\r\n"+upload)
		if err := errors.Join(err, connection.(*net.TCPConn).CloseWrite()); err != nil {
			t.Fatal(err)
		}
		// The gateway has taken note once it answers or hangs up.
		if err := connection.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		reply, err := io.ReadAll(connection)
		if strings.HasPrefix(string(reply), "HTTP/1.1 2") {
			t.Errorf("half an upload was taken: %s", reply)
		}
		if err := errors.Join(err, connection.Close()); err != nil {
			t.Errorf("hanging up: %v", err)
		}
	}
}

// TestBadConfiguration starts servers with settings that cannot work: they say why and end, and leave nothing behind.
func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	classes := func(text string) []string {
		return []string{"gateway", "--catalog", "sqlite:" + t.TempDir() + "/catalog.db", "--listen", "127.0.0.1:0", "--classes", write(t, "classes.yaml", text)}
	}
	cases := []struct {
		intent    string
		arguments []string
		words     []string
	}{
		{"a ladder with no such scheme", classes(`classes: [{name: x, ladder: "rs(4,1),rx(5,1)"}]`), []string{"classes.yaml", `class 1 ("x"), ladder`, "character 9", "rx"}},
		{"a ladder with too much parity", classes(`classes: [{name: x, ladder: "rs(4,9)"}]`), []string{`class 1 ("x"), ladder`, "use at most m = 8"}},
		{"a ladder whose groups would be too tall", classes(`classes: [{name: x, ladder: "rs(13,1),rs(11,1),rs(7,1),rs(16,1)"}]`), []string{`class 1 ("x"), ladder`, "rows", "choose schemes whose k divide the widest one"}},
		{"a default off the ladder", classes(`classes: [{name: x, ladder: "rs(4,1)", default: "rs(2,1)"}]`), []string{`class 1 ("x"), default`, "choose a scheme of the ladder"}},
		{"a misspelt field", classes(`classes: [{name: x, laddr: "rs(4,1)"}]`), []string{"classes.yaml", `unknown field "laddr"`}},
		{"no class", classes(`classes: []`), []string{"no classes; give at least one entry"}},
		{"groups too large for memory", classes(`classes: [{name: x, ladder: "rs(4,1)", groupBytes: 1TiB}]`), []string{"groupBytes", "is outside"}},
		{"a class file that is not there", []string{"gateway", "--catalog", "sqlite:" + t.TempDir() + "/c.db", "--classes", "/no/classes.yaml"}, []string{"/no/classes.yaml", "no such file"}},
		{"a member without an address", []string{"gateway", "--catalog", "sqlite:" + t.TempDir() + "/c.db", "--nodes", write(t, "nodes.yaml", "nodes: [{id: n1}]")}, []string{"nodes.yaml", "node 1 (n1)", "want host:port"}},
		{"a store of no kind", []string{"agent", "--id", "n1", "--store", "tape:x"}, []string{`unknown scheme "tape"`, "memcached://host:port"}},
		{"a memcached that is down", []string{"agent", "--id", "n1", "--store", "memcached://127.0.0.1:1"}, []string{"opening the store of n1", "127.0.0.1:1", "does not answer", "see that the server runs"}},
		{"a Redis that is down", []string{"agent", "--id", "n1", "--store", "redis://127.0.0.1:1"}, []string{"opening the store of n1", "127.0.0.1:1", "does not answer", "see that the server runs"}},
		{"a catalog that is down", []string{"gateway", "--catalog", "redis://127.0.0.1:1"}, []string{"opening the catalog", "127.0.0.1:1", "see that the server runs"}},
		{"a directory that is somebody else's", []string{"agent", "--id", "n1", "--store", "file:/usr"}, []string{"directory is not a store", "/usr holds other files", "choose an empty directory"}},
	}
	for _, test := range cases {
		t.Run(test.intent, func(t *testing.T) { refused(t, restripe(t, "", test.arguments...), test.words...) })
	}
}

// TestKeysOfAnyBytes takes keys that names of files, paths of URLs and lines of text would trip over, with objects of no
// bytes and of a few, through everything that can be done to an object.
func TestKeysOfAnyBytes(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	g := gatewayOver(t, faultClasses, agentsOver(t, directories(t, 6)...)...)
	c := clientOf(t, g.address)
	keys := []string{
		".", "..", "/", "//", "a/../b", "./a", "%2F", "%", "%zz", "a%00b", "?x=1#y", "a b", " ", "\n", "\r\n", "\t", `"`, "'", `\`, "ключ", "\u202e", "\xff\xfe",
		"-", "--help", "kept\x00", strings.Repeat("/", 4096), strings.Repeat("\xff", 4096), strings.Repeat(".", 4096),
	}
	for letter := range 256 {
		keys = append(keys, "byte-"+string([]byte{byte(letter)}))
	}
	for range 60 {
		key := make([]byte, 1+random.IntN(4096))
		for i := range key {
			key[i] = byte(random.Uint32())
		}
		keys = append(keys, string(key))
	}
	sizeOf := func(key string) int { return []int{0, 1, 100, 9_000}[len(key)%4] } // none, packed, packed, alone
	each(t, keys, func(key string) error {
		data := noise(uint64(len(key)), sizeOf(key))
		_, err := c.Put(t.Context(), key, bytes.NewReader(data), client.PutOptions{Size: int64(len(data)), SizeKnown: len(key)%2 == 0})
		return err
	})
	var listed []string
	for object, err := range c.Objects(t.Context(), "") {
		if err != nil {
			t.Fatalf("listing: %v", err)
		}
		key, err := api.DecodeKey(object.Key64)
		if err != nil {
			t.Fatalf("listing %q: %v", object.Key64, err)
		}
		listed = append(listed, key)
	}
	slices.Sort(keys)
	if !slices.Equal(listed, keys) {
		t.Errorf("%d keys listed that are not the %d stored, in their order", len(listed), len(keys))
	}
	if lines := strings.Count(must(t, g.address, "ls", "-o", "name", "--limit", "0"), "\n"); lines != len(keys) {
		t.Errorf("ls -o name prints %d lines for %d keys", lines, len(keys))
	}
	check := func(key string) error {
		data, err := fetch(t.Context(), c, key)
		if err == nil && !bytes.Equal(data, noise(uint64(len(key)), sizeOf(key))) {
			err = errors.New("other bytes came back")
		}
		return err
	}
	each(t, keys, check)
	if a := restripe(t, g.address, "transition", "start", "--to", "rs(4,1)", "--class", "default", "--wait"); a.code != 0 {
		t.Errorf("a transition over all keys: %s%s", a.out, a.messages)
	}
	each(t, keys, check)
	each(t, keys, func(key string) error {
		stat, err := c.Stat(t.Context(), key)
		if err == nil && stat.Key64 != api.EncodeKey(key) {
			err = fmt.Errorf("stat shows %.80s", stat.Key)
		}
		if size := sizeOf(key); err == nil && size > 0 {
			_, err = c.Update(t.Context(), key, int64(size-1), bytes.NewReader([]byte{'!'}), 1)
		}
		return err
	})
	some := keys[:40]
	each(t, some, func(key string) error {
		_, err := c.Move(t.Context(), key, "rs(2,1)")
		return err
	})
	each(t, keys, func(key string) error {
		for err := c.Delete(t.Context(), key); ; err = c.Delete(t.Context(), key) {
			if !errors.Is(err, api.ErrUnavailable) && !errors.Is(err, api.ErrConflict) { // the move is still under way
				return err
			}
		}
	})
	if left := must(t, g.address, "ls", "-o", "name"); left != "" {
		t.Errorf("left after all were deleted:\n%s", left)
	}
}

// each applies act to all keys, several at a time, and fails the test where it fails.
func each(t *testing.T, keys []string, act func(key string) error) {
	t.Helper()
	var workers errgroup.Group
	workers.SetLimit(24)
	var mutex sync.Mutex
	failed := 0
	for _, key := range keys {
		workers.Go(func() error {
			if err := act(key); err != nil {
				mutex.Lock()
				defer mutex.Unlock()
				if failed++; failed <= 5 {
					t.Errorf("key of %d bytes %.60q: %v", len(key), key, err)
				}
			}
			return nil
		})
	}
	if err := workers.Wait(); err != nil {
		t.Error(err)
	}
	if failed > 0 {
		t.Fatalf("%d of %d keys failed", failed, len(keys))
	}
}

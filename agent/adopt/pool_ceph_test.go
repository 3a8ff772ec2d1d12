//go:build ceph

package adopt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ceph/go-ceph/rados"
	"github.com/google/go-cmp/cmp"

	"github.com/restripe/restripe/agent/store/ceph/cephtest"
	"github.com/restripe/restripe/agent/store/ceph/pools"
)

// realCluster is a cluster with the pools replicated, other and coded (2+1).
type realCluster struct {
	*cephtest.Cluster
	connection *pools.Connection
}

func startCeph(t *testing.T, options cephtest.Options) *realCluster {
	t.Helper()
	cluster := cephtest.Start(t, options)
	c := &realCluster{Cluster: cluster}
	c.must(t, "osd erasure-code-profile set", map[string]any{"name": "two", "profile": []string{"k=2", "m=1", "crush-failure-domain=osd"}})
	c.must(t, "osd pool create", map[string]any{"pool": "coded", "pg_num": 4, "pool_type": "erasure", "erasure_code_profile": "two"})
	for _, name := range []string{"replicated", "other"} {
		c.must(t, "osd pool create", map[string]any{"pool": name, "pg_num": 4, "pool_type": "replicated"})
	}
	if err := cluster.AwaitServing(); err != nil {
		t.Fatal(err)
	}
	var err error
	c.connection, err = pools.Connect(t.Context(), pools.Access{Config: cluster.Config(), Keyring: cluster.Keyring(), Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.connection.Close)
	return c
}

func (c *realCluster) must(t *testing.T, prefix string, arguments map[string]any) {
	t.Helper()
	if _, err := c.Command(prefix, arguments); err != nil {
		t.Fatal(err)
	}
}

// io opens a context for the test itself.
func (c *realCluster) io(t *testing.T, pool string) *rados.IOContext {
	t.Helper()
	io, err := c.connection.Rados().OpenIOContext(pool)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(io.Destroy)
	return io
}

func (c *realCluster) pool(t *testing.T, options PoolOptions) *Pool {
	t.Helper()
	pool, err := OpenPool(c.connection, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// job runs a job with a journal.
func job(t *testing.T, source Source, target Target, path string, options Options) Report {
	t.Helper()
	journal, err := OpenJournal(t.Context(), path, "a test")
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	j, err := NewJob(source, target, journal, options)
	if err != nil {
		t.Fatal(err)
	}
	report, err := j.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// content returns bytes that are the same for the same seed.
func content(seed uint64, size int) string {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	data := make([]byte, size)
	if _, err := rand.NewChaCha8(key).Read(data); err != nil {
		panic(err) // it never fails, by its documentation: an invariant
	}
	return string(data)
}

// sizes around the borders of pieces and of what is written at once.
var sizes = []int{0, 1, 4095, 100_000, pieceBytes, pieceBytes + 1, writtenAtOnce, writtenAtOnce + 1, 3*pieceBytes + 77}

func TestRealPools(t *testing.T) {
	c := startCeph(t, cephtest.Options{Hosts: 3})
	objects := map[string]string{}
	for i, size := range sizes {
		objects[fmt.Sprintf("objects/%d", size)] = content(uint64(i), size)
	}

	t.Run("there-and-back", func(t *testing.T) {
		folder, middle := t.TempDir(), newMemory(nil)
		coded, replicated := c.pool(t, PoolOptions{Name: "coded"}), c.pool(t, PoolOptions{Name: "replicated", Prefix: "objects/"})
		for step, ends := range []struct {
			source Source
			target Target
		}{{newMemory(objects), coded}, {coded, replicated}, {replicated, middle}} {
			report := job(t, ends.source, ends.target, filepath.Join(folder, fmt.Sprint(step)), Options{})
			if !report.Complete() || report.Carried != int64(len(objects)) {
				t.Fatalf("step %d: %+v", step, report)
			}
		}
		if diff := cmp.Diff(objects, middle.contents()); diff != "" {
			t.Error("the objects differ in the end")
		}
		survey, err := replicated.Survey(t.Context())
		if err != nil || survey.Objects != int64(len(objects)) || survey.Elsewhere != 0 {
			t.Errorf("the survey is %+v, %v", survey, err)
		}
	})

	t.Run("what-cannot-be-held-is-refused", func(t *testing.T) {
		io := c.io(t, "other")
		io.SetNamespace("attributes")
		for _, name := range []string{"plain", "xattr", "omap", "part", "half"} {
			if err := io.WriteFull(name, []byte(name)); err != nil {
				t.Fatal(err)
			}
		}
		err := errors.Join(io.SetXattr("xattr", "colour", []byte("red")), io.SetOmap("omap", map[string][]byte{"k": []byte("v")}),
			io.SetXattr("part", "striper.size", []byte("9")), io.SetXattr("half", unfinishedMark, []byte("1")))
		if err != nil {
			t.Fatal(err)
		}
		report := job(t, c.pool(t, PoolOptions{Name: "other", Namespace: "attributes"}), newMemory(nil), filepath.Join(t.TempDir(), "j"), Options{})
		if report.Carried != 1 || report.Refused != 4 || report.Failed != 0 {
			t.Errorf("all refused: %+v", report)
		}
		report = job(t, c.pool(t, PoolOptions{Name: "other", Namespace: "attributes", DropXattrs: true, DropOmap: true}), newMemory(nil), filepath.Join(t.TempDir(), "j"), Options{})
		if report.Carried != 3 || report.Refused != 2 {
			t.Errorf("some left out: %+v", report)
		}
		survey, err := c.pool(t, PoolOptions{Name: "other"}).Survey(t.Context())
		if err != nil || survey.Objects != 0 || survey.Elsewhere != 5 {
			t.Errorf("the survey is %+v, %v", survey, err)
		}
	})

	t.Run("other-programs-are-recognised", func(t *testing.T) {
		io := c.io(t, "other")
		io.SetNamespace("telling")
		pool := c.pool(t, PoolOptions{Name: "other", Namespace: "telling"})
		for _, name := range []string{"10000000001.00000000", "5ab4.4137.1_photo.jpg"} {
			if err := io.WriteFull(name, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := pool.Survey(t.Context()); err != nil {
			t.Errorf("names alone: %v", err)
		}
		for name, attribute := range map[string]string{"10000000001.00000000": "parent", "5ab4.4137.1_photo.jpg": "user.rgw.idtag"} {
			if err := io.SetXattr(name, attribute, []byte("x")); err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Survey(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s with %s: %v", name, attribute, err)
			}
			if err := io.Delete(name); err != nil {
				t.Fatal(err)
			}
		}
		if err := io.WriteFull("rbd_directory", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Survey(t.Context()); err == nil || !strings.Contains(err.Error(), "block devices") {
			t.Errorf("rbd_directory: %v", err)
		}
	})

	t.Run("a-user-who-may-only-read-adopts", func(t *testing.T) {
		keyring, err := c.CreateUser("reader", "mon", "allow r", "osd", "allow r pool=coded")
		if err != nil {
			t.Fatal(err)
		}
		user := &realCluster{Cluster: c.Cluster}
		if user.connection, err = pools.Connect(t.Context(), pools.Access{Config: c.Config(), Keyring: keyring, User: "reader"}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(user.connection.Close)
		pool := user.pool(t, PoolOptions{Name: "coded"})
		if survey, err := pool.Survey(t.Context()); err != nil || survey.Objects != int64(len(objects)) {
			t.Errorf("the survey is %+v, %v", survey, err)
		}
		if report := job(t, pool, newMemory(nil), filepath.Join(t.TempDir(), "j"), Options{}); !report.Complete() {
			t.Errorf("the report is %+v", report)
		}
		version, err := pool.Stat(t.Context(), "objects/1")
		if err != nil {
			t.Fatal(err)
		}
		if err := pool.Trim(t.Context(), "objects/1", version); !errors.Is(err, ErrStop) {
			t.Errorf("deleting without the right: %v", err)
		}
		if _, err := user.pool(t, PoolOptions{Name: "other"}).Stat(t.Context(), "o"); !errors.Is(err, ErrStop) {
			t.Errorf("reading another pool: %v", err)
		}
	})
	t.Run("monitors-restart", func(t *testing.T) {
		middle := newMemory(nil)
		var once sync.Once
		middle.onRead = func(string) {
			once.Do(func() {
				if err := c.StopMon(); err != nil {
					t.Error(err)
				}
			})
		}
		if report := job(t, c.pool(t, PoolOptions{Name: "coded"}), middle, filepath.Join(t.TempDir(), "j"), Options{}); !report.Complete() {
			t.Errorf("the report is %+v", report)
		}
		if err := c.StartMon(); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a-full-pool-ends-an-export", func(t *testing.T) {
		pool := c.pool(t, PoolOptions{Name: "replicated"})
		// The client, and with it the OSDs that it writes to, may not know yet what the monitors do.
		if err := errors.Join(c.LimitPool("replicated", 1000, true), c.connection.Rados().WaitForLatestOSDMap()); err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Put(t.Context(), "one more", strings.NewReader("x"), 1, Expectation{}); !errors.Is(err, ErrStop) || !strings.Contains(err.Error(), "full") {
			t.Errorf("writing into a full pool: %v", err)
		}
		version, err := pool.Stat(t.Context(), "objects/1")
		if err != nil {
			t.Fatal(err)
		}
		if err := pool.Trim(t.Context(), "objects/1", version); err != nil {
			t.Errorf("deleting from a full pool: %v", err)
		}
		if err := c.LimitPool("replicated", 0, false); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("changes-are-noticed", func(t *testing.T) { changesAreNoticed(t, c) })
	t.Run("a-write-that-did-not-end", func(t *testing.T) { unfinishedWrites(t, c) })
}

// changesAreNoticed changes objects between the operations of reading, writing and deleting.
func changesAreNoticed(t *testing.T, c *realCluster) {
	own := c.io(t, "other")
	own.SetNamespace("changing")
	pool := c.pool(t, PoolOptions{Name: "other", Namespace: "changing"})
	set := func(data string) Version {
		t.Helper()
		if err := own.WriteFull("o", []byte(data)); err != nil {
			t.Fatal(err)
		}
		version, err := pool.Stat(t.Context(), "o")
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	first := set(content(1, pieceBytes+1))
	reading, err := pool.Open(t.Context(), "o")
	if err != nil {
		t.Fatal(err)
	}
	defer reading.Close()
	if _, err := io.CopyN(io.Discard, reading, pieceBytes); err != nil {
		t.Fatal(err)
	}
	second := set(content(2, pieceBytes+1))
	if _, err := io.ReadAll(reading); !errors.Is(err, ErrChanged) {
		t.Errorf("reading on: %v", err)
	}
	if err := pool.Trim(t.Context(), "o", first); !errors.Is(err, ErrChanged) {
		t.Errorf("deleting an older version: %v", err)
	}
	put := func(expected Expectation) error {
		_, err := pool.Put(t.Context(), "o", bytes.NewReader([]byte("xy")), 2, expected)
		return err
	}
	if err := put(Expectation{}); !errors.Is(err, ErrConflict) {
		t.Errorf("writing where nothing is expected: %v", err)
	}
	if err := put(Expectation{Version: first.Tag}); !errors.Is(err, ErrConflict) {
		t.Errorf("writing over an older version: %v", err)
	}
	if err := put(Expectation{Version: second.Tag}); err != nil {
		t.Errorf("writing over the version that is there: %v", err)
	}
	if err := put(Expectation{Any: true}); err != nil {
		t.Errorf("writing over whatever there is: %v", err)
	}
	third, err := pool.Stat(t.Context(), "o")
	if err != nil {
		t.Fatal(err)
	}
	if err := pool.Trim(t.Context(), "o", third); err != nil {
		t.Errorf("deleting the version that is there: %v", err)
	}
	if err := pool.Trim(t.Context(), "o", third); !errors.Is(err, ErrGone) {
		t.Errorf("deleting what is gone: %v", err)
	}
	if _, err := pool.Open(t.Context(), "o"); !errors.Is(err, ErrGone) {
		t.Errorf("opening what is gone: %v", err)
	}
	for _, name := range []string{"", "a\x00b"} {
		var refused *RefusalError
		if _, err := pool.Put(t.Context(), name, bytes.NewReader(nil), 0, Expectation{}); !errors.As(err, &refused) {
			t.Errorf("the name %q: %v", name, err)
		}
	}
}

// unfinishedWrites breaks off the writing of a large object, which leaves a part that nobody takes for the whole.
func unfinishedWrites(t *testing.T, c *realCluster) {
	for _, name := range []string{"other", "coded"} {
		pool := c.pool(t, PoolOptions{Name: name})
		size := int64(writtenAtOnce + 2*pieceBytes)
		broken := io.MultiReader(strings.NewReader(content(3, writtenAtOnce+pieceBytes)), failingReader{})
		if _, err := pool.Put(t.Context(), "large", broken, size, Expectation{}); !errors.Is(err, errMemory) {
			t.Fatalf("%s: a body that breaks: %v", name, err)
		}
		var refused *RefusalError
		if _, err := pool.Open(t.Context(), "large"); !errors.As(err, &refused) {
			t.Errorf("%s: opening the part: %v", name, err)
		}
		whole := content(4, int(size))
		if _, err := pool.Put(t.Context(), "large", strings.NewReader(whole), size, Expectation{}); err != nil {
			t.Fatalf("%s: writing it again: %v", name, err)
		}
		reading, err := pool.Open(t.Context(), "large")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(reading); err != nil || string(got) != whole {
			t.Errorf("%s: %d bytes came back, %v", name, len(got), err)
		}
		if err := reading.Close(); err != nil {
			t.Error(err)
		}
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errMemory }

// TestAdoptionOverTheDeathOfAnOSD kills an OSD in the middle, brings it back, and loses nothing.
func TestAdoptionOverTheDeathOfAnOSD(t *testing.T) {
	c := startCeph(t, cephtest.Options{Hosts: 3, Bluestore: true})
	objects := map[string]string{}
	own := c.io(t, "replicated") // of size 1: what is on a dead OSD waits for it
	for i := range 60 {
		name := fmt.Sprint("o", i)
		objects[name] = content(uint64(i), 200_000)
		if err := own.WriteFull(name, []byte(objects[name])); err != nil {
			t.Fatal(err)
		}
	}
	back := make(chan error, 1)
	killOSD := func() {
		if err := c.KillOSD(1); err != nil {
			t.Error(err)
		}
		go func() { back <- errors.Join(c.AwaitDown(1), c.StartOSD(1)) }()
	}
	// A listing that begins while the OSD is dead waits for it.
	killOSD()
	if survey, err := c.pool(t, PoolOptions{Name: "replicated"}).Survey(t.Context()); err != nil || survey.Objects != 60 {
		t.Errorf("the survey is %+v, %v", survey, err)
	}
	if err := <-back; err != nil {
		t.Fatal(err)
	}

	target := newMemory(nil)
	var once sync.Once
	target.onRead = func(string) {
		if len(target.contents()) < 20 {
			return
		}
		once.Do(killOSD)
	}
	report := job(t, c.pool(t, PoolOptions{Name: "replicated"}), target, filepath.Join(t.TempDir(), "j"), Options{Trim: true})
	if err := <-back; err != nil {
		t.Fatal(err)
	}
	if !report.Complete() || report.Carried != 60 || report.Trimmed != 60 {
		t.Errorf("the report is %+v", report)
	}
	if diff := cmp.Diff(objects, target.contents()); diff != "" {
		t.Error("objects differ")
	}
}

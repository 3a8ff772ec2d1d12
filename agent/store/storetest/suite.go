package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/store"
)

// Options adapt the suite to a backend. The zero Options are the defaults.
type Options struct {
	// LargeBytes is the size of the large values; it should be over what the backend keeps in one piece. Default 3 MiB.
	LargeBytes int

	// Small returns an empty store that is full after about SmallBytes of values; nil skips what needs that.
	Small func(t testing.TB) store.Store

	// Crashing returns a store whose server can be killed; nil skips what needs that.
	Crashing func(t testing.TB) Crashing
}

// SmallBytes is about what a store made by Options.Small holds: between a quarter of it and four times as much.
const SmallBytes = 16 << 20

// Crashing is a store with the means to crash its server.
type Crashing struct {
	Store   store.Store
	Kill    func() // ends the server as kill -9 does
	Restart func() // starts it again over what it kept
}

// Run runs the suite. newStore returns an empty store, which the suite closes.
func Run(t *testing.T, newStore func(t testing.TB) store.Store, options Options) {
	t.Helper()
	if options.LargeBytes == 0 {
		options.LargeBytes = 3 << 20
	}
	tests := []struct {
		name string
		run  func(t *testing.T, s store.Store, options Options)
	}{
		{"a value comes back as it was, also in ranges", testRanges},
		{"a read is short only at the end", testShortReads},
		{"several reads at once are what each is by itself", testReadMany},
		{"an empty value is a value", testEmpty},
		{"an absent key is not found", testAbsent},
		{"create never overwrites", testCreateOnly},
		{"a value is created between two readings of another", testBetween},
		{"delete removes, and may be repeated", testDelete},
		{"buffers are not shared with the store", testAliasing},
		{"keys are taken as they are, up to 200 bytes", testKeys},
		{"keys that are none are refused", testBadKeys},
		{"an ended context ends the operation", testContext},
		{"list shows every key once, with its size", testList},
		{"pages show every key once, in one order whatever their length", testPages},
		{"a page may be asked for again, and listings may cross", testPagesAgain},
		{"pages show what stays while others come and go", testPagesMeanwhile},
		{"of 64 creators of a key exactly one wins", testCreators},
		{"readers see a whole value or none while it is created and deleted", testTearing},
		{"any sequence of operations behaves like a map", testModel},
		{"info says what kind of store it is", testInfo},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newStore(t)
			defer closeStore(t, s)
			test.run(t, s, options)
		})
	}
	if options.Small != nil {
		t.Run("a full store says so, keeps what it has, and takes more once there is room", func(t *testing.T) {
			s := options.Small(t)
			defer closeStore(t, s)
			testFull(t, s, options)
		})
	}
	if options.Crashing != nil {
		t.Run("a crash of the server tears no value", func(t *testing.T) {
			crashing := options.Crashing(t)
			defer closeStore(t, crashing.Store)
			testCrash(t, crashing, options)
		})
	}
}

func closeStore(t testing.TB, s store.Store) {
	if err := s.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
}

// content returns the bytes that the suite stores under a key: a function of key and size alone, without repetitions.
func content(key string, size int) []byte {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%d %s", size, key)
	var seed [32]byte
	copy(seed[:], fmt.Sprintf("%x", hash.Sum64()))
	value := make([]byte, size)
	source := rand.NewChaCha8(seed)
	_, _ = source.Read(value) // never fails
	return value
}

func create(t testing.TB, s store.Store, key string, value []byte) {
	t.Helper()
	if err := s.Create(t.Context(), key, value); err != nil {
		t.Fatalf("Create(%q, %d bytes): %v", key, len(value), err)
	}
}

// readAll reads the whole value of a key that has at most limit bytes.
func readAll(ctx context.Context, s store.Store, key string, limit int) ([]byte, error) {
	buffer := make([]byte, limit+1)
	count, err := s.ReadAt(ctx, key, buffer, 0)
	return buffer[:count], err
}

func wantValue(t testing.TB, s store.Store, key string, value []byte) {
	t.Helper()
	got, err := readAll(t.Context(), s, key, len(value))
	if err != nil {
		t.Fatalf("ReadAt(%q): %v", key, err)
	}
	if !bytes.Equal(got, value) {
		t.Fatalf("ReadAt(%q) yields %d bytes that differ from the %d stored", key, len(got), len(value))
	}
}

func wantError(t testing.TB, err, want error, doing string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: error %v, want %v", doing, err, want)
	}
}

// sizes are those a backend might treat differently.
func sizes(options Options) []int {
	return []int{1, 2, 511, 4096, 65537, 1<<20 - 1, 1 << 20, options.LargeBytes, options.LargeBytes + 1}
}

func testRanges(t *testing.T, s store.Store, options Options) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, size := range sizes(options) {
		key := fmt.Sprintf("size/%d", size)
		value := content(key, size)
		create(t, s, key, value)
		wantValue(t, s, key, value)
		for range 20 {
			from := random.IntN(size)
			to := from + random.IntN(size-from+1)
			p := make([]byte, to-from)
			count, err := s.ReadAt(t.Context(), key, p, int64(from))
			if err != nil || count != len(p) || !bytes.Equal(p, value[from:to]) {
				t.Fatalf("ReadAt(%q, %d bytes at %d): %d bytes, error %v, equal %v", key, len(p), from, count, err, bytes.Equal(p, value[from:to]))
			}
		}
	}
}

func testShortReads(t *testing.T, s store.Store, options Options) {
	for _, size := range []int{10, options.LargeBytes} {
		key := fmt.Sprintf("size/%d", size)
		value := content(key, size)
		create(t, s, key, value)
		for _, c := range []struct{ offset, length, want int }{
			{0, size + 100, size}, {size - 3, 3, 3}, {size - 3, 100, 3}, {size, 1, 0}, {size + 7, 10, 0}, {size - 1, 0, 0}, {0, 0, 0},
			{1 << 40, 10, 0},
		} {
			p := bytes.Repeat([]byte{0xa5}, c.length)
			count, err := s.ReadAt(t.Context(), key, p, int64(c.offset))
			if err != nil || count != c.want {
				t.Fatalf("ReadAt(%d bytes at %d) of %d: %d, %v; want %d, nil", c.length, c.offset, size, count, err, c.want)
			}
			if count > 0 && !bytes.Equal(p[:count], value[c.offset:c.offset+count]) {
				t.Fatalf("ReadAt(%d bytes at %d) of %d: wrong bytes", c.length, c.offset, size)
			}
		}
		if _, err := s.ReadAt(t.Context(), key, make([]byte, 1), -1); !errors.Is(err, store.ErrOffset) {
			t.Fatalf("ReadAt(-1): error %v, want %v", err, store.ErrOffset)
		}
	}
}

func testReadMany(t *testing.T, s store.Store, options Options) {
	many, is := s.(store.ManyReader)
	if !is {
		t.Skip("the store reads one value at a time")
	}
	sizes := []int{0, 1, 700, 5000, options.LargeBytes}
	var reads []store.Read
	for _, size := range sizes {
		create(t, s, fmt.Sprint("many/", size), content("many", size))
	}
	large := options.LargeBytes
	keys := []string{"many/700", "many/absent", "many/5000", "many/0", "many/1", "no key", fmt.Sprint("many/", large), "many/5000"}
	for _, key := range keys {
		for _, at := range []struct{ offset, length int }{{0, 700}, {100, 40}, {0, 0}, {699, 2}, {6000, 10}, {large - 5, 10}, {-1, 3}} {
			before := errors.New("of before")
			reads = append(reads, store.Read{Key: key, Into: make([]byte, at.length), Offset: int64(at.offset), Count: 1, Err: before})
		}
	}
	for range 3 { // more of them than go at a time
		reads = append(reads, slices.Clone(reads)...)
	}
	for i := range reads {
		reads[i].Into = make([]byte, len(reads[i].Into))
	}
	many.ReadMany(t.Context(), reads)
	for _, r := range reads {
		want := make([]byte, len(r.Into))
		count, err := s.ReadAt(t.Context(), r.Key, want, r.Offset)
		if r.Count != count || !bytes.Equal(r.Into[:r.Count], want[:count]) {
			t.Errorf("%d bytes of %q from %d on: %d came, %d by themselves, or others", len(r.Into), r.Key, r.Offset, r.Count, count)
		}
		if (r.Err == nil) != (err == nil) || errors.Is(r.Err, store.ErrNotFound) != errors.Is(err, store.ErrNotFound) {
			t.Errorf("%d bytes of %q from %d on: %v, by themselves %v", len(r.Into), r.Key, r.Offset, r.Err, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	many.ReadMany(ended, reads)
	for _, r := range reads {
		if r.Err == nil {
			t.Fatalf("%q was read though the context had ended", r.Key)
		}
	}
}

func testEmpty(t *testing.T, s store.Store, _ Options) {
	create(t, s, "empty", nil)
	wantValue(t, s, "empty", nil)
	wantError(t, s.Create(t.Context(), "empty", []byte("more")), store.ErrExists, "creating it again")
	wantValue(t, s, "empty", nil)
	if err := s.Delete(t.Context(), "empty"); err != nil {
		t.Fatal(err)
	}
	_, err := s.ReadAt(t.Context(), "empty", make([]byte, 1), 0)
	wantError(t, err, store.ErrNotFound, "reading it after its deletion")
}

func testAbsent(t *testing.T, s store.Store, _ Options) {
	for _, length := range []int{0, 1, 1 << 20} {
		for _, offset := range []int64{0, 5, 1 << 40} {
			_, err := s.ReadAt(t.Context(), "absent", make([]byte, length), offset)
			wantError(t, err, store.ErrNotFound, fmt.Sprintf("ReadAt(%d bytes at %d)", length, offset))
		}
	}
}

func testCreateOnly(t *testing.T, s store.Store, options Options) {
	for _, size := range []int{5, options.LargeBytes} {
		key := fmt.Sprintf("size/%d", size)
		value := content(key, size)
		create(t, s, key, value)
		for _, other := range []int{0, size, 5, options.LargeBytes, options.LargeBytes + 1} {
			wantError(t, s.Create(t.Context(), key, content("other", other)), store.ErrExists, fmt.Sprintf("creating %q again with %d bytes", key, other))
			wantValue(t, s, key, value)
		}
		wantError(t, s.Create(t.Context(), key, value), store.ErrExists, "creating it again as it is")
	}
}

func testBetween(t *testing.T, s store.Store, options Options) {
	between, is := s.(store.Between)
	if !is {
		t.Skip("the store does not have this capability")
	}
	const limit = 10
	for i, marker := range []string{"", "short", "longer than the limit"} {
		if marker != "" {
			if err := s.Delete(t.Context(), "marker"); err != nil {
				t.Fatal(err)
			}
			create(t, s, "marker", []byte(marker))
		}
		key := fmt.Sprintf("key/%d", i)
		value := content(key, options.LargeBytes)
		before, after, err := between.CreateBetween(t.Context(), "marker", limit, key, value)
		want := marker[:min(limit, len(marker))]
		if err != nil || string(before) != want || string(after) != want {
			t.Fatalf("creating between readings of %q: %q and %q, error %v", marker, before, after, err)
		}
		wantValue(t, s, key, value)
		_, _, err = between.CreateBetween(t.Context(), "marker", limit, key, content("other", 5))
		wantError(t, err, store.ErrExists, "creating it again")
		wantValue(t, s, key, value)
	}
	_, _, err := between.CreateBetween(t.Context(), "marker", limit, "bad key", nil)
	wantError(t, err, store.ErrKey, "creating under a key that is none")
}

func testDelete(t *testing.T, s store.Store, options Options) {
	for _, size := range []int{5, options.LargeBytes} {
		key, value := "key", content("key", size)
		for range 2 {
			if err := s.Delete(t.Context(), key); err != nil {
				t.Fatalf("deleting an absent key: %v", err)
			}
			create(t, s, key, value)
			create(t, s, key+"/below", value)
			if err := s.Delete(t.Context(), key); err != nil {
				t.Fatalf("deleting: %v", err)
			}
			_, err := readAll(t.Context(), s, key, size)
			wantError(t, err, store.ErrNotFound, "reading a deleted key")
			wantValue(t, s, key+"/below", value)
			if err := s.Delete(t.Context(), key+"/below"); err != nil {
				t.Fatalf("deleting: %v", err)
			}
		}
	}
}

func testAliasing(t *testing.T, s store.Store, options Options) {
	for _, size := range []int{100, options.LargeBytes} {
		key := fmt.Sprintf("size/%d", size)
		value := content(key, size)
		given := bytes.Clone(value)
		create(t, s, key, given)
		clear(given)
		got, err := readAll(t.Context(), s, key, size)
		if err != nil || !bytes.Equal(got, value) {
			t.Fatalf("after changing what was given to Create: error %v, equal %v", err, bytes.Equal(got, value))
		}
		clear(got)
		wantValue(t, s, key, value)
	}
}

// keyGenerator draws keys from all that are allowed, longest ones and troublemakers included.
func keyGenerator() *rapid.Generator[string] {
	printable := rapid.Map(rapid.IntRange('!', '~'), func(i int) byte { return byte(i) })
	return rapid.OneOf(
		rapid.Map(rapid.SliceOfN(printable, 1, store.KeyLimit), func(key []byte) string { return string(key) }),
		rapid.Map(rapid.SliceOfN(printable, store.KeyLimit, store.KeyLimit), func(key []byte) string { return string(key) }),
		rapid.SampledFrom([]string{".", "..", "/", "//", "./..", "../../x", "a/", "/a", "a//b", "%2F", "%", "*", "?", "[a]", `\`, "^", "~", "a:b", "'", `"`, "$x", "-"}),
	)
}

func testKeys(t *testing.T, s store.Store, _ Options) {
	stored := map[string]bool{}
	rapid.Check(t, func(r *rapid.T) {
		for range 2 {
			key := keyGenerator().Draw(r, "key")
			err := s.Create(t.Context(), key, []byte(key))
			if stored[key] && !errors.Is(err, store.ErrExists) || !stored[key] && err != nil {
				r.Fatalf("Create(%q): %v; stored before: %v", key, err, stored[key])
			}
			stored[key] = true
		}
	})
	for key := range stored {
		wantValue(t, s, key, []byte(key))
	}
}

func testBadKeys(t *testing.T, s store.Store, _ Options) {
	long := string(bytes.Repeat([]byte{'k'}, store.KeyLimit+1))
	for _, key := range []string{"", " ", "a b", "a\n", "a\r\nflush_all", "\x00", "ä", "\x7f", "a\t", long} {
		wantError(t, s.Create(t.Context(), key, []byte("x")), store.ErrKey, fmt.Sprintf("Create(%q)", key))
		_, err := s.ReadAt(t.Context(), key, make([]byte, 1), 0)
		wantError(t, err, store.ErrKey, fmt.Sprintf("ReadAt(%q)", key))
		wantError(t, s.Delete(t.Context(), key), store.ErrKey, fmt.Sprintf("Delete(%q)", key))
	}
}

func testContext(t *testing.T, s store.Store, options Options) {
	value := content("there", options.LargeBytes)
	create(t, s, "there", value)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.ReadAt(ended, "there", make([]byte, 10), 0)
	wantError(t, err, context.Canceled, "reading")
	wantError(t, s.Create(ended, "new", value), context.Canceled, "creating")
	wantError(t, s.Delete(ended, "there"), context.Canceled, "deleting")
	if lister, ok := s.(store.Lister); ok {
		err := lister.List(ended, "", func(string, int64) error { return nil })
		wantError(t, err, context.Canceled, "listing")
		wantPageError(t, func(after string) error {
			_, _, err := lister.Page(ended, "", after, 10)
			return err
		}, context.Canceled)
	}
	_, err = readAll(t.Context(), s, "new", 1)
	wantError(t, err, store.ErrNotFound, "reading what was not created")
	wantValue(t, s, "there", value)

	// Contexts that end in the middle leave the store usable and values whole.
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*i)*10*time.Microsecond)
		key := fmt.Sprintf("cut/%d", i)
		err := s.Create(ctx, key, value)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("creating with little time: %v", err)
		}
		got, readErr := readAll(t.Context(), s, key, len(value))
		switch {
		case readErr == nil && bytes.Equal(got, value):
		case errors.Is(readErr, store.ErrNotFound) && err != nil:
		default:
			t.Fatalf("reading what was created with little time (%v): error %v, %d of %d bytes", err, readErr, len(got), len(value))
		}
	}
}

func testList(t *testing.T, s store.Store, options Options) {
	lister := lister(t, s)
	want := map[string]int64{}
	var group sync.WaitGroup
	for i := range 200 {
		key := fmt.Sprintf("b/%04d/%%*[x]", i)
		want[key] = int64(i)
		group.Go(func() {
			if err := s.Create(t.Context(), key, make([]byte, i)); err != nil {
				t.Errorf("creating %q: %v", key, err)
			}
		})
	}
	group.Wait()
	create(t, s, "b/large", content("b/large", options.LargeBytes))
	want["b/large"] = int64(options.LargeBytes)
	create(t, s, "b/gone", nil)
	if err := s.Delete(t.Context(), "b/gone"); err != nil {
		t.Fatal(err)
	}
	create(t, s, "c", []byte("other"))
	list := func(prefix string) map[string]int64 {
		got := map[string]int64{}
		err := lister.List(t.Context(), prefix, func(key string, size int64) error {
			if _, twice := got[key]; twice {
				t.Errorf("List(%q) shows %q twice", prefix, key)
			}
			got[key] = size
			return nil
		})
		if err != nil {
			t.Fatalf("List(%q): %v", prefix, err)
		}
		return got
	}
	compare := func(prefix string, want map[string]int64) {
		got := list(prefix)
		for key, size := range want {
			if gotSize, found := got[key]; !found || gotSize != size {
				t.Errorf("List(%q) shows %q: %v, with %d bytes; want %d", prefix, key, found, gotSize, size)
			}
		}
		if len(got) != len(want) {
			t.Errorf("List(%q) shows %d keys, want %d", prefix, len(got), len(want))
		}
	}
	compare("b/", want)
	compare("b/0007/%*[", map[string]int64{"b/0007/%*[x]": 7})
	compare("nothing", nil)
	want["c"] = 5
	compare("", want)

	stop := errors.New("enough")
	visits := 0
	err := lister.List(t.Context(), "b/", func(key string, _ int64) error {
		visits++
		_, err := readAll(t.Context(), s, key, 1) // visit may use the store
		return errors.Join(err, stop)
	})
	if !errors.Is(err, stop) || visits != 1 {
		t.Errorf("a visit that fails: List returns %v after %d visits, want %v after 1", err, visits, stop)
	}
}

func testCreators(t *testing.T, s store.Store, options Options) {
	const creators = 64
	for _, size := range []int{8, options.LargeBytes / 3, options.LargeBytes} {
		count := creators
		if size > 1<<16 {
			count = 16
		}
		key := fmt.Sprintf("size/%d", size)
		var winner atomic.Int64
		var wins atomic.Int64
		var group sync.WaitGroup
		start := make(chan struct{})
		for i := range count {
			group.Go(func() {
				value := content(fmt.Sprint(i), size)
				<-start
				switch err := s.Create(t.Context(), key, value); {
				case err == nil:
					wins.Add(1)
					winner.Store(int64(i))
				case !errors.Is(err, store.ErrExists):
					t.Errorf("creator %d: %v", i, err)
				}
			})
		}
		close(start)
		group.Wait()
		if wins.Load() != 1 {
			t.Fatalf("%d creators of %q won, want exactly 1", wins.Load(), key)
		}
		wantValue(t, s, key, content(fmt.Sprint(winner.Load()), size))
	}
}

func testTearing(t *testing.T, s store.Store, options Options) {
	const key = "contended"
	value := content(key, options.LargeBytes)
	done := make(chan struct{})
	var group sync.WaitGroup
	var seen atomic.Int64
	for reader := range 4 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(reader)))
			buffer := make([]byte, len(value)+1)
			for {
				select {
				case <-done:
					return
				default:
				}
				from := 0
				if reader%2 == 1 {
					from = random.IntN(len(value))
				}
				count, err := s.ReadAt(t.Context(), key, buffer, int64(from))
				switch {
				case errors.Is(err, store.ErrNotFound):
				case err != nil:
					t.Errorf("reading at %d while the value is created and deleted: %v", from, err)
					return
				case !bytes.Equal(buffer[:count], value[from:]):
					t.Errorf("reading at %d yields %d bytes unlike the value's %d", from, count, len(value)-from)
					return
				default:
					seen.Add(1)
				}
			}
		})
	}
	for range 15 {
		if err := s.Create(t.Context(), key, value); err != nil {
			t.Errorf("creating: %v", err)
			break
		}
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("deleting: %v", err)
			break
		}
	}
	close(done)
	group.Wait()
	t.Logf("%d reads found the value", seen.Load())
}

func testModel(t *testing.T, s store.Store, options Options) {
	lister, canList := s.(store.Lister)
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		prefix := fmt.Sprintf("round/%d/", round)
		model := map[string][]byte{}
		drawKey := func() string { return prefix + rapid.SampledFrom([]string{"a", "b", "c/d"}).Draw(r, "key") }
		for range rapid.IntRange(1, 12).Draw(r, "operations") {
			key := drawKey()
			known, found := model[key]
			switch rapid.SampledFrom([]string{"create", "create", "read", "read", "delete", "list"}).Draw(r, "operation") {
			case "create":
				size := rapid.SampledFrom([]int{0, 1, 100, 5000, 400_000}).Draw(r, "size")
				value := content(fmt.Sprint(len(model), size), size)
				err := s.Create(t.Context(), key, value)
				if found != errors.Is(err, store.ErrExists) || !found && err != nil {
					r.Fatalf("Create(%q): %v; there before: %v", key, err, found)
				}
				if !found {
					model[key] = value
				}
			case "read":
				from := rapid.IntRange(0, len(known)+2).Draw(r, "from")
				p := make([]byte, rapid.IntRange(0, len(known)+2).Draw(r, "length"))
				count, err := s.ReadAt(t.Context(), key, p, int64(from))
				if !found {
					if !errors.Is(err, store.ErrNotFound) {
						r.Fatalf("ReadAt(%q) of an absent key: %v", key, err)
					}
					continue
				}
				want := known[min(from, len(known)):min(from+len(p), len(known))]
				if err != nil || !bytes.Equal(p[:count], want) {
					r.Fatalf("ReadAt(%q, %d bytes at %d): %d bytes, %v; want %d", key, len(p), from, count, err, len(want))
				}
			case "delete":
				if err := s.Delete(t.Context(), key); err != nil {
					r.Fatalf("Delete(%q): %v", key, err)
				}
				delete(model, key)
			case "list":
				if !canList || round%10 != 0 {
					continue
				}
				shown := 0
				err := lister.List(t.Context(), prefix, func(key string, size int64) error {
					shown++
					if value, found := model[key]; !found || int64(len(value)) != size {
						r.Fatalf("List shows %q with %d bytes; there: %v, with %d", key, size, found, len(value))
					}
					return nil
				})
				if err != nil || shown != len(model) {
					r.Fatalf("List shows %d keys, error %v; want %d", shown, err, len(model))
				}
			}
		}
		for key := range model {
			if err := s.Delete(t.Context(), key); err != nil {
				r.Fatalf("Delete(%q): %v", key, err)
			}
		}
	})
}

func testInfo(t *testing.T, s store.Store, _ Options) {
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.Kind == "" || info.Location == "" {
		t.Errorf("Info leaves kind or location open: %+v", info)
	}
	if info.UsedBytes < 0 || info.CapacityBytes < 0 || info.ValueLimit < 0 {
		t.Errorf("Info has negative sizes: %+v", info)
	}
	for _, warning := range info.Warnings {
		if len(warning) < 20 || warning[len(warning)-1] != '.' {
			t.Errorf("warning is no whole sentence: %q", warning)
		}
	}
}

package memcached

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

// items returns the names of all items of a server that begin with prefix.
func items(t *testing.T, s *Store, prefix string) []string {
	t.Helper()
	var names []string
	err := s.items(t.Context(), func(item dumped) {
		if strings.HasPrefix(item.name, prefix) {
			names = append(names, item.name)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ask sends one request and returns the line that answers it.
func ask(t *testing.T, s *Store, words ...string) string {
	t.Helper()
	var answer string
	err := s.pool.use(t.Context(), func(c *connection) error {
		c.request(words...)
		if err := c.flush(); err != nil {
			return err
		}
		line, err := c.readLine()
		c.pending--
		answer = string(line)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestSizesAroundPartsAndTheItemLimitComeBack(t *testing.T) {
	for _, limit := range [][]string{{"-I", "16k", "-o", "slab_chunk_max=16384"}, {"-I", "1m"}, {"-I", "4m"}} {
		s := open(t, server.Memcached(t, append([]string{"-M", "-m", "256"}, limit...)...), Options{PartBytes: 1 << 30})
		part := int(s.partSize())
		for _, size := range []int{part - 1, part, part + 1, 2*part - 1, 2 * part, 2*part + 1, 5 * part} {
			key := fmt.Sprintf("%0*d", store.KeyLimit, size)
			value := bytes.Repeat([]byte{byte(size)}, size)
			if err := s.Create(t.Context(), key, value); err != nil {
				t.Fatalf("limit %q: creating %d bytes: %v", limit, size, err)
			}
			got := make([]byte, size+1)
			if count, err := s.ReadAt(t.Context(), key, got, 0); err != nil || !bytes.Equal(got[:count], value) {
				t.Fatalf("limit %q: reading %d bytes: %d, %v", limit, size, count, err)
			}
		}
		if err := s.Create(t.Context(), "large", make([]byte, valueLimit+1)); !errors.Is(err, store.ErrTooLarge) {
			t.Fatalf("creating %d bytes: %v, want %v", valueLimit+1, err, store.ErrTooLarge)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARangeFetchesOnlyThePartsItTouches(t *testing.T) {
	s := open(t, server.Memcached(t), Options{PartBytes: 64 << 10})
	defer s.Close()
	if err := s.Create(t.Context(), "k", make([]byte, 4<<20)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		offset int64
		length int
		parts  int64
	}{{0, 10, 1}, {64<<10 - 1, 2, 2}, {64 << 10, 64 << 10, 1}, {4<<20 - 5, 100, 1}, {1 << 20, 1 << 20, 16}, {1<<20 + 1, 1 << 20, 17}} {
		before := sent(t, s)
		if _, err := s.ReadAt(t.Context(), "k", make([]byte, c.length), c.offset); err != nil {
			t.Fatal(err)
		}
		bytesSent := sent(t, s) - before
		if least, most := c.parts*64<<10, c.parts*64<<10+4096; bytesSent < least || bytesSent > most {
			t.Errorf("reading %d bytes at %d: server sent %d, want %d to %d", c.length, c.offset, bytesSent, least, most)
		}
	}
}

func TestALimitThatWasLoweredIsFoundOut(t *testing.T) {
	s := open(t, server.Memcached(t), Options{PartBytes: 4 << 20})
	defer s.Close()
	s.itemBytes.Store(8 << 20) // what the server said before it was restarted
	for _, size := range []int{3 << 20, 9 << 20} {
		key, value := fmt.Sprint(size), bytes.Repeat([]byte{7}, size)
		if err := s.Create(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, size)
		if count, err := s.ReadAt(t.Context(), key, got, 0); err != nil || count != size || !bytes.Equal(got, value) {
			t.Errorf("reading %d bytes: %d, %v", size, count, err)
		}
		s.itemBytes.Store(8 << 20)
	}
}

func TestListingWaitsForTheOneUnderWay(t *testing.T) {
	s := open(t, server.Memcached(t), Options{})
	defer s.Close()
	if err := s.Create(t.Context(), "k", []byte("value")); err != nil {
		t.Fatal(err)
	}
	pause := func(microseconds string) {
		if answer := ask(t, s, "lru_crawler", "sleep", microseconds); answer != "OK" {
			t.Fatalf("setting the pauses of the crawler: %q", answer)
		}
	}
	pause("300000") // after every thousand of 65,536 buckets
	var answer dumpAnswer
	for answer != dumpBusy {
		c, err := dial(t.Context(), s.address, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer c.abandon()
		c.request("lru_crawler", "metadump", "hash")
		if err := c.flush(); err != nil {
			t.Fatal(err)
		}
		if c, err = dial(t.Context(), s.address, time.Minute); err != nil {
			t.Fatal(err)
		}
		defer c.abandon()
		if answer, err = readDump(c, "hash", func(dumped) {}); err != nil {
			t.Fatal(err)
		}
	}
	pause("100")
	var keys []string
	err := s.List(t.Context(), "", func(key string, _ int64) error {
		keys = append(keys, key)
		return nil
	})
	if err != nil || len(keys) != 1 || keys[0] != "k" {
		t.Errorf("listing while another listing is under way: %q, %v", keys, err)
	}
}

// sent returns how many bytes the server has sent so far.
func sent(t *testing.T, s *Store) int64 {
	t.Helper()
	var statistics statistics
	err := s.pool.use(t.Context(), func(c *connection) (err error) {
		statistics, err = readStatistics(c, "stats")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return statistics.number("bytes_written")
}

func TestPartsExpireUntilTheValueIsComplete(t *testing.T) {
	s := open(t, server.Memcached(t), Options{PartBytes: 1000})
	defer s.Close()
	value := make([]byte, 2500)
	m := manifest{id: 7, length: 2500, partBytes: 1000}
	err := s.pool.use(t.Context(), func(c *connection) error { return m.writeParts(c, "interrupted", value) })
	if err != nil {
		t.Fatal(err)
	}
	if answer := ask(t, s, "mg", m.partKey("interrupted", 2), "t", "s"); answer != "HD t3600 s500" && answer != "HD t3599 s500" {
		t.Errorf("part of an interrupted creation: %q, want about 3600 seconds to live", answer)
	}
	if err := s.Create(t.Context(), "complete", value); err != nil {
		t.Fatal(err)
	}
	parts := 0
	for _, name := range items(t, s, partPrefix) {
		if strings.HasSuffix(name, "/complete") {
			parts++
			if answer := ask(t, s, "mg", name, "t"); answer != "HD t-1" {
				t.Errorf("part %s of a complete value: %q, want it to stay for ever", name, answer)
			}
		}
	}
	if parts != 3 {
		t.Errorf("a value of 2500 bytes has %d parts of 1000, want 3", parts)
	}
}

// A writer dies after every request of a creation in turn: in the end nothing stays that no value names.
func TestABrokenCreationLeavesNothingThatStays(t *testing.T) {
	process := server.Memcached(t)
	s := open(t, process, Options{PartBytes: 1000})
	defer s.Close()
	value := make([]byte, 2500)
	for cut := 0; ; cut++ {
		c, err := dial(t.Context(), process.Addr, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		c.socket = &cutOff{Conn: c.socket, writes: cut}
		c.writer.Reset(c.socket)
		err = createInParts(c, "k", value, 1000)
		c.abandon()
		for _, item := range staying(t, s, partPrefix) {
			if len(items(t, s, valuePrefix+"k")) == 0 {
				t.Errorf("%s stays without its value after a creation of %d writes", item, cut)
			}
		}
		if err == nil {
			break
		}
		if len(items(t, s, valuePrefix+"k")) == 1 { // repeating it says that it is there, and from then on it stays
			if err := s.Create(t.Context(), "k", value); !errors.Is(err, store.ErrExists) {
				t.Errorf("creating it again: %v", err)
			}
			if parts := staying(t, s, partPrefix); len(parts) != 3 {
				t.Errorf("a value that is said to be there has %d parts that stay, want 3", len(parts))
			}
			if err := s.Delete(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// cutOff is a connection that breaks after so many writes.
type cutOff struct {
	net.Conn
	writes int
}

func (c *cutOff) Write(p []byte) (int, error) {
	if c.writes--; c.writes < 0 {
		return 0, errors.New("the writer has died")
	}
	return c.Conn.Write(p)
}

// staying returns the names of items that begin with prefix and do not expire.
func staying(t *testing.T, s *Store, prefix string) (names []string) {
	t.Helper()
	for _, name := range items(t, s, prefix) {
		if ask(t, s, "mg", name, "t") == "HD t-1" {
			names = append(names, name)
		}
	}
	return names
}

// Parts that stay and that no value names are deleted by a listing, and counted; those of values and of creations under
// way are not.
func TestAListingDeletesPartsThatNoValueNames(t *testing.T) {
	s := open(t, server.Memcached(t), Options{PartBytes: 1000})
	defer s.Close()
	value := make([]byte, 2500)
	left := func(key string, id uint64) {
		t.Helper()
		m := manifest{id: id, length: 2500, partBytes: 1000}
		err := s.pool.use(t.Context(), func(c *connection) error {
			if err := m.writeParts(c, key, value); err != nil {
				return err
			}
			return m.keepParts(c, key)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Create(t.Context(), "a/whole", value); err != nil {
		t.Fatal(err)
	}
	left("a/whole", 7) // of an earlier creation of the same key
	left("a/gone", 8)
	left("b/gone", 9)
	err := s.pool.use(t.Context(), func(c *connection) error {
		return manifest{id: 10, length: 2500, partBytes: 1000}.writeParts(c, "a/begun", value)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		prefix      string
		parts, left int64
	}{{"a/", 9, 6}, {"", 6, 9}, {"", 6, 9}} {
		if err := s.List(t.Context(), step.prefix, func(string, int64) error { return nil }); err != nil {
			t.Fatal(err)
		}
		info, err := s.Info(t.Context())
		if parts := len(items(t, s, partPrefix)); err != nil || parts != int(step.parts) || info.Discarded != step.left {
			t.Errorf("after listing %q there are %d parts, and %d were deleted, %v; want %d and %d",
				step.prefix, parts, info.Discarded, err, step.parts, step.left)
		}
	}
	got := make([]byte, 2500)
	if count, err := s.ReadAt(t.Context(), "a/whole", got, 0); err != nil || !bytes.Equal(got[:count], value) {
		t.Errorf("reading the value: %d, %v", count, err)
	}
}

func TestAMissingPartMakesTheValueCorruptUntilItIsDeleted(t *testing.T) {
	s := open(t, server.Memcached(t), Options{PartBytes: 1000})
	defer s.Close()
	if err := s.Create(t.Context(), "k", make([]byte, 5000)); err != nil {
		t.Fatal(err)
	}
	parts := items(t, s, partPrefix)
	if len(parts) != 5 {
		t.Fatalf("parts: %q, want 5", parts)
	}
	for _, part := range parts {
		if strings.Contains(part, "/3/") {
			if answer := ask(t, s, "md", part); answer != "HD" {
				t.Fatalf("deleting a part: %q", answer)
			}
		}
	}
	p := make([]byte, 5000)
	if _, err := s.ReadAt(t.Context(), "k", p, 0); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("reading a value without one of its parts: %v, want %v", err, store.ErrCorrupt)
	}
	if count, err := s.ReadAt(t.Context(), "k", p[:1000], 2000); err != nil || count != 1000 {
		t.Errorf("reading a part that is there: %d, %v", count, err)
	}
	if err := s.Create(t.Context(), "k", p); !errors.Is(err, store.ErrExists) {
		t.Errorf("creating it again: %v, want %v", err, store.ErrExists)
	}
	if err := s.Delete(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if left := items(t, s, ""); len(left) != 0 {
		t.Errorf("left after deletion: %q", left)
	}
}

func TestAValueReplacedWhileItIsReadIsReadAnew(t *testing.T) {
	main := func(m manifest) string {
		return fmt.Sprintf("VA %d s%d f%d c1\r\n%s\r\n", manifestBytes, manifestBytes, m.length, m.encode())
	}
	before, after := manifest{id: 1, length: 10, partBytes: 5}, manifest{id: 2, length: 10, partBytes: 5}
	lost := main(before) + "VA 5 s5\r\nold..\r\nEN\r\n"
	p := make([]byte, 10)
	count, err := readAt(replay([]byte(lost+main(after)+main(after)+"VA 5 s5\r\nnew01\r\nVA 5 s5\r\n23456\r\n")), "k", p, 0)
	if err != nil || string(p[:count]) != "new0123456" {
		t.Errorf("replaced between main item and part: %q, %v", p[:count], err)
	}
	if _, err := readAt(replay([]byte(lost+"EN\r\n")), "k", p, 0); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("deleted between main item and part: %v, want %v", err, store.ErrNotFound)
	}
	if _, err := readAt(replay([]byte(lost+main(before))), "k", p, 0); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("without a part: %v, want %v", err, store.ErrCorrupt)
	}
}

func TestLosersAndFailuresLeaveNoParts(t *testing.T) {
	s := open(t, server.Memcached(t, "-M", "-m", "8"), Options{PartBytes: 50_000})
	defer s.Close()
	results := make(chan error)
	for range 8 {
		go func() { results <- s.Create(t.Context(), "contended", make([]byte, 300_000)) }()
	}
	for range 8 {
		if err := <-results; err != nil && !errors.Is(err, store.ErrExists) {
			t.Error(err)
		}
	}
	if parts := items(t, s, partPrefix); len(parts) != 6 {
		t.Errorf("after 8 creators of one value of 6 parts there are %d parts", len(parts))
	}
	if err := s.Create(t.Context(), "too much", nil); !errors.Is(err, store.ErrKey) {
		t.Errorf("creating a key with a space: %v", err)
	}
	if err := s.Create(t.Context(), "too-much", make([]byte, 32<<20)); !errors.Is(err, store.ErrFull) {
		t.Errorf("creating more than fits: %v, want %v", err, store.ErrFull)
	}
	if parts := items(t, s, partPrefix); len(parts) != 6 {
		t.Errorf("after a creation that did not fit there are %d parts, want 6", len(parts))
	}
}

func TestEvictionIsReportedAndNeverYieldsWrongBytes(t *testing.T) {
	s := open(t, server.Memcached(t, "-m", "8"), Options{PartBytes: 50_000})
	defer s.Close()
	warnings := func() string {
		info, err := s.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(info.Warnings, "\n")
	}
	if !strings.Contains(warnings(), "restart it with -M") {
		t.Errorf("a server that evicts is not warned of: %q", warnings())
	}
	if strings.Contains(warnings(), "has dropped") {
		t.Errorf("a server that has not evicted is warned of: %q", warnings())
	}
	const count, size = 200, 180_000
	for i := range count {
		err := s.Create(t.Context(), fmt.Sprint(i), bytes.Repeat([]byte{byte(i)}, size))
		if err != nil && !errors.Is(err, store.ErrFull) {
			t.Fatal(err)
		}
	}
	outcomes := map[string]int{}
	for i := range count {
		p := make([]byte, size+1)
		got, err := s.ReadAt(t.Context(), fmt.Sprint(i), p, 0)
		switch {
		case err == nil && bytes.Equal(p[:got], bytes.Repeat([]byte{byte(i)}, size)):
			outcomes["whole"]++
		case errors.Is(err, store.ErrNotFound):
			outcomes["absent"]++
		case errors.Is(err, store.ErrCorrupt):
			outcomes["corrupt"]++
		default:
			t.Errorf("reading value %d of a server that evicts: %d bytes, %v", i, got, err)
		}
	}
	t.Logf("outcomes: %v", outcomes)
	if outcomes["whole"] == count {
		t.Error("a server of 8 MiB has kept 36 MB")
	}
	if !strings.Contains(warnings(), "has dropped") {
		t.Errorf("a server that has evicted is not warned of: %q", warnings())
	}
	if info, err := s.Info(t.Context()); err != nil || info.Evicted == 0 {
		t.Errorf("values dropped: %d, %v; some were", info.Evicted, err)
	}
}

func TestASilentServerIsDown(t *testing.T) {
	process := server.Memcached(t)
	s := open(t, process, Options{Timeout: 500 * time.Millisecond})
	defer s.Close()
	if err := s.Create(t.Context(), "k", []byte("value")); err != nil {
		t.Fatal(err)
	}
	process.Suspend()
	if _, err := s.ReadAt(t.Context(), "k", make([]byte, 5), 0); !errors.Is(err, store.ErrDown) {
		t.Errorf("reading from a suspended server: %v, want %v", err, store.ErrDown)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.ReadAt(ctx, "k", make([]byte, 5), 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("reading from a suspended server with little time: %v, want %v", err, context.DeadlineExceeded)
	}
	process.Resume()
	p := make([]byte, 5)
	count, err := s.ReadAt(t.Context(), "k", p, 0)
	for deadline := time.Now().Add(time.Minute); errors.Is(err, store.ErrDown) && time.Now().Before(deadline); { // a busy machine answers late
		count, err = s.ReadAt(t.Context(), "k", p, 0)
	}
	if err != nil || string(p[:count]) != "value" {
		t.Errorf("reading after the server resumed: %q, %v", p[:count], err)
	}
}

func TestARestartedServerIsUsedAtOnce(t *testing.T) {
	process := server.Memcached(t)
	s := open(t, process, Options{})
	defer s.Close()
	fill := make([]*connection, defaultConnections)
	for i := range fill { // as many idle connections as there may be
		c, err := dial(t.Context(), s.address, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		fill[i] = c
	}
	for _, c := range fill {
		s.pool.giveBack(c)
	}
	process.Restart()
	if err := s.Create(t.Context(), "k", []byte("value")); err != nil {
		t.Errorf("creating after a restart: %v", err)
	}
}

func TestListLeavesOutWhatOthersStore(t *testing.T) {
	s := open(t, server.Memcached(t), Options{PartBytes: 1000})
	defer s.Close()
	if answer := ask(t, s, "ms", "foreign", "0\r\n"); answer != "HD" {
		t.Fatalf("storing a foreign item: %q", answer)
	}
	if err := s.Create(t.Context(), "ours", make([]byte, 3000)); err != nil {
		t.Fatal(err)
	}
	shown := map[string]int64{}
	if err := s.List(t.Context(), "", func(key string, size int64) error { shown[key] = size; return nil }); err != nil {
		t.Fatal(err)
	}
	if len(shown) != 1 || shown["ours"] != 3000 {
		t.Errorf("list shows %v, want ours with 3000 bytes alone", shown)
	}
}

func TestOpenRefusesWhatIsNoMemcached(t *testing.T) {
	for _, address := range []string{"nohost", "", "127.0.0.1"} {
		if s, err := Open(t.Context(), address, Options{}); err == nil {
			s.Close()
			t.Errorf("Open(%q) succeeds", address)
		}
	}
	redis := server.Redis(t)
	if _, err := Open(t.Context(), redis.Addr, Options{}); !errors.Is(err, errProtocol) {
		t.Errorf("opening a Redis: %v, want %v", err, errProtocol)
	}
	redis.Kill()
	if _, err := Open(t.Context(), redis.Addr, Options{}); !errors.Is(err, store.ErrDown) {
		t.Errorf("opening a port nobody listens on: %v, want %v", err, store.ErrDown)
	}
}

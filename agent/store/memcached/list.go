package memcached

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/store"
)

// List implements store.Lister. It first gathers the matching keys, about 150 bytes of memory for each, since the
// server may have only one listing under way and should not wait for visit; then it asks for their sizes.
func (s *Store) List(ctx context.Context, prefix string, visit func(key string, size int64) error) error {
	keys, err := s.keys(ctx, prefix)
	if err != nil {
		return fmt.Errorf("listing %q: %w", prefix, err)
	}
	for batch := range slices.Chunk(keys, sizesPerBatch) {
		sizes, err := s.sizes(ctx, batch)
		if err != nil {
			return fmt.Errorf("listing %q: %w", prefix, err)
		}
		for i, key := range batch {
			if sizes[i] < 0 { // deleted meanwhile
				continue
			}
			if err := visit(key, sizes[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Page implements store.Lister, in key order. A dump cannot be entered in the middle, so that a listing is one dump.
func (s *Store) Page(ctx context.Context, prefix, after string, limit int) (keys []string, more bool, err error) {
	keys, more, err = s.pass.Page(ctx, prefix, after, limit)
	if err != nil {
		return nil, false, fmt.Errorf("listing %q: %w", prefix, err)
	}
	return keys, more, nil
}

// there returns those of the keys that are there.
func (s *Store) there(ctx context.Context, keys []string) (there []string, err error) {
	for batch := range slices.Chunk(keys, sizesPerBatch) {
		sizes, err := s.sizes(ctx, batch)
		if err != nil {
			return nil, err
		}
		for i, key := range batch {
			if sizes[i] >= 0 {
				there = append(there, key)
			}
		}
	}
	return there, nil
}

// sizes returns the sizes of the values of a batch of keys, -1 for a key that is absent.
func (s *Store) sizes(ctx context.Context, batch []string) ([]int64, error) {
	sizes := make([]int64, len(batch))
	err := s.pool.use(ctx, func(c *connection) error { return readSizes(c, batch, sizes) })
	return sizes, err
}

const (
	// sizesPerBatch keeps requests and answers of a batch within what both ends buffer.
	sizesPerBatch = 64

	// Another listing, or memcached's own housekeeping, may keep the crawler busy.
	busyDelay    = 50 * time.Millisecond
	busyAttempts = 600
)

// keys returns the keys that begin with prefix, and deletes the parts of such keys that no value names.
func (s *Store) keys(ctx context.Context, prefix string) ([]string, error) {
	var keys []string
	parts := map[creation]int{}
	err := s.items(ctx, func(item dumped) {
		if key, is := strings.CutPrefix(item.name, valuePrefix); is && key != "" && strings.HasPrefix(key, prefix) { // no key is empty
			keys = append(keys, key)
			return
		}
		of, number, is := parsePartKey(item.name)
		if is && item.stays && strings.HasPrefix(of.key, prefix) {
			parts[of] = max(parts[of], number+1)
		}
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	return keys, s.deleteUnnamed(ctx, keys, parts)
}

// creation is one making of a value in parts.
type creation struct {
	id  uint64
	key string
}

// deleteUnnamed deletes parts that stay and belong to no value: its deletion, or a creation by an earlier release, was
// broken off. Parts stay only once their main item was there, so where that is gone, or names others, they are dead.
// parts has the number of each creation's parts, as far as they were seen; keys are in order.
func (s *Store) deleteUnnamed(ctx context.Context, keys []string, parts map[creation]int) error {
	creations := map[string]int{}
	for of := range parts {
		creations[of.key]++
	}
	for of, count := range parts {
		if _, listed := slices.BinarySearch(keys, of.key); listed && creations[of.key] == 1 {
			continue // the usual case: the value's own
		}
		err := s.pool.use(ctx, func(c *connection) error {
			main, err := readMain(c, of.key, nil, 0)
			named := err == nil && main.parts != nil && main.parts.id == of.id
			if named || err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			dead := manifest{id: of.id, length: int64(count), partBytes: 1}
			if err := dead.deleteParts(c, of.key); err != nil {
				return err
			}
			s.unnamed.Add(int64(count))
			return nil
		})
		if err != nil && !errors.Is(err, store.ErrCorrupt) { // of a main item that names no parts: nothing says which are its
			return fmt.Errorf("deleting parts of %q that no value names: %w", of.key, err)
		}
	}
	return nil
}

// items visits the server's items, main ones and parts, some perhaps twice.
func (s *Store) items(ctx context.Context, visit func(dumped)) error {
	// hash goes over the hash table and sees every item; all goes over the lists that items move between.
	for _, scope := range []string{"hash", "all"} {
		supported, err := s.dump(ctx, scope, visit)
		if err != nil || supported {
			return err
		}
	}
	return fmt.Errorf("memcached at %s cannot list its keys; start it with its LRU crawler and without -o no_lru_crawler, -X", s.address)
}

// dump lets the server write out its items. supported is false if it refuses to.
func (s *Store) dump(ctx context.Context, scope string, visit func(dumped)) (supported bool, err error) {
	for range busyAttempts {
		c, err := dial(ctx, s.address, s.pool.timeout)
		if err != nil {
			return false, unreachable(ctx, s.address, err)
		}
		release := c.guard(ctx)
		answer, err := readDump(c, scope, visit)
		release()
		c.abandon()
		switch {
		case err != nil:
			return false, unreachable(ctx, s.address, err)
		case answer == dumpRefused:
			return false, nil
		case answer == dumpComplete:
			return true, nil
		}
		timer := time.NewTimer(busyDelay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		}
	}
	return false, fmt.Errorf("memcached at %s is busy with other listings; try again", s.address)
}

// dumpAnswer is how the server takes the wish for a dump.
type dumpAnswer int

const (
	dumpComplete dumpAnswer = iota
	dumpBusy
	dumpRefused
)

// readDump asks for a dump and visits its items.
func readDump(c *connection, scope string, visit func(dumped)) (dumpAnswer, error) {
	c.request("lru_crawler", "metadump", scope)
	if err := c.flush(); err != nil {
		return 0, err
	}
	for {
		line, err := c.readLine()
		switch {
		case err != nil:
			return 0, err
		case bytes.HasPrefix(line, []byte("key=")):
			item, err := parseDumpLine(line)
			if err != nil {
				return 0, err
			}
			visit(item)
		case string(line) == "END":
			return dumpComplete, nil
		case bytes.HasPrefix(line, []byte("BUSY")):
			return dumpBusy, nil
		case bytes.HasPrefix(line, []byte(statusError)), bytes.HasPrefix(line, []byte(statusClientError)):
			return dumpRefused, nil
		default:
			return 0, fmt.Errorf("line %.80q in a dump: %w", line, errProtocol)
		}
	}
}

// dumped is an item as a dump tells of it.
type dumped struct {
	name  string
	stays bool // it does not expire
}

// parseDumpLine reads one line of a dump: key=NAME exp=SECONDS and more, where -1 seconds are for ever.
func parseDumpLine(line []byte) (dumped, error) {
	word, more, _ := bytes.Cut(line, []byte{' '})
	name, err := url.PathUnescape(strings.TrimPrefix(string(word), "key="))
	if err != nil {
		return dumped{}, fmt.Errorf("line %.80q in a dump: %w: %w", line, errProtocol, err)
	}
	expires, _, _ := bytes.Cut(more, []byte{' '})
	return dumped{name, string(expires) == "exp=-1"}, nil
}

// readSizes sets sizes to those of the values of keys, -1 for a key that is absent.
func readSizes(c *connection, keys []string, sizes []int64) error {
	for _, key := range keys {
		c.request("mg", valuePrefix+key, "s", "f")
	}
	if err := c.flush(); err != nil {
		return err
	}
	var firstErr error
	for i := range keys {
		r, err := c.readReply()
		switch {
		case err != nil:
			return err
		case r.status == statusMiss:
			sizes[i] = -1
		case r.status == statusDone && r.flags == 0:
			sizes[i] = r.size
		case r.status == statusDone:
			sizes[i] = int64(r.flags)
		case firstErr == nil:
			firstErr = refusal(r)
		}
	}
	return firstErr
}

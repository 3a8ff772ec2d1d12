package memcached

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// List implements store.Lister. It first gathers the matching keys, about 150 bytes of memory for each, since the
// server may have only one listing under way and should not wait for visit; then it asks for their sizes.
func (s *Store) List(ctx context.Context, prefix string, visit func(key string, size int64) error) error {
	keys, err := s.keys(ctx, prefix)
	if err != nil {
		return fmt.Errorf("listing %q: %w", prefix, err)
	}
	for batch := range slices.Chunk(keys, sizesPerBatch) {
		sizes := make([]int64, len(batch))
		err := s.pool.use(ctx, func(c *connection) error { return readSizes(c, batch, sizes) })
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

const (
	// sizesPerBatch keeps requests and answers of a batch within what both ends buffer.
	sizesPerBatch = 64

	// Another listing, or memcached's own housekeeping, may keep the crawler busy.
	busyDelay    = 50 * time.Millisecond
	busyAttempts = 600
)

// keys returns the keys that begin with prefix.
func (s *Store) keys(ctx context.Context, prefix string) ([]string, error) {
	names, err := s.items(ctx, valuePrefix+prefix)
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, valuePrefix)
	}
	if len(names) > 0 && names[0] == "" { // an item that is none of ours: no key is empty
		names = names[1:]
	}
	return names, err
}

// items returns the names of the server's items, main ones and parts, that begin with prefix, each once and in order.
func (s *Store) items(ctx context.Context, prefix string) ([]string, error) {
	// hash goes over the hash table and sees every item; all goes over the lists that items move between.
	for _, scope := range []string{"hash", "all"} {
		names, supported, err := s.dump(ctx, scope, prefix)
		if err != nil || supported {
			return names, err
		}
	}
	return nil, fmt.Errorf("memcached at %s cannot list its keys; start it with its LRU crawler and without -o no_lru_crawler, -X", s.address)
}

// dump lets the server write out the names of its items. supported is false if it refuses to.
func (s *Store) dump(ctx context.Context, scope, prefix string) (names []string, supported bool, err error) {
	for range busyAttempts {
		c, err := dial(ctx, s.address, s.pool.timeout)
		if err != nil {
			return nil, false, unreachable(ctx, s.address, err)
		}
		release := c.guard(ctx)
		names, answer, err := readDump(c, scope, prefix)
		release()
		c.abandon()
		switch {
		case err != nil:
			return nil, false, unreachable(ctx, s.address, err)
		case answer == dumpRefused:
			return nil, false, nil
		case answer == dumpComplete:
			return names, true, nil
		}
		timer := time.NewTimer(busyDelay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, false, ctx.Err()
		}
	}
	return nil, false, fmt.Errorf("memcached at %s is busy with other listings; try again", s.address)
}

// dumpAnswer is how the server takes the wish for a dump.
type dumpAnswer int

const (
	dumpComplete dumpAnswer = iota
	dumpBusy
	dumpRefused
)

// readDump asks for a dump and gathers the names of items that begin with prefix, each once and in order.
func readDump(c *connection, scope, prefix string) ([]string, dumpAnswer, error) {
	c.request("lru_crawler", "metadump", scope)
	if err := c.flush(); err != nil {
		return nil, 0, err
	}
	var names []string
	for {
		line, err := c.readLine()
		switch {
		case err != nil:
			return nil, 0, err
		case bytes.HasPrefix(line, []byte("key=")):
			name, err := parseDumpLine(line)
			if err != nil {
				return nil, 0, err
			}
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		case string(line) == "END":
			slices.Sort(names)
			return slices.Compact(names), dumpComplete, nil
		case bytes.HasPrefix(line, []byte("BUSY")):
			return nil, dumpBusy, nil
		case bytes.HasPrefix(line, []byte(statusError)), bytes.HasPrefix(line, []byte(statusClientError)):
			return nil, dumpRefused, nil
		default:
			return nil, 0, fmt.Errorf("line %.80q in a dump: %w", line, errProtocol)
		}
	}
}

// parseDumpLine returns the name of the item that one line of a dump tells of.
func parseDumpLine(line []byte) (string, error) {
	word, _, _ := bytes.Cut(line, []byte{' '})
	name, err := url.PathUnescape(strings.TrimPrefix(string(word), "key="))
	if err != nil {
		return "", fmt.Errorf("line %.80q in a dump: %w: %w", line, errProtocol, err)
	}
	return name, nil
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

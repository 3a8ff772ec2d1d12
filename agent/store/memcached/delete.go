package memcached

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/restripe/restripe/agent/store"
)

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	err := s.pool.use(ctx, func(c *connection) error { return remove(c, key) })
	if err != nil {
		return fmt.Errorf("deleting %q: %w", key, err)
	}
	return nil
}

// remove deletes the value of key.
func remove(c *connection, key string) error {
	main, err := readMain(c, key, nil, 0)
	return removeRead(c, key, main, err)
}

// discard deletes the value of key if it is this creation of it.
func (m manifest) discard(c *connection, key string) error {
	main, err := readMain(c, key, nil, 0)
	if err == nil && (main.parts == nil || *main.parts != m) {
		return nil
	}
	return removeRead(c, key, main, err)
}

// removeRead lets parts expire, deletes the main item that was read, and then the parts.
func removeRead(c *connection, key string, main mainItem, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case errors.Is(err, store.ErrCorrupt): // the main item is no list of parts: none can be found, none are kept
	case err != nil:
		return err
	}
	if err == nil && main.parts != nil {
		if err := main.parts.expireParts(c, key); err != nil {
			return err
		}
	}
	words := []string{"md", valuePrefix + key}
	if main.cas != 0 { // what somebody else created after deleting this one is not ours to delete
		words = append(words, "C"+strconv.FormatUint(main.cas, 10))
	}
	c.request(words...)
	if err := c.flush(); err != nil {
		return err
	}
	r, readErr := c.readReply()
	switch {
	case readErr != nil:
		return readErr
	case r.status != statusDone && r.status != statusNotFound && r.status != statusExists:
		return refusal(r)
	}
	if err != nil || main.parts == nil {
		return nil
	}
	return main.parts.deleteParts(c, key)
}

// expireParts gives every part a short time to live.
func (m manifest) expireParts(c *connection, key string) error {
	return m.eachBatch(c, func(part int) {
		c.request("mg", m.partKey(key, part), "s", "T"+decimal(deletedPartSeconds))
	}, func(_ int, r reply) error {
		if r.status != statusDone && r.status != statusMiss {
			return refusal(r)
		}
		return nil
	})
}

// deleteParts deletes every part that is there.
func (m manifest) deleteParts(c *connection, key string) error {
	return m.eachBatch(c, func(part int) {
		c.request("md", m.partKey(key, part))
	}, func(_ int, r reply) error {
		if r.status != statusDone && r.status != statusNotFound {
			return refusal(r)
		}
		return nil
	})
}

package memcached

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/restripe/restripe/agent/store"
)

// Create implements store.Store.
func (s *Store) Create(ctx context.Context, key string, value []byte) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	if len(value) > valueLimit {
		return fmt.Errorf("creating %q: %d bytes, limit %d: %w", key, len(value), int64(valueLimit), store.ErrTooLarge)
	}
	partBytes := s.partSize()
	err := s.create(ctx, key, value, partBytes)
	if errors.Is(err, store.ErrTooLarge) { // perhaps the server was restarted with a lower limit
		if _, settingsErr := s.settings(ctx); settingsErr != nil {
			err = settingsErr
		} else if s.partSize() < partBytes {
			err = s.create(ctx, key, value, s.partSize())
		}
	}
	if err != nil {
		return fmt.Errorf("creating %q: %w", key, err)
	}
	return nil
}

// create stores a value in one item, or in parts of partBytes.
func (s *Store) create(ctx context.Context, key string, value []byte, partBytes int64) error {
	return s.pool.use(ctx, func(c *connection) error {
		var err error
		if int64(len(value)) <= partBytes {
			err = add(c, key, value, 0)
		} else {
			err = createInParts(c, key, value, partBytes)
		}
		if errors.Is(err, store.ErrExists) {
			return errors.Join(err, keepExisting(c, key))
		}
		return err
	})
}

// keepExisting makes the value that is there stay: its writer may have died before it did.
func keepExisting(c *connection, key string) error {
	main, err := readMain(c, key, nil, 0)
	if err == nil && main.parts != nil {
		err = main.parts.keepParts(c, key)
	}
	if c.err == nil && (errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrFull)) {
		return nil // it is gone, or has lost a part: whoever reads it will see
	}
	return err
}

// add stores the main item of key.
func add(c *connection, key string, content []byte, flags uint32) error {
	c.requestWithData(content, "add", valuePrefix+key, decimal(int64(flags)), "0", decimal(int64(len(content))))
	if err := c.flush(); err != nil {
		return err
	}
	r, err := c.readReply()
	if err != nil {
		return err
	}
	switch r.status {
	case statusAdded:
		return nil
	case statusNotAdded:
		return store.ErrExists
	}
	return refusal(r)
}

// createInParts stores parts, adds the main item, and makes the parts stay. So no part stays that was never named.
func createInParts(c *connection, key string, value []byte, partBytes int64) error {
	if found, err := exists(c, key); err != nil {
		return err
	} else if found {
		return store.ErrExists
	}
	var id [8]byte
	rand.Read(id[:])
	m := manifest{id: binary.BigEndian.Uint64(id[:]), length: int64(len(value)), partBytes: partBytes}
	err := m.writeParts(c, key, value)
	if err == nil {
		err = add(c, key, m.encode(), uint32(m.length))
	}
	if err != nil {
		if c.err == nil { // else the parts expire
			err = errors.Join(err, m.deleteParts(c, key))
		}
		return err
	}
	err = m.keepParts(c, key)
	if errors.Is(err, store.ErrFull) && c.err == nil {
		err = errors.Join(err, m.discard(c, key))
	}
	return err // after another error the value may be whole, and somebody else may have acknowledged it
}

// exists looks for the main item.
func exists(c *connection, key string) (bool, error) {
	c.request("mg", valuePrefix+key, "s")
	if err := c.flush(); err != nil {
		return false, err
	}
	r, err := c.readReply()
	if err != nil {
		return false, err
	}
	switch r.status {
	case statusDone:
		return true, nil
	case statusMiss:
		return false, nil
	}
	return false, refusal(r)
}

// writeParts stores every part, to expire unless kept.
func (m manifest) writeParts(c *connection, key string, value []byte) error {
	return m.eachBatch(c, func(part int) {
		from, to := m.span(part)
		c.requestWithData(value[from:to], "ms", m.partKey(key, part), decimal(to-from), "T"+decimal(abandonedPartSeconds), "ME")
	}, func(part int, r reply) error {
		switch r.status {
		case statusDone:
			return nil
		case statusNotStored:
			return fmt.Errorf("part %d: a part of this name is there; the source of random numbers repeats itself", part)
		}
		return fmt.Errorf("part %d: %w", part, refusal(r))
	})
}

// keepParts makes every part stay for good, and so sees that all are there.
func (m manifest) keepParts(c *connection, key string) error {
	return m.eachBatch(c, func(part int) {
		c.request("mg", m.partKey(key, part), "s", "T0")
	}, func(part int, r reply) error {
		from, to := m.span(part)
		switch {
		case r.status == statusDone && r.size == to-from:
			return nil
		case r.status == statusMiss:
			return fmt.Errorf("part %d was evicted before the value was complete: %w", part, store.ErrFull)
		}
		return fmt.Errorf("part %d: %w", part, refusal(r))
	})
}

// eachBatch asks about every part and reads the answers, partsPerBatch at a time. It reads all answers of a batch and
// returns the first error.
func (m manifest) eachBatch(c *connection, ask func(part int), answer func(part int, r reply) error) error {
	for first := 0; first < m.parts(); first += partsPerBatch {
		last := min(first+partsPerBatch, m.parts())
		for part := first; part < last; part++ {
			ask(part)
		}
		if err := c.flush(); err != nil {
			return err
		}
		var firstErr error
		for part := first; part < last; part++ {
			r, err := c.readReply()
			if err != nil {
				return err
			}
			if err := answer(part, r); err != nil && firstErr == nil {
				firstErr = err
			}
		}
		if firstErr != nil {
			return firstErr
		}
	}
	return nil
}

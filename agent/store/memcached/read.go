package memcached

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/store"
)

// ReadAt implements store.Store. It fetches only the parts that the range touches.
func (s *Store) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	if err := store.CheckRead(key, offset); err != nil {
		return 0, err
	}
	var count int
	err := s.pool.use(ctx, func(c *connection) (err error) {
		count, err = readAt(c, key, p, offset)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("reading %q: %w", key, err)
	}
	return count, nil
}

// ReadMany implements store.ManyReader over one connection. A value that several reads are of is sent once.
func (s *Store) ReadMany(ctx context.Context, reads []store.Read) {
	order := make([]int, 0, len(reads))
	for i := range reads {
		r := &reads[i]
		if r.Count, r.Err = 0, store.CheckRead(r.Key, r.Offset); r.Err == nil {
			r.Err = errPending
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(reads[a].Key, reads[b].Key) })
	err := s.pool.use(ctx, func(c *connection) error {
		for len(order) > 0 {
			some := order[:min(len(order), manyAhead)]
			order = order[len(some):]
			if err := readMany(c, reads, some); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range reads {
		r := &reads[i]
		switch {
		case r.Err == nil:
			continue
		case errors.Is(r.Err, errInParts):
			r.Count, r.Err = s.ReadAt(ctx, r.Key, r.Into, r.Offset)
			continue
		case errors.Is(r.Err, errPending):
			r.Err = err
		}
		r.Err = fmt.Errorf("reading %q: %w", r.Key, r.Err)
	}
}

const (
	// manyAhead is how many values are asked for at a time.
	manyAhead = 64
	// manyBytes is how large a value may be that is held for several reads of it.
	manyBytes = 4 << 20
)

// What reads have for an error before they have ended.
var (
	errPending = errors.New("was not read yet")
	errInParts = errors.New("is to be read by itself")
)

// readMany does those of the reads whose indices it is given, with the same key one after the other. Its error is that of the connection.
func readMany(c *connection, reads []store.Read, order []int) error {
	for i, at := range order {
		if i == 0 || reads[at].Key != reads[order[i-1]].Key {
			c.request("mg", valuePrefix+reads[at].Key, "f", "v")
		}
	}
	if err := c.flush(); err != nil {
		return err
	}
	for len(order) > 0 {
		same := 1
		for same < len(order) && reads[order[same]].Key == reads[order[0]].Key {
			same++
		}
		if err := readOne(c, reads, order[:same]); err != nil {
			return err
		}
		order = order[same:]
	}
	return nil
}

// readOne takes the answer for one key, for the reads that are of it.
func readOne(c *connection, reads []store.Read, of []int) error {
	r, err := c.readReply()
	if err != nil {
		return err
	}
	var whole []byte
	isApart := r.flags != 0 || len(of) > 1 && r.size > manyBytes
	for _, at := range of {
		one := &reads[at]
		switch {
		case r.status == statusMiss:
			one.Err = store.ErrNotFound
		case r.status != statusValue:
			one.Err = refusal(r)
		case isApart:
			one.Err = errInParts
		case len(of) == 1:
			if one.Count, err = c.readData(r.size, one.Into, one.Offset); err != nil {
				return err
			}
			one.Err = nil
			return nil
		default:
			if whole == nil {
				whole = make([]byte, r.size)
				if _, err := c.readData(r.size, whole, 0); err != nil {
					return err
				}
			}
			one.Count, one.Err = copy(one.Into, whole[min(one.Offset, r.size):]), nil
		}
	}
	if r.status == statusValue && isApart {
		_, err = c.readData(r.size, nil, 0)
	}
	return err
}

// readAt reads a value from its one item or from its parts.
func readAt(c *connection, key string, p []byte, offset int64) (int, error) {
	for {
		main, err := readMain(c, key, p, offset)
		if err != nil || main.parts == nil {
			return main.count, err
		}
		count, err := main.parts.readParts(c, key, p, offset)
		if !errors.Is(err, store.ErrCorrupt) || c.err != nil {
			return count, err
		}
		// A part is missing: the value is being deleted, was replaced after a deletion, or has truly lost the part.
		again, againErr := readMain(c, key, nil, 0)
		if againErr != nil {
			return 0, againErr
		}
		if again.parts != nil && *again.parts == *main.parts {
			return 0, err
		}
	}
}

// mainItem is what the main item of a key says.
type mainItem struct {
	count int       // bytes of the value read, where it is one item
	parts *manifest // where it is not
	cas   uint64
}

// readMain fetches the main item; where that is the value itself, p is filled from offset on.
func readMain(c *connection, key string, p []byte, offset int64) (mainItem, error) {
	c.request("mg", valuePrefix+key, "s", "f", "c", "v")
	if err := c.flush(); err != nil {
		return mainItem{}, err
	}
	r, err := c.readReply()
	if err != nil {
		return mainItem{}, err
	}
	switch {
	case r.status == statusMiss:
		return mainItem{}, store.ErrNotFound
	case r.status != statusValue:
		return mainItem{}, refusal(r)
	case r.flags == 0:
		count, err := c.readData(r.size, p, offset)
		return mainItem{count: count, cas: r.cas}, err
	}
	encoded := make([]byte, min(r.size, manifestBytes+1))
	if _, err := c.readData(r.size, encoded, 0); err != nil {
		return mainItem{}, err
	}
	m, err := parseManifest(encoded, r.flags)
	return mainItem{parts: &m, cas: r.cas}, err
}

// readParts fills p from offset on with what the parts hold. A part that is missing or of the wrong size makes the
// value corrupt; all answers are read even then.
func (m manifest) readParts(c *connection, key string, p []byte, offset int64) (int, error) {
	if offset >= m.length || len(p) == 0 {
		return 0, nil
	}
	p = p[:min(int64(len(p)), m.length-offset)]
	end := offset + int64(len(p))
	first, last := int(offset/m.partBytes), int((end+m.partBytes-1)/m.partBytes)
	asked := first
	var firstErr error
	for part := first; part < last; part++ {
		if asked < last && asked-part <= readAhead/2 {
			for ; asked < last && asked-part < readAhead; asked++ {
				c.request("mg", m.partKey(key, asked), "s", "v")
			}
			if err := c.flush(); err != nil {
				return 0, err
			}
		}
		from, to := m.span(part)
		within := max(0, offset-from)
		target := p[max(0, from-offset):min(int64(len(p)), to-offset)]
		if err := readPart(c, part, to-from, target, within); c.err != nil {
			return 0, c.err
		} else if firstErr == nil {
			firstErr = err
		}
	}
	if firstErr != nil {
		return 0, firstErr
	}
	return len(p), nil
}

// readAhead is how many parts are asked for before the first is there: few, so that a server is not made to hold
// answers nobody takes.
const readAhead = 8

// readPart reads the answer that holds one part of size bytes, and fills target from offset within on.
func readPart(c *connection, part int, size int64, target []byte, within int64) error {
	r, err := c.readReply()
	if err != nil {
		return err
	}
	switch r.status {
	case statusValue:
		if _, err := c.readData(r.size, target, within); err != nil {
			return err
		}
		if r.size != size {
			return fmt.Errorf("part %d has %d bytes, want %d: %w", part, r.size, size, store.ErrCorrupt)
		}
		return nil
	case statusMiss:
		return fmt.Errorf("part %d of %d bytes is missing: %w", part, size, store.ErrCorrupt)
	}
	return fmt.Errorf("part %d: %w", part, refusal(r))
}

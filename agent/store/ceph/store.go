//go:build ceph

package ceph

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/kernel"
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
	err := s.write(ctx, key, value, true)
	if err == nil && key == incarnationKey {
		err = s.placeWitnesses(ctx, string(value))
	}
	if err != nil {
		return fmt.Errorf("creating %q in %s: %w", key, s.location, err)
	}
	return nil
}

// ReadAt implements store.Store.
func (s *Store) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	if err := store.CheckRead(key, offset); err != nil {
		return 0, err
	}
	if key == incarnationKey {
		if err := s.lookAround(ctx); err != nil {
			return 0, fmt.Errorf("reading %q in %s: %w", key, s.location, err)
		}
	}
	count, err := s.readAt(ctx, key, p, offset)
	if err != nil {
		return 0, fmt.Errorf("reading %q in %s: %w", key, s.location, err)
	}
	return count, nil
}

// readAt reads part of an object; a whole one is compared with its checksum.
func (s *Store) readAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	count, whole, err := s.read(ctx, name, p, offset)
	if err != nil {
		return 0, err
	}
	if want := min(int64(len(p)), max(0, whole.length-offset)); int64(count) < want {
		return 0, fmt.Errorf("%d of %d bytes at %d came: %w", count, want, offset, store.ErrCorrupt)
	}
	if offset == 0 && int64(count) == whole.length && kernel.Checksum(p[:count]) != whole.checksum {
		return 0, fmt.Errorf("checksum of the value is wrong: %w", store.ErrCorrupt)
	}
	return count, nil
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	if err := s.delete(ctx, key); err != nil {
		return fmt.Errorf("deleting %q in %s: %w", key, s.location, err)
	}
	return nil
}

// delete removes an object that may be absent.
func (s *Store) delete(ctx context.Context, name string) error {
	if err := s.remove(ctx, name); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

const (
	pageObjects = 1000 // names in one step of a listing
	pageSizes   = 32   // objects whose sizes are asked for at once
)

// List implements store.Lister.
func (s *Store) List(ctx context.Context, prefix string, visit func(key string, size int64) error) error {
	if err := s.list(ctx, prefix, visit); err != nil {
		return fmt.Errorf("listing %q in %s: %w", prefix, s.location, err)
	}
	return nil
}

// Page implements store.Lister. The order is Ceph's own, by a hash of the name and then the name, so that a name says where it
// is. Objects are not looked at: one that has a key for a name, and is none of ours, is shown.
func (s *Store) Page(ctx context.Context, prefix, after string, limit int) (keys []string, more bool, err error) {
	var from *listing
	for more = true; more && len(keys) < limit; {
		if from, err = s.nextPage(ctx, from, after); err != nil {
			return nil, false, fmt.Errorf("listing %q in %s: %w", prefix, s.location, err)
		}
		more = from.more
		for _, name := range from.names {
			if strings.HasPrefix(name, prefix) && store.CheckKey(name) == nil && isBefore(after, name) {
				keys = append(keys, name)
			}
		}
	}
	if err := s.endListing(from); err != nil {
		return nil, false, fmt.Errorf("listing %q in %s: %w", prefix, s.location, err)
	}
	if len(keys) > limit {
		return keys[:limit], true, nil
	}
	return keys, more, nil
}

func (s *Store) list(ctx context.Context, prefix string, visit func(key string, size int64) error) error {
	var from *listing
	for more := true; more; {
		page, err := s.nextPage(ctx, from, "")
		if err != nil {
			return err
		}
		from, more = page, page.more
		if err := s.visitPage(ctx, page.names, prefix, visit); err != nil {
			return errors.Join(err, s.endListing(page))
		}
	}
	return s.endListing(from)
}

// listing is a step of a listing: names, and where the next step begins.
type listing struct {
	names []string
	next  cursor
	more  bool
	err   error
}

// nextPage makes the step of a listing that comes after another, whose place it takes over; nil for none: from where a name
// is, empty for the beginning. It returns as soon as ctx ends.
func (s *Store) nextPage(ctx context.Context, after *listing, name string) (*listing, error) {
	if err := ctx.Err(); err != nil {
		return nil, errors.Join(err, s.endListing(after))
	}
	if err := s.begin(); err != nil {
		return nil, err
	}
	if err := s.awaitLatest(ctx); err != nil {
		if after != nil {
			after.next.release(s.pool)
		}
		s.end()
		return nil, err
	}
	made := make(chan *listing, 1)
	abandoned := make(chan struct{})
	go func() {
		defer s.end()
		var place cursor
		if after == nil {
			place = s.cursorAt(name)
		} else {
			place = after.next
		}
		l := &listing{}
		l.names, l.next, l.more, l.err = s.page(place, pageObjects)
		place.release(s.pool)
		select {
		case <-abandoned:
			if l.err == nil {
				l.next.release(s.pool)
			}
		case made <- l:
		}
	}()
	select {
	case l := <-made:
		return l, l.err
	case <-ctx.Done():
		close(abandoned)
		return nil, ctx.Err()
	}
}

// endListing gives back the place of a listing that does not go on.
func (s *Store) endListing(l *listing) error {
	if l == nil {
		return nil
	}
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	l.next.release(s.pool)
	return nil
}

// visitPage shows the keys with the prefix among the names of objects, with their sizes.
func (s *Store) visitPage(ctx context.Context, names []string, prefix string, visit func(key string, size int64) error) error {
	var keys []string
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && store.CheckKey(name) == nil {
			keys = append(keys, name)
		}
	}
	sizes := make([]int64, len(keys))
	group, asking := errgroup.WithContext(ctx)
	group.SetLimit(pageSizes)
	for i, key := range keys {
		group.Go(func() error {
			_, whole, err := s.read(asking, key, nil, 0)
			sizes[i] = whole.length
			if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrCorrupt) { // deleted meanwhile, or not ours
				sizes[i], err = -1, nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, key := range keys {
		if sizes[i] < 0 {
			continue
		}
		if err := visit(key, sizes[i]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

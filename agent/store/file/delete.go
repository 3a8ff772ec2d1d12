package file

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/restripe/restripe/agent/store"
)

// Delete implements store.Store. A deleted value does not come back after a power failure.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("deleting %q in %s: %w", key, s.path, err)
	}
	leaf := leafOf(key)
	err := unlinkAt(s.root, leaf+"/"+nameOf(key))
	if err == nil || errors.Is(err, unix.ENOENT) { // absent, perhaps by a Delete that crashed before it flushed
		err = flushDirectory(s.root, leaf)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err := s.written(err); err != nil {
		return fmt.Errorf("deleting %q in %s: %w", key, s.path, err)
	}
	return nil
}

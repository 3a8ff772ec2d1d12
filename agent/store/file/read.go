package file

import (
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/store"
)

// ReadAt implements store.Store.
func (s *Store) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	if err := store.CheckRead(key, offset); err != nil {
		return 0, err
	}
	count, err := s.readAt(ctx, leafOf(key)+"/"+nameOf(key), p, offset)
	if err != nil {
		return 0, fmt.Errorf("reading %q in %s: %w", key, s.path, classifyRead(err))
	}
	return count, nil
}

func (s *Store) readAt(ctx context.Context, target string, p []byte, offset int64) (count int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	file, err := openAt(s.root, target, unix.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.ENOENT) {
		return 0, store.ErrNotFound
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	status, err := file.Stat()
	if err != nil {
		return 0, err
	}
	encoded := make([]byte, footerBytes)
	if status.Size() < footerBytes {
		encoded = nil
	} else if _, err := file.ReadAt(encoded, status.Size()-footerBytes); err != nil {
		return 0, err
	}
	end, err := parseFooter(encoded, status.Size())
	if err != nil {
		return 0, err
	}
	if offset >= end.length {
		return 0, nil
	}
	wanted := p[:min(int64(len(p)), end.length-offset)]
	count, err = file.ReadAt(wanted, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if count < len(wanted) {
		return 0, fmt.Errorf("file ended %d bytes early: %w", len(wanted)-count, store.ErrCorrupt)
	}
	if int64(count) == end.length && kernel.Checksum(wanted) != end.checksum {
		return 0, fmt.Errorf("checksum of the value is wrong: %w", store.ErrCorrupt)
	}
	return count, nil
}

package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// listBatch is how many names of a directory are read at a time.
const listBatch = 1024

// List implements store.Lister. The size of a file that was cut is what is left of its value.
func (s *Store) List(ctx context.Context, prefix string, visit func(key string, size int64) error) error {
	var visitErr error
	err := s.eachLeaf(func(leaf string) error {
		return s.listLeaf(ctx, leaf, prefix, func(key string, size int64) error {
			visitErr = visit(key, size)
			return visitErr
		})
	})
	if visitErr != nil {
		return visitErr
	}
	if err != nil {
		return fmt.Errorf("listing %q in %s: %w", prefix, s.path, classify(err))
	}
	return nil
}

// eachLeaf calls visit for every directory that may hold values.
func (s *Store) eachLeaf(visit func(leaf string) error) error {
	for first := range fanOut {
		for second := range fanOut {
			if err := visit(fmt.Sprintf("%s/%02x/%02x", valuesName, first, second)); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachName passes on the names in a directory in batches; an absent directory has none.
func (s *Store) eachName(path string, visit func(directory *os.File, names []string) error) (err error) {
	directory, err := openAt(s.root, path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, directory.Close()) }()
	for {
		names, err := directory.Readdirnames(listBatch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(directory, names); err != nil {
			return err
		}
	}
}

// listLeaf visits the values in one directory.
func (s *Store) listLeaf(ctx context.Context, leaf, prefix string, visit func(key string, size int64) error) error {
	return s.eachName(leaf, func(directory *os.File, names []string) error {
		for _, name := range names {
			key, found := keyOf(name)
			if !found || !strings.HasPrefix(key, prefix) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			var status unix.Stat_t
			err := retryInterrupted(func() error {
				return unix.Fstatat(int(directory.Fd()), name, &status, unix.AT_SYMLINK_NOFOLLOW)
			})
			if errors.Is(err, unix.ENOENT) { // deleted meanwhile
				continue
			}
			if err != nil {
				return &os.PathError{Op: "stat", Path: leaf + "/" + name, Err: err}
			}
			if err := visit(key, max(0, status.Size-footerBytes)); err != nil {
				return err
			}
		}
		return nil
	})
}

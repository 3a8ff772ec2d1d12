package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// listBatch is how many names of a directory are read at a time.
const listBatch = 1024

// List implements store.Lister. The size of a file that was cut is what is left of its value.
func (s *Store) List(ctx context.Context, prefix string, visit func(key string, size int64) error) error {
	var visitErr error
	for number := range leaves {
		err := s.listLeaf(ctx, leafPath(number), prefix, func(key string, size int64) error {
			visitErr = visit(key, size)
			return visitErr
		})
		if visitErr != nil {
			return visitErr
		}
		if err != nil {
			return fmt.Errorf("listing %q in %s: %w", prefix, s.path, classify(err))
		}
	}
	return nil
}

// Page implements store.Lister. The directories of the values are in order, and in each the keys; so a page reads the
// directories that its keys are in, and names alone.
func (s *Store) Page(ctx context.Context, prefix, after string, limit int) (page []string, more bool, err error) {
	first := 0
	if after != "" {
		first = leafNumber(after)
	}
	for number := first; number < leaves; number++ {
		keys, err := s.leafKeys(ctx, number, prefix)
		if err != nil {
			return nil, false, fmt.Errorf("listing %q in %s: %w", prefix, s.path, classify(err))
		}
		if number == first {
			from, found := slices.BinarySearch(keys, after)
			if found {
				from++
			}
			keys = keys[from:]
		}
		if len(page)+len(keys) > limit {
			return append(page, keys[:limit-len(page)]...), true, nil
		}
		page = append(page, keys...)
	}
	return page, false, nil
}

// leafKeys returns the keys in one directory that begin with prefix, in order.
func (s *Store) leafKeys(ctx context.Context, number int, prefix string) (keys []string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err = s.eachName(leafPath(number), func(_ *os.File, names []string) error {
		for _, name := range names {
			// A file that somebody put into another key's directory is no value, and would lead a listing astray.
			if key, found := keyOf(name); found && strings.HasPrefix(key, prefix) && leafNumber(key) == number {
				keys = append(keys, key)
			}
		}
		return ctx.Err()
	})
	slices.Sort(keys)
	return slices.Compact(keys), err // a directory that changes may name a file twice
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
		s.listed.names.Add(int64(len(names)))
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
			s.listed.sizes.Add(1)
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

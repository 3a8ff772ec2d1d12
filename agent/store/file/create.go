package file

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/store"
)

// writePieceBytes is how much is written between two looks at the context.
const writePieceBytes = 4 << 20

// Create implements store.Store.
func (s *Store) Create(ctx context.Context, key string, value []byte) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	err := s.create(ctx, leafOf(key), nameOf(key), value)
	if errors.Is(err, unix.ENOENT) { // somebody removed directories that were there
		if err = s.makeAgain(); err == nil {
			err = s.create(ctx, leafOf(key), nameOf(key), value)
		}
	}
	if err := s.written(err); err != nil {
		return fmt.Errorf("creating %q in %s: %w", key, s.path, err)
	}
	return nil
}

// create writes a value, and links it to its name.
func (s *Store) create(ctx context.Context, leaf, name string, value []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.ensureDirectory(leaf); err != nil {
		return err
	}
	target := leaf + "/" + name
	if found, err := s.exists(target); err != nil {
		return err
	} else if found {
		return s.refuse(leaf)
	}
	file, temporary, err := s.openUnlinked(leaf)
	if err != nil {
		return err
	}
	if err = writeValue(ctx, file, value); err == nil {
		err = s.link(file, temporary, target)
	}
	err = errors.Join(err, file.Close())
	if temporary != "" {
		if unlinkErr := unlinkAt(s.root, temporary); unlinkErr != nil && !errors.Is(unlinkErr, unix.ENOENT) {
			err = errors.Join(err, unlinkErr)
		}
	}
	if errors.Is(err, unix.EEXIST) {
		return s.refuse(leaf)
	}
	if err != nil {
		return err
	}
	return flushDirectory(s.root, leaf)
}

// refuse answers that a name in leaf is taken. The value may be there through a Create that crashed before it flushed
// the directory; whoever is told that the value exists may rely on it from now on.
func (s *Store) refuse(leaf string) error {
	if err := flushDirectory(s.root, leaf); err != nil {
		return err
	}
	return store.ErrExists
}

// exists looks whether there is a file at target, so that a value is not written in vain.
func (s *Store) exists(target string) (bool, error) {
	var status unix.Stat_t
	err := retryInterrupted(func() error {
		return unix.Fstatat(int(s.root.Fd()), target, &status, unix.AT_SYMLINK_NOFOLLOW)
	})
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	if err != nil {
		return false, &os.PathError{Op: "stat", Path: target, Err: err}
	}
	return true, nil
}

// openUnlinked opens an empty file that has no name yet, or, where the file system cannot do that, the returned
// temporary name.
func (s *Store) openUnlinked(leaf string) (file *os.File, temporary string, err error) {
	if s.namelessFiles {
		file, err = openAt(s.root, leaf, unix.O_TMPFILE|unix.O_WRONLY, 0o600)
		return file, "", err
	}
	temporary = temporaryName + "/" + rand.Text()
	file, err = openAt(s.root, temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	return file, temporary, err
}

// writeValue writes value and footer, and puts them on the disk.
func writeValue(ctx context.Context, file *os.File, value []byte) error {
	end := footer{checksum: kernel.Checksum(value), length: int64(len(value))}
	for rest := value; len(rest) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece := rest[:min(len(rest), writePieceBytes)]
		if _, err := file.Write(piece); err != nil {
			return err
		}
		rest = rest[len(piece):]
	}
	if _, err := file.Write(end.encode()); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return file.Sync()
}

// link gives a written file its name, and fails with EEXIST if the name is taken.
func (s *Store) link(file *os.File, temporary, target string) error {
	if temporary == "" {
		return linkNameless(s.root, file, target)
	}
	root := int(s.root.Fd())
	err := retryInterrupted(func() error { return unix.Linkat(root, temporary, root, target, 0) })
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EMLINK) { // no hard links here
		err = retryInterrupted(func() error { return unix.Renameat2(root, temporary, root, target, unix.RENAME_NOREPLACE) })
	}
	if err != nil {
		return &os.PathError{Op: "link", Path: target, Err: err}
	}
	return nil
}

// linkNameless gives a file made with O_TMPFILE a name. The way over /proc needs no privilege.
func linkNameless(root, file *os.File, target string) error {
	descriptor := "/proc/self/fd/" + strconv.Itoa(int(file.Fd()))
	err := retryInterrupted(func() error {
		return unix.Linkat(unix.AT_FDCWD, descriptor, int(root.Fd()), target, unix.AT_SYMLINK_FOLLOW)
	})
	if err != nil {
		return &os.PathError{Op: "link", Path: target, Err: err}
	}
	return nil
}

// probeNamelessFiles finds out whether a file can be made first and named later.
func (s *Store) probeNamelessFiles() bool {
	file, err := openAt(s.root, temporaryName, unix.O_TMPFILE|unix.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	name := temporaryName + "/" + rand.Text()
	err = linkNameless(s.root, file, name)
	if err == nil {
		err = unlinkAt(s.root, name)
	}
	return errors.Join(err, file.Close()) == nil
}

// makeAgain forgets which directories are there, and makes those that every write takes.
func (s *Store) makeAgain() error {
	s.mu.Lock()
	clear(s.flushed)
	s.mu.Unlock()
	return errors.Join(s.ensureDirectory(temporaryName), s.ensureDirectory(valuesName))
}

// ensureDirectory makes the directory at a path relative to the store's, with its parents, and puts their names on the
// disk, once per directory and process.
func (s *Store) ensureDirectory(directory string) error {
	if directory == "." {
		return nil
	}
	s.mu.Lock()
	known := s.flushed[directory]
	s.mu.Unlock()
	if known {
		return nil
	}
	parent := path.Dir(directory)
	if err := s.ensureDirectory(parent); err != nil {
		return err
	}
	err := retryInterrupted(func() error { return unix.Mkdirat(int(s.root.Fd()), directory, 0o700) })
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return &os.PathError{Op: "mkdir", Path: directory, Err: err}
	}
	if err := flushDirectory(s.root, parent); err != nil {
		return err
	}
	s.mu.Lock()
	s.flushed[directory] = true
	s.mu.Unlock()
	return nil
}

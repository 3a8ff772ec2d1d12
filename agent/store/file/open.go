package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/restripe/restripe/agent/flock"
	"github.com/restripe/restripe/agent/store"
)

// Names inside the store's directory.
const (
	markerName    = "restripe-store"
	markerContent = "restripe file store, format 1\n"
	lockName      = "lock"
	temporaryName = "temporary"
	valuesName    = "values"
)

// Store is a store.Store and store.Lister on one directory. Use Open.
type Store struct {
	path string
	root *os.File // the directory; everything is reached relative to it
	lock *os.File

	namelessFiles bool // the file system has O_TMPFILE, and /proc to link from
	refusesWrites atomic.Bool
	listed        struct{ names, sizes atomic.Int64 } // that were read in directories so far

	mu      sync.Mutex
	flushed map[string]bool // directories whose own names are known to be on the disk
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Lister = (*Store)(nil)
)

// Open uses the directory at path as a store, and makes it one if it is absent or empty. Its user alone may look at the values.
// What interrupted writes left behind is removed. The directory is locked against other agents until Close.
//
// Errors wrap ErrInUse, ErrForeign, store.ErrReadOnly or store.ErrFull where one applies.
func Open(ctx context.Context, path string) (*Store, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening the directory %s: %w", path, err)
	}
	if err := makeDirectory(absolute); err != nil {
		return nil, fmt.Errorf("making the directory %s: %w; make it yourself, or give the agent's user the right to", absolute, classify(err))
	}
	root, err := os.Open(absolute)
	if err != nil {
		return nil, fmt.Errorf("opening the directory %s: %w", absolute, classify(err))
	}
	s := &Store{path: absolute, root: root, flushed: map[string]bool{}}
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// makeDirectory makes the directory at path and its parents where they are absent, and puts their names on the disk.
func makeDirectory(path string) error {
	parent := filepath.Dir(path)
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, os.ErrNotExist) && parent != path {
		if err := makeDirectory(parent); err != nil {
			return err
		}
		err = os.Mkdir(path, 0o700)
	}
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	directory, err := os.Open(parent)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

// prepare turns an open directory into a usable store.
func (s *Store) prepare(ctx context.Context) error {
	fresh, err := s.checkMarker()
	if err != nil {
		return err
	}
	if err := s.takeLock(); err != nil {
		return err
	}
	for _, name := range []string{temporaryName, valuesName} {
		if err := s.ensureDirectory(name); err != nil {
			return fmt.Errorf("preparing the directory %s: %w", s.path, classify(err))
		}
		// One that others could look into, as earlier releases made it, is closed. Whoever does not own it cannot do that, and
		// must not be kept from the blocks in it.
		_ = os.Chmod(filepath.Join(s.path, name), 0o700)
	}
	if fresh {
		if err := s.writeMarker(); err != nil {
			return fmt.Errorf("marking the directory %s as a store: %w", s.path, classify(err))
		}
	}
	if err := s.removeLeftovers(ctx); err != nil {
		return fmt.Errorf("removing what interrupted writes left in %s: %w", s.path, classify(err))
	}
	s.namelessFiles = s.probeNamelessFiles()
	return nil
}

// checkMarker reports whether the directory is empty and so may be made a store.
func (s *Store) checkMarker() (fresh bool, err error) {
	content, err := os.ReadFile(filepath.Join(s.path, markerName))
	if err == nil {
		if string(content) != markerContent {
			return false, fmt.Errorf("%w of this version: %s says %q, want %q; use the version that wrote it, or another directory",
				ErrForeign, filepath.Join(s.path, markerName), content, markerContent)
		}
		return false, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("opening the directory %s: %w", s.path, classify(err))
	}
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return false, fmt.Errorf("opening the directory %s: %w", s.path, classify(err))
	}
	for _, entry := range entries {
		switch entry.Name() {
		case lockName, temporaryName, valuesName: // a crash before the marker was written
		case "lost+found":
		default:
			return false, fmt.Errorf("%w: %s holds other files, such as %q; choose an empty directory", ErrForeign, s.path, entry.Name())
		}
	}
	return true, nil
}

// takeLock locks the directory against other agents, in this process and in others.
func (s *Store) takeLock() error {
	lock, err := openAt(s.root, lockName, unix.O_RDWR|unix.O_CREAT, 0o600)
	if err != nil {
		return fmt.Errorf("locking the directory %s: %w", s.path, classify(err))
	}
	if err := flock.Take(lock); err != nil {
		holder := make([]byte, 32)
		count, readErr := lock.ReadAt(holder, 0)
		closeErr := lock.Close()
		if !errors.Is(err, flock.ErrHeld) {
			return errors.Join(fmt.Errorf("locking the directory %s: %w", s.path, err), closeErr)
		}
		by := "another agent"
		if process := strings.TrimSpace(string(holder[:count])); process != "" {
			by += " (process " + process + ")"
		} else if readErr != nil && count > 0 {
			return errors.Join(fmt.Errorf("locking the directory %s: %w", s.path, readErr), closeErr)
		}
		return errors.Join(fmt.Errorf("%w: %s belongs to %s; stop that agent, or give this one another directory", ErrInUse, s.path, by), closeErr)
	}
	s.lock = lock
	if err := lock.Truncate(0); err != nil {
		return fmt.Errorf("locking the directory %s: %w", s.path, classify(err))
	}
	if _, err := lock.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return fmt.Errorf("locking the directory %s: %w", s.path, classify(err))
	}
	return nil
}

// writeMarker makes the directory a store for good.
func (s *Store) writeMarker() error {
	marker, err := openAt(s.root, markerName, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = marker.WriteString(markerContent)
	if err == nil {
		err = marker.Sync()
	}
	if err := errors.Join(err, marker.Close()); err != nil {
		return err
	}
	return s.root.Sync()
}

// removeLeftovers deletes the named temporary files of writes that did not finish.
func (s *Store) removeLeftovers(ctx context.Context) error {
	directory, err := openAt(s.root, temporaryName, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	names, err := directory.Readdirnames(-1)
	if err := errors.Join(err, directory.Close()); err != nil {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := unlinkAt(s.root, temporaryName+"/"+name); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

// Close gives up the lock. The values stay.
func (s *Store) Close() error {
	var errs []error
	if s.lock != nil {
		errs = append(errs, flock.Release(s.lock))
	}
	errs = append(errs, s.root.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("closing the directory %s: %w", s.path, err)
	}
	return nil
}

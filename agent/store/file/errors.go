package file

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/restripe/restripe/agent/store"
)

// ErrInUse is returned by Open for a directory that another agent uses.
var ErrInUse = errors.New("directory is in use")

// ErrForeign is returned by Open for a directory that holds something else, or a format from another version.
var ErrForeign = errors.New("directory is not a store")

// written classifies how a write ended, and keeps for Info whether the file system refuses writes: one that found itself
// damaged does not say so when it is asked.
func (s *Store) written(err error) error {
	if err == nil {
		s.refusesWrites.Store(false)
		return nil
	}
	if err = classify(err); errors.Is(err, store.ErrReadOnly) {
		s.refusesWrites.Store(true)
	}
	return err
}

// classify adds the sentinel that an error of the operating system stands for.
func classify(err error) error {
	var number unix.Errno
	if !errors.As(err, &number) {
		return err
	}
	switch number {
	case unix.ENOSPC, unix.EDQUOT:
		return fmt.Errorf("%w: %w", store.ErrFull, err)
	case unix.EROFS, unix.EACCES, unix.EPERM:
		return fmt.Errorf("%w: %w", store.ErrReadOnly, err)
	case unix.EFBIG:
		return fmt.Errorf("%w: %w", store.ErrTooLarge, err)
	case unix.ENODEV, unix.ENXIO, unix.ESTALE, unix.ESHUTDOWN:
		return fmt.Errorf("%w: %w", store.ErrDown, err)
	}
	return err
}

// classifyRead is classify for the bytes of a value: a medium that cannot give them back has lost them.
func classifyRead(err error) error {
	for _, number := range []unix.Errno{unix.EIO, unix.EUCLEAN, unix.EBADMSG} {
		if errors.Is(err, number) {
			return fmt.Errorf("%w: %w", store.ErrCorrupt, err)
		}
	}
	return classify(err)
}

package file

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// retryInterrupted repeats call while a signal interrupts it; Go's own preemption sends signals.
func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// openAt opens a path relative to directory.
func openAt(directory *os.File, path string, flags int, mode uint32) (*os.File, error) {
	var descriptor int
	err := retryInterrupted(func() (err error) {
		descriptor, err = unix.Openat(int(directory.Fd()), path, flags|unix.O_CLOEXEC, mode)
		return err
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(descriptor), path), nil
}

// unlinkAt removes the file at a path relative to directory.
func unlinkAt(directory *os.File, path string) error {
	if err := retryInterrupted(func() error { return unix.Unlinkat(int(directory.Fd()), path, 0) }); err != nil {
		return &os.PathError{Op: "unlink", Path: path, Err: err}
	}
	return nil
}

// flushDirectory puts the names in the directory at a path relative to root on the disk.
func flushDirectory(root *os.File, path string) error {
	directory, err := openAt(root, path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}

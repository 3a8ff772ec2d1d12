// Package flock holds files for one opening of them at a time, across processes and within one (flock(2)). A lock ends with
// the process that has it at the latest.
package flock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// ErrHeld says that another opening of the file holds the lock.
var ErrHeld error = unix.EWOULDBLOCK

// Take locks an open file without waiting. The error is ErrHeld, or that of a file system that has no locks.
func Take(file *os.File) error {
	for {
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Release unlocks a file and closes it. Closing alone would not do: a child that is being forked at the moment has the
// descriptor as well, and with it the lock, until it executes its program.
func Release(file *os.File) error {
	return errors.Join(unix.Flock(int(file.Fd()), unix.LOCK_UN), file.Close())
}

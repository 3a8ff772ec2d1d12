package resp

import (
	"errors"
	"syscall"
)

// isTooManyFiles reports whether a connection was not accepted because the process, or the machine, has too many files open.
func isTooManyFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

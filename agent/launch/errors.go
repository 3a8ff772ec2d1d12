package launch

import (
	"errors"
	"fmt"
)

// Sentinels; use errors.Is.
var (
	ErrInUse       = errors.New("the state directory is in use by another launcher")
	ErrOtherShape  = errors.New("the state directory holds a cluster of another shape")
	ErrNoProcess   = errors.New("no such process")
	ErrNoProgram   = errors.New("a program is not installed")
	ErrAddressBusy = errors.New("the address is taken")
)

// diedEarly says that a child ended before it was ready.
type diedEarly struct {
	name  string
	cause error
	log   string // path
	tail  string // its last lines
}

func (e *diedEarly) Error() string {
	if e.tail == "" {
		return fmt.Sprintf("%s ended before it was ready (%v); its log is %s", e.name, e.cause, e.log)
	}
	return fmt.Sprintf("%s ended before it was ready (%v); its log %s ends with:\n%s", e.name, e.cause, e.log, e.tail)
}

func (e *diedEarly) Unwrap() error { return e.cause }

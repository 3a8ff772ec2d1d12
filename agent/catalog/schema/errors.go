package schema

import "errors"

// Sentinels of what works on records; use errors.Is.
var (
	// ErrBadChange says that a request contradicts itself or the protocol; it is a mistake of the caller.
	ErrBadChange = errors.New("impossible change")
	// ErrUnknown says that it could not be found out whether an attempt took effect. Never report it as a failure.
	ErrUnknown = errors.New("outcome is unknown")
	// ErrNoJob says that the catalog has no job of that name.
	ErrNoJob = errors.New("no such job")
)

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
	// ErrAside says that the catalog is not in service: it is a backup, was moved to another engine, or is not whole.
	ErrAside = errors.New("catalog is not in service")
	// ErrFenced says that the gateway has a later start than this one, which therefore changes nothing any more.
	ErrFenced = errors.New("this gateway was started again elsewhere")
	// ErrClaimed says that a person has claimed the catalog: it is for starts from then on.
	ErrClaimed = errors.New("the catalog was claimed: gateways have to be started again")
	// ErrBehind says that the catalog has lost changes that it had acknowledged: it was put back, or failed over to a copy that
	// lacks them. Nothing is changed by this start any more.
	ErrBehind = errors.New("the catalog has lost acknowledged changes")
)

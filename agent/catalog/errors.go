package catalog

import (
	"errors"

	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// Sentinels; use errors.Is.
var (
	// ErrNoObject says that the catalog has no object of that key.
	ErrNoObject = errors.New("no such object")
	// ErrNoGroup says that the catalog has no group of that name.
	ErrNoGroup = errors.New("no such group")
	// ErrNoJob says that the catalog has no job of that name.
	ErrNoJob = schema.ErrNoJob
	// ErrStale says that a record is not as it was read; a *StaleError in the chain says which.
	ErrStale = schema.ErrStale
	// ErrNotActive says that the attempt was aborted: it has not taken effect and never will.
	ErrNotActive = errors.New("attempt is not active any more")

	// ErrOtherRequest says that the name of a request was used for another change before.
	ErrOtherRequest = errors.New("the name of the request was used for another change")
	// ErrCommitted says that the attempt took effect, where that was not wished.
	ErrCommitted = errors.New("attempt was committed")
	// ErrUnknown says that it could not be found out whether an attempt took effect. Never report it as a failure.
	ErrUnknown = schema.ErrUnknown
	// ErrBadChange says that a request contradicts itself or the protocol; it is a mistake of the caller.
	ErrBadChange = schema.ErrBadChange
	// ErrNewer says that a later release wrote the catalog, or the record that was to be changed.
	ErrNewer = kv.ErrNewer
	// ErrOlder says that the catalog was written by an older release whose records cannot be used any more.
	ErrOlder = errors.New("catalog is older than this program")
	// ErrAside says that the catalog is not in service: it is a backup, was moved to another engine, or is not whole.
	ErrAside = schema.ErrAside
	// ErrFenced says that the gateway has a later start than this one, which therefore changes nothing any more.
	ErrFenced = schema.ErrFenced
	// ErrClaimed says that a person has claimed the catalog: it is for starts from then on.
	ErrClaimed = schema.ErrClaimed
	// ErrBehind says that the catalog has lost changes that it had acknowledged: it was put back, or failed over to a copy that
	// lacks them. Nothing is changed by this start any more.
	ErrBehind = schema.ErrBehind
	// ErrCorrupt says that a record cannot be decoded, or that records contradict each other.
	ErrCorrupt = kv.ErrCorrupt
)

// The conditions of a commit that did not hold, as those who use a catalog know them.
type (
	Violation   = schema.Violation
	StaleDetail = schema.StaleDetail
	StaleError  = schema.StaleError
)

// What was not as it was read; see schema.
const (
	ViolationObject   = schema.ViolationObject
	ViolationRevision = schema.ViolationRevision
	ViolationRepeated = schema.ViolationRepeated
	ViolationGroup    = schema.ViolationGroup
	ViolationFreed    = schema.ViolationFreed
	ViolationSealed   = schema.ViolationSealed
	ViolationAhead    = schema.ViolationAhead
	ViolationWhole    = schema.ViolationWhole
)

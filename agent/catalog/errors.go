package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/kv"
)

// Sentinels; use errors.Is.
var (
	// ErrNoObject says that the catalog has no object of that key.
	ErrNoObject = errors.New("no such object")
	// ErrNoGroup says that the catalog has no group of that name.
	ErrNoGroup = errors.New("no such group")
	// ErrNoJob says that the catalog has no job of that name.
	ErrNoJob = errors.New("no such job")
	// ErrStale says that a record is not as it was read; a *StaleError in the chain says which.
	ErrStale = errors.New("catalog has moved on")
	// ErrNotActive says that the attempt was aborted: it has not taken effect and never will.
	ErrNotActive = errors.New("attempt is not active any more")
	// ErrCommitted says that the attempt took effect, where that was not wished.
	ErrCommitted = errors.New("attempt was committed")
	// ErrUnknown says that it could not be found out whether an attempt took effect. Never report it as a failure.
	ErrUnknown = errors.New("outcome is unknown")
	// ErrBadChange says that a request contradicts itself or the protocol; it is a mistake of the caller.
	ErrBadChange = errors.New("impossible change")
	// ErrNewer says that a later release wrote the catalog, or the record that was to be changed.
	ErrNewer = kv.ErrNewer
	// ErrOlder says that the catalog was written by an older release whose records cannot be used any more.
	ErrOlder = errors.New("catalog is older than this program")
	// ErrAside says that the catalog is not in service: it is a backup, was moved to another engine, or is not whole.
	ErrAside = errors.New("catalog is not in service")
	// ErrFenced says that the gateway has a later start than this one, which therefore changes nothing any more.
	ErrFenced = errors.New("this gateway was started again elsewhere")
	// ErrClaimed says that a person has claimed the catalog: it is for starts from then on.
	ErrClaimed = errors.New("the catalog was claimed: gateways have to be started again")
	// ErrBehind says that the catalog has lost changes that it had acknowledged: it was put back, or failed over to a copy that
	// lacks them. Nothing is changed by this start any more.
	ErrBehind = errors.New("the catalog has lost acknowledged changes")
	// ErrCorrupt says that a record cannot be decoded, or that records contradict each other.
	ErrCorrupt = kv.ErrCorrupt
)

// Violation names the condition of a commit that did not hold.
type Violation string

// The conditions of PROTOCOL section 2, rule 6.
const (
	ViolationObject   Violation = "object changed"   // the object record is not as read
	ViolationRevision Violation = "revision differs" // the client's own precondition does not hold
	ViolationGroup    Violation = "group changed"    // the group record is not as read
	ViolationFreed    Violation = "group is gone"    // the group record does not exist any more
	ViolationSealed   Violation = "group is sealed"  // the group takes no appends
	ViolationAhead    Violation = "object is newer"  // than the attempt, which was announced ahead
	ViolationWhole    Violation = "result not whole" // a slot's store lost its contents, or was never registered
)

// StaleDetail is one condition that did not hold.
type StaleDetail struct {
	Violation Violation
	Key       string        // object key, where an object is concerned
	Group     block.GroupID // where a group is concerned
	Node      block.NodeID  // for ViolationWhole
}

func (d StaleDetail) String() string {
	switch d.Violation {
	case ViolationObject, ViolationRevision, ViolationAhead:
		return fmt.Sprintf("object %q: %s", d.Key, d.Violation)
	case ViolationWhole:
		return fmt.Sprintf("group %s on node %s: %s", d.Group, d.Node, d.Violation)
	default:
		return fmt.Sprintf("group %s: %s", d.Group, d.Violation)
	}
}

// StaleError lists the conditions that did not hold; it is an ErrStale.
type StaleError struct {
	Details []StaleDetail
}

func (e *StaleError) Error() string {
	texts := make([]string, 0, len(e.Details))
	for _, detail := range e.Details {
		texts = append(texts, detail.String())
	}
	return fmt.Sprintf("%v: %s", ErrStale, strings.Join(texts, "; "))
}

// Unwrap makes errors.Is(e, ErrStale) true.
func (e *StaleError) Unwrap() error { return ErrStale }

// Has reports whether one of the conditions that did not hold is violation.
func (e *StaleError) Has(violation Violation) bool {
	return slices.ContainsFunc(e.Details, func(detail StaleDetail) bool { return detail.Violation == violation })
}

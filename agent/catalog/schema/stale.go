package schema

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/restripe/restripe/agent/block"
)

// ErrStale says that a condition of a commit, or of an announcement, did not hold: somebody else came first.
var ErrStale = errors.New("catalog has moved on")

// Violation names the condition of a commit that did not hold.
type Violation string

// The conditions of PROTOCOL section 2, rule 6.
const (
	ViolationObject   Violation = "object changed"   // the object record is not as read
	ViolationRevision Violation = "revision differs" // the client's own precondition does not hold
	ViolationGroup    Violation = "group changed"    // the group record is not as read
	ViolationFreed    Violation = "group is gone"    // the group record does not exist any more
	ViolationSealed   Violation = "group is sealed"  // the group takes no appends
	ViolationAhead    Violation = "already newer"    // than the attempt, which was announced ahead
	ViolationWhole    Violation = "result not whole" // a slot's store lost its contents, or was never registered
	ViolationRepeated Violation = "done already"     // the request that the change answers
)

// StaleDetail is one condition that did not hold.
type StaleDetail struct {
	Violation Violation
	Key       string        // object key, where an object is concerned
	Group     block.GroupID // where a group is concerned
	Node      block.NodeID  // for ViolationWhole
}

func (d StaleDetail) String() string {
	switch {
	case d.Key != "":
		return fmt.Sprintf("object %q: %s", d.Key, d.Violation)
	case d.Node != "":
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

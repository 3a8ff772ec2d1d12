package api

import (
	"time"

	"github.com/restripe/restripe/agent/block"
)

// ScrubDepth says how closely a scrub looks.
type ScrubDepth string

// The depths of a scrub.
const (
	ScrubAudit   ScrubDepth = "audit"   // every byte is read at its node, and every parity equation checked by fingerprints
	ScrubShallow ScrubDepth = "shallow" // headers and lengths only, and the equations by the fingerprints in the headers
)

// ScrubRequest begins a cycle over all groups.
type ScrubRequest struct {
	Depth          ScrubDepth `json:"depth,omitempty"`          // default audit
	BytesPerSecond int64      `json:"bytesPerSecond,omitempty"` // read at all nodes together; 0: unlimited
}

// ScrubState is where the scrub of a cluster stands.
type ScrubState string

// The states of a scrub.
const (
	ScrubNever   ScrubState = "never" // there was none yet
	ScrubRunning ScrubState = "running"
	ScrubPaused  ScrubState = "paused" // nothing goes on, nor begins by itself
	ScrubDone    ScrubState = "done"
)

// Scrub is the scrub of a cluster, of which there is one: the cycle under way, or else the last. Counts are of this cycle.
type Scrub struct {
	Cycle            int64      `json:"cycle"` // 1 for the first
	State            ScrubState `json:"state"`
	Depth            ScrubDepth `json:"depth"`
	Background       bool       `json:"background"`     // began by itself
	BytesPerSecond   int64      `json:"bytesPerSecond"` // limit on bytes read; 0: none
	Owner            string     `json:"owner"`          // gateway that carries it out, and its start
	GroupsTotal      int64      `json:"groupsTotal"`
	GroupsDone       int64      `json:"groupsDone"`
	GroupsIncomplete int64      `json:"groupsIncomplete"` // of those done: a node did not answer, so not everything was seen
	BytesTotal       int64      `json:"bytesTotal"`       // to read; trailing zeros of units, which are not stored, count too
	BytesDone        int64      `json:"bytesDone"`
	NetworkBytes     int64      `json:"networkBytes"` // between the gateway and the nodes, requests and replies
	Findings         int64      `json:"findings"`
	Repaired         int64      `json:"repaired"` // of the findings
	Error            string     `json:"error,omitempty"`
	Started          time.Time  `json:"started,omitzero"`
	Finished         *time.Time `json:"finished,omitempty"`
	ElapsedSeconds   float64    `json:"elapsedSeconds"`
	ETASeconds       float64    `json:"etaSeconds"`        // -1 unknown
	Seen             *time.Time `json:"seen,omitempty"`    // every block there was then was looked at since, by a cycle that has ended
	Audited          *time.Time `json:"audited,omitempty"` // and read, all of it
}

// The kinds of findings.
const (
	FindingLost    = "lost"    // the store has lost its contents since
	FindingMissing = "missing" // the store does not have the block
	FindingDamaged = "damaged" // bytes that do not match their checksum or fingerprint
	FindingDiffers = "differs" // whole, and not what the catalog says it is
	FindingParity  = "parity"  // every checksum matches, and a parity equation does not hold
)

// ScrubFinding is one thing a scrub found wrong, and what was done about it.
type ScrubFinding struct {
	Found    time.Time     `json:"found"`
	Cycle    int64         `json:"cycle"`
	Kind     string        `json:"kind"`
	Group    block.GroupID `json:"group"`
	Slot     int           `json:"slot"` // data column or parity row; -1: it cannot be told which
	Unit     int           `json:"unit"` // the first wrong unit of the slot, or the stripe where Slot is -1; -1: the whole slot
	Node     block.NodeID  `json:"node,omitempty"`
	Text     string        `json:"text"`
	Objects  []string      `json:"objects"`           // keys with bytes in what is wrong, printable; none where it is parity
	More     int           `json:"more,omitempty"`    // objects beyond those listed
	Repaired bool          `json:"repaired"`          // and verified again
	Outcome  string        `json:"outcome,omitempty"` // what was done, or why nothing could be
}

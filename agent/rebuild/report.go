package rebuild

import (
	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// Report says what was found, and what is doubtful.
type Report struct {
	Cluster    string       `json:"cluster"`
	Next       uint64       `json:"next"` // number of the first stamp to be drawn
	Nodes      []NodeReport `json:"nodes"`
	Blocks     int          `json:"blocks"`  // found in the stores
	Unnamed    int          `json:"unnamed"` // of those, named by no record: kept until the catalog is accepted
	Groups     int          `json:"groups"`
	Objects    int          `json:"objects"`
	Bytes      int64        `json:"bytes"`   // of the objects
	Classes    []string     `json:"classes"` // that groups are of; what they declare is in no block
	Problems   []Problem    `json:"problems"`
	Unknowable []string     `json:"unknowable"` // what no block tells, whatever was found

	Merged *catalog.Merged `json:"merged,omitempty"` // what an existing catalog lacked of it; nil: a new one is made
}

// NodeReport is what was found at one node.
type NodeReport struct {
	ID          block.NodeID      `json:"id"`
	Address     string            `json:"address"`
	Incarnation block.Incarnation `json:"incarnation,omitempty"`
	Blocks      int               `json:"blocks"`
	Problem     string            `json:"problem,omitempty"`
}

// The kinds of problems.
const (
	ProblemNode       = "node"        // it does not answer, and its blocks are missing
	ProblemUnreadable = "unreadable"  // a block whose header cannot be read, or contradicts its group
	ProblemMissing    = "missing"     // a slot without a block, to be repaired
	ProblemWrong      = "wrong"       // a block that contradicts the others: a scrub repairs it
	ProblemIncomplete = "incomplete"  // a group of which too much is missing
	ProblemAborted    = "uncommitted" // blocks of an attempt that was not committed, left out
	ProblemUndecided  = "undecided"   // an attempt that may not have been committed, taken for committed
	ProblemUnnamed    = "unnamed"     // a group whose objects cannot be named
	ProblemVersions   = "versions"    // another complete version of an object, in a group of its own: the newest was taken
	ProblemPartial    = "partial"     // a version of an object of which parts are missing, left out for another one
	ProblemLost       = "lost"        // an object of which parts are missing, and there is no other version
)

// Problem is one thing that is doubtful or lost.
type Problem struct {
	Kind  string         `json:"kind"`
	Node  block.NodeID   `json:"node,omitempty"`
	Group *block.GroupID `json:"group,omitempty"`
	Key   string         `json:"key,omitempty"` // printable
	Text  string         `json:"text"`
}

// unknowable is what blocks cannot tell.
var unknowable = []string{
	"Deletes: an object that was deleted comes back where another object keeps its group, or where its blocks were not deleted yet.",
	"Puts under way when the catalog was lost: one that was staged whole is taken for committed. Of two writes of one key, the one with the higher stamp is taken for the later.",
	"Empty objects: they have no blocks. Put them again.",
	"When objects were modified: they have the time of the rebuild.",
	"Classes and what they declare, transitions, findings of scrubs and the heat of groups: start the gateway with its class file, or apply the policies again.",
	"A code with fewer parities of the same stripes, taken by dropping rows: the group comes back under the code before, with the rows to be repaired.",
	"Objects in groups taken to rep(1): what names them was dropped with the copies.",
}

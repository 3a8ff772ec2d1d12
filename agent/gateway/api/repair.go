package api

import "time"

// RepairRequest asks for a repair pass now, whether or not repair is paused.
type RepairRequest struct {
	Deep  bool   // every block is read and checked whole first
	Shape string // of stripe.RepairShapes; empty: by the most loaded link
	Whole bool   // messages leave as whole cells instead of in pieces; for comparison
	Proxy string // node that decodes in shape initiator; empty: any that is not part of the group
}

// RepairResult counts what one repair pass did.
type RepairResult struct {
	GroupsChecked  int      `json:"groupsChecked"`
	GroupsRepaired int      `json:"groupsRepaired"`
	SlotsRebuilt   int      `json:"slotsRebuilt"`
	Failed         []string `json:"failed,omitempty"` // group and cause, in words
	BytesRebuilt   int64    `json:"bytesRebuilt"`
	Predicted      Traffic  `json:"predicted"` // by the plans of the groups repaired
	Measured       Traffic  `json:"measured"`  // by the agents that carried them out; attempts that did not commit are not in it
	ElapsedSeconds float64  `json:"elapsedSeconds"`
}

// RepairState says what repair does now.
type RepairState string

// The states of repair.
const (
	RepairIdle     RepairState = "idle"
	RepairRunning  RepairState = "running"
	RepairDeferred RepairState = "deferred" // groups that survive a further loss wait, and there are no others to rebuild
	RepairPaused   RepairState = "paused"   // a pass that somebody asks for runs nevertheless
)

// RepairStatus is how the repair of what was lost stands, at the gateway that is asked. Limits and the pause are those of
// the cluster.
type RepairStatus struct {
	State                RepairState `json:"state"`
	BytesPerSecond       int64       `json:"bytesPerSecond"` // limits on bytes read, sent and written; 0: none
	NodeBytesPerSecond   int64       `json:"nodeBytesPerSecond"`
	DomainBytesPerSecond int64       `json:"domainBytesPerSecond"`
	DeferredUntil        *time.Time  `json:"deferredUntil,omitempty"` // until when groups wait that survive a further loss
	DeferredBy           string      `json:"deferredBy,omitempty"`    // who wants that
	Waiting              int         `json:"waiting"`                 // groups that wait for it
	Reported             int         `json:"reported"`                // groups in which something was found missing or wrong, and that are not worked on yet
	Pass                 *RepairPass `json:"pass,omitempty"`
	GroupsRepaired       int64       `json:"groupsRepaired"` // these since the gateway started
	SlotsRebuilt         int64       `json:"slotsRebuilt"`
	BytesRebuilt         int64       `json:"bytesRebuilt"`
	Measured             Traffic     `json:"measured"`
}

// DeferRequest has groups wait for a while that lost something with a node or a store and survive a further loss.
type DeferRequest struct {
	Until time.Time `json:"until"`        // at most a year from now; not after now: they are rebuilt
	By    string    `json:"by,omitempty"` // who wants it, in at most 300 bytes
}

// RepairPass is the progress of a pass: the largest of those under way, or the last that ended. Groups that survive the
// fewest further losses come first.
type RepairPass struct {
	Started        time.Time     `json:"started"`
	Finished       *time.Time    `json:"finished,omitempty"`
	GroupsTotal    int           `json:"groupsTotal"` // to look at
	GroupsChecked  int           `json:"groupsChecked"`
	GroupsRepaired int           `json:"groupsRepaired"`
	GroupsFailed   int           `json:"groupsFailed"`
	SlotsRebuilt   int           `json:"slotsRebuilt"`
	BytesTotal     int64         `json:"bytesTotal"` // of slots known to be lost
	BytesDone      int64         `json:"bytesDone"`
	BySpare        map[int]int64 `json:"groupsBySpare"` // groups known to have lost something, by how many further losses they survived when the pass began
	Problem        string        `json:"problem,omitempty"`
	ElapsedSeconds float64       `json:"elapsedSeconds"`
	ETASeconds     float64       `json:"etaSeconds"` // of what is left, at the rate so far; -1 unknown
}

package api

import (
	"time"
)

// Selector says which objects a transition covers: exactly one field is set.
type Selector struct {
	Key64    string  `json:"key64,omitempty"`
	Prefix64 *string `json:"prefix64,omitempty"` // "" selects everything
	Class    string  `json:"class,omitempty"`
}

// TransitionRequest starts a transition. With Into it takes objects into the class that their keys belong to now, those of one other class
// if the selector names it, of all others else: their records and those of their groups say so then, and no byte moves but of objects
// that share a group with others that stay, which go to a group of their own under the default of the class. It has no From, To and heat.
//
// A transition without Into takes objects to a scheme. From, the heat bounds and SettledSeconds need a selector of a class; a group is
// judged by them when it is looked at and again right before its plan is carried out.
type TransitionRequest struct {
	Selector
	ID                   string   `json:"id,omitempty"` // chosen by the caller, who may repeat the request: the same id is the same transition
	From                 string   `json:"from,omitempty"`
	To                   string   `json:"to,omitempty"`
	Into                 string   `json:"into,omitempty"`        // a class, into which the objects come whose keys belong to it
	HeatAtLeast          *float64 `json:"heatAtLeast,omitempty"` // accesses a day
	HeatBelow            *float64 `json:"heatBelow,omitempty"`
	SettledSeconds       float64  `json:"settledSeconds,omitempty"`       // only groups under their scheme, and watched, for so long
	Planner              string   `json:"planner,omitempty"`              // default restripe
	Objective            string   `json:"objective,omitempty"`            // default network
	BytesPerSecond       int64    `json:"bytesPerSecond,omitempty"`       // 0: unlimited; counts bytes read, sent and written
	NodeBytesPerSecond   int64    `json:"nodeBytesPerSecond,omitempty"`   // the same at any one node, and bytes it receives
	DomainBytesPerSecond int64    `json:"domainBytesPerSecond,omitempty"` // the same at the nodes of any one failure domain
	Concurrency          int      `json:"concurrency,omitempty"`          // groups under way at once; default 4
	Proxy                string   `json:"proxy,omitempty"`                // node that plays the proxy of a proxy planner
}

// MoveRequest takes one object to another scheme.
type MoveRequest struct {
	Key64 string `json:"key64"`
	To    string `json:"to"`
}

// TransitionState is where a transition stands.
type TransitionState string

// The states of a transition; the last three are final.
const (
	TransitionRunning   TransitionState = "running"
	TransitionPaused    TransitionState = "paused"
	TransitionCancelled TransitionState = "cancelled"
	TransitionDone      TransitionState = "done"
	TransitionFailed    TransitionState = "failed"
)

// Final reports whether the transition has ended.
func (s TransitionState) Final() bool {
	return s == TransitionCancelled || s == TransitionDone || s == TransitionFailed
}

// Traffic counts blocks of whole cells, and their bytes. Of what was measured, bytes sent are those that were: trailing zeros of
// cells are not, so that there may be fewer than a plan predicts, which knows the cells only by their size.
type Traffic struct {
	BlocksRead    int64 `json:"blocksRead"`
	BlocksSent    int64 `json:"blocksSent"`
	BlocksWritten int64 `json:"blocksWritten"`
	BytesRead     int64 `json:"bytesRead"`
	BytesSent     int64 `json:"bytesSent"`
	BytesWritten  int64 `json:"bytesWritten"`
}

// Add adds the counts of other.
func (t *Traffic) Add(other Traffic) {
	t.BlocksRead += other.BlocksRead
	t.BlocksSent += other.BlocksSent
	t.BlocksWritten += other.BlocksWritten
	t.BytesRead += other.BytesRead
	t.BytesSent += other.BytesSent
	t.BytesWritten += other.BytesWritten
}

// Transition is the progress of one transition. Counts are of groups and grow until the scan has found them all.
type Transition struct {
	ID                   string           `json:"id"`
	Selector             Selector         `json:"selector"`
	From                 string           `json:"from,omitempty"`
	To                   string           `json:"to"` // empty with Into
	Into                 string           `json:"into,omitempty"`
	HeatAtLeast          *float64         `json:"heatAtLeast,omitempty"`
	HeatBelow            *float64         `json:"heatBelow,omitempty"`
	SettledSeconds       float64          `json:"settledSeconds,omitempty"`
	Planner              string           `json:"planner"`
	Objective            string           `json:"objective"`
	Proxy                string           `json:"proxy,omitempty"`
	State                TransitionState  `json:"state"`
	Error                string           `json:"error,omitempty"`
	GroupsTotal          int64            `json:"groupsTotal"`
	GroupsDone           int64            `json:"groupsDone"`
	GroupsSkipped        int64            `json:"groupsSkipped"`    // already there, gone meanwhile, or no longer selected
	GroupsOffLadder      int64            `json:"groupsOffLadder"`  // written for a ladder without the scheme, and brought under that of the class
	GroupsReshaped       int64            `json:"groupsReshaped"`   // that got or gave back columns, or were dissolved for it
	ObjectsRewritten     int64            `json:"objectsRewritten"` // copied out of groups that they share with others, or that the scheme does not fit
	BytesRewritten       int64            `json:"bytesRewritten"`   // of those objects, through the gateway; they are not in what follows
	BytesTotal           int64            `json:"bytesTotal"`       // of the cells of the groups: user bytes and what fills the last cells up
	BytesDone            int64            `json:"bytesDone"`
	Predicted            Traffic          `json:"predicted"` // by the plans of the groups done
	Measured             Traffic          `json:"measured"`  // by the agents that carried them out; attempts that did not commit are not in it
	Baselines            map[string]int64 `json:"baselines"` // bytes other ways would have sent for the groups done
	Attempts             int64            `json:"attempts"`  // tries of groups, aborted ones included
	BytesPerSecond       int64            `json:"bytesPerSecond"`
	NodeBytesPerSecond   int64            `json:"nodeBytesPerSecond,omitempty"`
	DomainBytesPerSecond int64            `json:"domainBytesPerSecond,omitempty"`
	Concurrency          int              `json:"concurrency,omitempty"`
	Started              time.Time        `json:"started"`
	Finished             *time.Time       `json:"finished,omitempty"`
	ElapsedSeconds       float64          `json:"elapsedSeconds"`
	ETASeconds           float64          `json:"etaSeconds"` // of what is left, at the rate so far; -1 unknown
}

// Estimate is what a transition would cost, by the last HeatReport and the plan that would be carried out. Heat bounds
// between the edges of buckets count the whole bucket. Where settledSeconds is not the dwell of the class, the groups are walked
// over for the estimate.
type Estimate struct {
	At                time.Time `json:"at"` // of the report behind it
	Groups            int64     `json:"groups"`
	GroupsOffLadder   int64     `json:"groupsOffLadder"`         // of Groups, those written for a ladder without the scheme
	GroupsReshaped    int64     `json:"groupsReshaped"`          // that get or give back columns, or are dissolved for it
	GroupsCopied      int64     `json:"groupsCopied"`            // of those, or with Into of Groups: objects of them are written into new ones
	Objects           int64     `json:"objects,omitempty"`       // with Into: that come into the class, most of them by their records alone
	ObjectsCopied     int64     `json:"objectsCopied,omitempty"` // of Objects, those that are written into new groups
	Bytes             int64     `json:"bytes"`                   // of the cells of the groups; with Into of the objects
	BytesRead         int64     `json:"bytesRead"`
	BytesSent         int64     `json:"bytesSent"`
	BytesWritten      int64     `json:"bytesWritten"`
	PeakBytes         int64     `json:"peakBytes"` // most that is stored more than now, if nothing dead were deleted before the end
	StoredBefore      int64     `json:"storedBefore"`
	StoredAfter       int64     `json:"storedAfter"`
	ReencodeBytesSent int64     `json:"reencodeBytesSent"` // what re-encoding would send
	PlanHash          string    `json:"planHash"`          // names the proved plans; same plans, same hash
}

// ThrottleRequest changes the limits of a transition, or of repair, while it runs. Nil leaves a limit as it is, 0 lifts it.
type ThrottleRequest struct {
	BytesPerSecond       *int64 `json:"bytesPerSecond,omitempty"`
	NodeBytesPerSecond   *int64 `json:"nodeBytesPerSecond,omitempty"`
	DomainBytesPerSecond *int64 `json:"domainBytesPerSecond,omitempty"`
}

// Check refuses rates below zero.
func (r *ThrottleRequest) Check() error {
	for name, rate := range map[string]*int64{"bytesPerSecond": r.BytesPerSecond, "nodeBytesPerSecond": r.NodeBytesPerSecond, "domainBytesPerSecond": r.DomainBytesPerSecond} {
		if rate != nil && *rate < 0 {
			return Refuse(ErrBadRequest, "%s: a rate of %d bytes per second; give a positive one, or 0 for no limit", name, *rate)
		}
	}
	return nil
}

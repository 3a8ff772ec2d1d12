package gateway

import (
	"encoding/base64"
	"strconv"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// Object is one object as clients see it.
type Object struct {
	Key      string      `json:"key"`   // printable form: Go-quoted where it holds unprintable bytes
	Key64    string      `json:"key64"` // the exact bytes, base64url without padding
	Class    string      `json:"class"`
	Scheme   string      `json:"scheme"`
	Size     int64       `json:"size"`
	Revision block.Stamp `json:"revision"`
	Modified time.Time   `json:"modified"`
}

// EncodeKey and DecodeKey turn keys of any bytes into query-safe text and back.
func EncodeKey(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

// DecodeKey reverses EncodeKey.
func DecodeKey(text string) (string, error) {
	key, err := base64.RawURLEncoding.DecodeString(text)
	return string(key), err
}

func publicObject(object *catalog.Object) Object {
	printable := object.Key
	if quoted := strconv.Quote(printable); quoted != `"`+printable+`"` {
		printable = quoted
	}
	return Object{
		Key: printable, Key64: EncodeKey(object.Key), Class: object.Class, Scheme: object.Scheme, Size: object.Size,
		Revision: object.Revision, Modified: time.UnixMilli(object.Modified).UTC(),
	}
}

// ObjectList is one page of a listing. Next is empty on the last page, else the key64 to continue after.
type ObjectList struct {
	Objects []Object `json:"objects"`
	Next    string   `json:"next,omitempty"`
}

// Stat is an object with the groups that hold it.
type Stat struct {
	Object
	Groups []GroupStat `json:"groups"`
}

// GroupStat is one group: its code, where its slots lie, and whether each block is there.
type GroupStat struct {
	ID        block.GroupID `json:"id"`
	Epoch     block.Stamp   `json:"epoch"`
	Scheme    string        `json:"scheme"`
	Ladder    string        `json:"ladder"`
	Mode      string        `json:"mode"`
	Rows      int           `json:"rows"`
	Columns   int           `json:"columns"`
	CellBytes int           `json:"cellBytes"`
	Packed    bool          `json:"packed"`
	Live      int64         `json:"live"`  // extents of all objects in the group
	Bytes     int64         `json:"bytes"` // of this object in the group
	Slots     []SlotStat    `json:"slots"`
}

// SlotStat is one data column or parity row of a group.
type SlotStat struct {
	Slot   int          `json:"slot"`
	Role   string       `json:"role"` // data or parity
	Node   block.NodeID `json:"node"`
	Blocks int          `json:"blocks"` // store items the slot consists of
	State  string       `json:"state"`  // ok, missing, unreachable, suspect
}

// Selector says which objects a transition covers: exactly one field is set.
type Selector struct {
	Key64    string  `json:"key64,omitempty"`
	Prefix64 *string `json:"prefix64,omitempty"` // "" selects everything
	Class    string  `json:"class,omitempty"`
}

// TransitionRequest starts a transition. From, the heat bounds and SettledSeconds need a selector of a class; a group is
// judged by them when it is looked at and again right before its plan is carried out.
type TransitionRequest struct {
	Selector
	ID                   string   `json:"id,omitempty"` // chosen by the caller, who may repeat the request: the same id is the same transition
	From                 string   `json:"from,omitempty"`
	To                   string   `json:"to"`
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

// Traffic counts blocks of whole cells, and their bytes.
type Traffic struct {
	BlocksRead    int64 `json:"blocksRead"`
	BlocksSent    int64 `json:"blocksSent"`
	BlocksWritten int64 `json:"blocksWritten"`
	BytesRead     int64 `json:"bytesRead"`
	BytesSent     int64 `json:"bytesSent"`
	BytesWritten  int64 `json:"bytesWritten"`
}

func (t *Traffic) add(other Traffic) {
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
	To                   string           `json:"to"`
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
	GroupsOffLadder      int64            `json:"groupsOffLadder"`  // left alone: written for a ladder without the scheme
	ObjectsRewritten     int64            `json:"objectsRewritten"` // small objects moved out of a group they share with objects not selected
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

// Status is the cluster at a glance.
type Status struct {
	Cluster     string        `json:"cluster"`
	Gateway     string        `json:"gateway"`
	Nodes       []NodeStatus  `json:"nodes"`
	Classes     []ClassStatus `json:"classes"`
	Objects     int64         `json:"objects"`
	Groups      int64         `json:"groups"`
	NotWhole    int64         `json:"notWhole"` // groups with a slot on contents that are gone
	CanLose     int           `json:"canLose"`  // nodes every object survives the loss of, now; -1 with nothing stored
	Active      int64         `json:"activeAttempts"`
	Graves      int64         `json:"graves"`      // dead blocks waiting for their delete
	Transitions []Transition  `json:"transitions"` // not yet ended
}

// NodeStatus is one node.
type NodeStatus struct {
	ID            block.NodeID `json:"id"`
	Address       string       `json:"address"`
	Domain        string       `json:"domain"`
	State         string       `json:"state"`           // up, suspect, down, out, draining
	Spare         bool         `json:"spare,omitempty"` // it takes no new groups while others can, and substitutes first
	Store         string       `json:"store"`
	StoreKind     string       `json:"storeKind,omitempty"`  // file, memcached, redis, mem; unknown while the agent has not answered
	Durable       bool         `json:"durable,omitempty"`    // what was acknowledged survives power loss
	ValueLimit    int64        `json:"valueLimit,omitempty"` // largest item the store takes; 0 where it has no limit of its own
	UsedBytes     int64        `json:"usedBytes"`
	CapacityBytes int64        `json:"capacityBytes"`
	Volume        string       `json:"volume,omitempty"` // of whose capacity and use these are, where other nodes may have the same; Capacity sums up
	Rates         NodeRates    `json:"rates"`            // zero of a node that does not answer
	Warnings      []string     `json:"warnings,omitempty"`
}

// ClassStatus sums up one class.
type ClassStatus struct {
	Name     string           `json:"name"`
	Ladder   string           `json:"ladder"`
	Objects  int64            `json:"objects"`
	Bytes    int64            `json:"bytes"`
	Stored   int64            `json:"storedBytes"` // cells and parities at full size; trailing zeros of cells are not stored
	ByScheme map[string]int64 `json:"byScheme"`    // groups under each scheme
}

// SweepResult counts what one sweep did.
type SweepResult struct {
	IntentsSettled   int `json:"intentsSettled"`
	IntentsForgotten int `json:"intentsForgotten"`
	GroupsFreed      int `json:"groupsFreed"`
	BlocksDeleted    int `json:"blocksDeleted"`
	OrphansDeleted   int `json:"orphansDeleted"`
	Quarantined      int `json:"quarantined"` // blocks with stamps the catalog never drew: left alone
	GravesLeft       int `json:"gravesLeft"`  // not yet due, or on nodes that do not answer
}

// Finding is one observation of the doctor.
type Finding struct {
	Severity string `json:"severity"` // ok, warning, error
	Subject  string `json:"subject"`
	Text     string `json:"text"`
	Cure     string `json:"cure,omitempty"`
}

// ErrorBody is the JSON body of every refused request.
type ErrorBody struct {
	Error string `json:"error"`
	Code  string `json:"code"`
}

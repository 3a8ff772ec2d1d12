package api

import (
	"time"

	"github.com/restripe/restripe/agent/block"
)

// BalanceState is where the balance of a cluster stands.
type BalanceState string

// The states of a balance.
const (
	BalanceNone      BalanceState = "none" // there was none yet
	BalanceRunning   BalanceState = "running"
	BalancePaused    BalanceState = "paused"
	BalanceCancelled BalanceState = "cancelled" // what was moved stays where it is
	BalanceDone      BalanceState = "done"
)

// BalanceRequest begins a balance, or gives the one under way another rate.
type BalanceRequest struct {
	BytesPerSecond *int64 `json:"bytesPerSecond,omitempty"` // limit on bytes read, sent and written; 0: none; nil: as it is, or the default
}

// Balance moves blocks between nodes until each holds about its share of the bytes of all, by what its store can hold. A cluster has
// one: that under way, or else the last. Bytes are of the cells that blocks are made of; trailing zeros, which are not stored, count too.
type Balance struct {
	Number         int64        `json:"number"` // 1 for the first
	State          BalanceState `json:"state"`
	BytesPerSecond int64        `json:"bytesPerSecond"` // limit on bytes read, sent and written; 0: none
	Owner          string       `json:"owner"`          // gateway that carries it out, and its start; empty: any may
	BytesTotal     int64        `json:"bytesTotal"`     // moved, and to be moved by the last plan
	BytesMoved     int64        `json:"bytesMoved"`
	SlotsMoved     int64        `json:"slotsMoved"`
	BytesSent      int64        `json:"bytesSent"`       // between nodes, for what was moved
	Planned        bool         `json:"planned"`         // BytesTotal is known
	GroupsFailed   int64        `json:"groupsFailed"`    // tries to move something of a group that came to nothing
	Waits          string       `json:"waits,omitempty"` // for what, where nothing can be moved now
	Note           string       `json:"note,omitempty"`  // why shares differ more than they should, at the end
	Error          string       `json:"error,omitempty"` // the last of what went wrong
	Started        time.Time    `json:"started,omitzero"`
	Finished       *time.Time   `json:"finished,omitempty"`
	ElapsedSeconds float64      `json:"elapsedSeconds"`
	ETASeconds     float64      `json:"etaSeconds"` // -1 unknown
}

// IsUnderWay reports whether the balance has not ended.
func (b *Balance) IsUnderWay() bool { return b.State == BalanceRunning || b.State == BalancePaused }

// BytesLeft is what is still to be moved, by the last plan.
func (b *Balance) BytesLeft() int64 { return max(0, b.BytesTotal-b.BytesMoved) }

// BalancePlan is what a balance would move now.
type BalancePlan struct {
	Bytes          int64         `json:"bytes"`
	Slots          int64         `json:"slots"`
	Groups         int64         `json:"groups"`     // of which something would be moved
	LeastBytes     int64         `json:"leastBytes"` // what nodes lack of their shares: no plan to give them that moves less
	BytesPerSecond int64         `json:"bytesPerSecond"`
	Seconds        float64       `json:"seconds"` // at that rate; -1: there is no limit
	Even           bool          `json:"even"`    // nothing is to be done: every node holds about its share
	Note           string        `json:"note,omitempty"`
	Nodes          []BalanceNode `json:"nodes"` // that take part, by id
}

// BalanceNode is a node's part in a balance.
type BalanceNode struct {
	ID            block.NodeID `json:"id"`
	Domain        string       `json:"domain"`
	CapacityBytes int64        `json:"capacityBytes"` // 0: its store does not know
	FairBytes     int64        `json:"fairBytes"`     // its share
	BytesBefore   int64        `json:"bytesBefore"`
	BytesAfter    int64        `json:"bytesAfter"`
	Note          string       `json:"note,omitempty"` // why it takes nothing, where it does not
}

// How a new node is used.
const (
	UseCapacity = "capacity" // for new groups, and for blocks that have to leave other nodes
	UseBalance  = "balance"  // blocks of other nodes are moved to it besides, until every node holds about its share
)

// AddRequest makes a node a member.
type AddRequest struct {
	Address        string `json:"address"`                  // host:port of its agent
	Domain         string `json:"domain,omitempty"`         // failure domain; empty: its own
	Spare          bool   `json:"spare,omitempty"`          // it takes no new groups while others can, and substitutes first
	Use            string `json:"use,omitempty"`            // default capacity
	BytesPerSecond *int64 `json:"bytesPerSecond,omitempty"` // of the balance, see BalanceRequest
	DryRun         bool   `json:"dryRun,omitempty"`         // nothing is changed: whether it could be, and what would be moved
}

// AddedNode is a node that was made a member, or would be.
type AddedNode struct {
	Node    *NodeInfo    `json:"node,omitempty"`    // nil in a dry run
	Balance *Balance     `json:"balance,omitempty"` // that was begun
	Plan    *BalancePlan `json:"plan,omitempty"`    // in a dry run of use balance
}

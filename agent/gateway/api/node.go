package api

import (
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/block"
)

// NodeList is the members of the cluster, and how patient it is with those that do not answer.
type NodeList struct {
	Nodes    []NodeInfo `json:"nodes"`
	Patience Patience   `json:"patience"`

	Balance *Balance `json:"balance,omitempty"` // under way; nil: none is

	CountedAt *time.Time `json:"countedAt,omitempty"` // when the slots of nodes were counted, where that takes long; nil: now
}

// Patience is after how many seconds without an answer a node is down, and after how many it is out: given up, its blocks
// rebuilt on other nodes. OutAfterSeconds is -1 where no node is given up without a person.
type Patience struct {
	DownAfterSeconds float64 `json:"downAfterSeconds"`
	OutAfterSeconds  float64 `json:"outAfterSeconds"`
}

// NodeInfo is one member: NodeStatus, what is declared of it, and what lies on it.
type NodeInfo struct {
	NodeStatus
	Declared string       `json:"declared"`           // up, down or draining
	OutBy    string       `json:"outBy,omitempty"`    // the gateway that gave it up
	Fenced   bool         `json:"fenced,omitempty"`   // it takes no blocks until its store was swept
	Replaces block.NodeID `json:"replaces,omitempty"` // the node whose blocks it takes over first
	Since    *time.Time   `json:"since,omitempty"`    // when it was declared so, or given up
	Silent   *time.Time   `json:"silent,omitempty"`   // of one that does not answer: from when its silence counts
	Slots    int64        `json:"slots"`              // slots of groups that lie on it; -1: not counted yet
	Drain    *DrainInfo   `json:"drain,omitempty"`    // of a draining node

	SlotBytes int64 `json:"slotBytes"` // of the cells of those slots; -1: not counted yet
	FairBytes int64 `json:"fairBytes"` // its share of these bytes of all nodes; -1: it takes no part in a balance, or not counted yet
}

// DrainInfo is how far a drain has come. Its slots are those that lie on the node and those that are to, as neither may be
// left when it is removed. Slots that come and go by themselves are in the numbers.
type DrainInfo struct {
	SlotsTotal     int64   `json:"slotsTotal"`     // when the drain began
	SlotsLeft      int64   `json:"slotsLeft"`      // -1: not counted yet since the drain began
	BytesPerSecond int64   `json:"bytesPerSecond"` // 0: unlimited
	Paused         bool    `json:"paused"`
	ElapsedSeconds float64 `json:"elapsedSeconds"`
	ETASeconds     float64 `json:"etaSeconds"` // at the rate so far; -1 unknown
}

// DrainRequest changes what it names of a drain, and begins it.
type DrainRequest struct {
	BytesPerSecond *int64 `json:"bytesPerSecond,omitempty"` // limit on bytes read, sent and written; 0 is none
	Paused         *bool  `json:"paused,omitempty"`
}

// ReplaceRequest says by what a node is replaced: without With by itself, at another address or with an empty store; else
// by another node, which becomes a member if it is none.
type ReplaceRequest struct {
	Address string       `json:"address,omitempty"` // host:port of the replacement's agent; default: as it is
	With    block.NodeID `json:"with,omitempty"`
	Domain  string       `json:"domain,omitempty"` // failure domain of a new node; default: that of the node replaced
}

// PlaceRequest changes what it names of where a node stands.
type PlaceRequest struct {
	Domain *string `json:"domain,omitempty"` // failure domain; empty: its own
	Spare  *bool   `json:"spare,omitempty"`  // it takes no new groups while others can, and substitutes first
}

// RelocationResult counts what one pass over all groups moved to where it belongs.
type RelocationResult struct {
	GroupsChecked int      `json:"groupsChecked"`
	SlotsMoved    int      `json:"slotsMoved"`
	PlacesChanged int      `json:"placesChanged"` // places of blocks to come
	BytesSent     int64    `json:"bytesSent"`
	GroupsFailed  int      `json:"groupsFailed"`     // left as they were
	Failed        []string `json:"failed,omitempty"` // the first of them: group and cause, in words
}

// CheckNodeID holds the ids of nodes to 1 to 63 characters of [a-z0-9-].
func CheckNodeID(id string) error {
	if id == "" || len(id) > 63 {
		return fmt.Errorf("id %q: want 1 to 63 characters", id)
	}
	for _, r := range id {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return fmt.Errorf("id %q: want only a-z, 0-9 and -", id)
		}
	}
	return nil
}

package api

import (
	"time"

	"github.com/restripe/restripe/agent/block"
)

// Status is the cluster at a glance.
type Status struct {
	Cluster     string        `json:"cluster"`
	Gateway     string        `json:"gateway"`
	Release     string        `json:"release,omitempty"` // of the gateway's program
	Nodes       []NodeStatus  `json:"nodes"`
	Classes     []ClassStatus `json:"classes"`
	Objects     int64         `json:"objects"`
	Earlier     int64         `json:"earlierVersions,omitempty"` // of objects, beside these; not in a brief status
	Groups      int64         `json:"groups"`
	NotWhole    int64         `json:"notWhole"` // groups with a slot on contents that are gone or in doubt or on a silent node, or reported
	CanLose     int           `json:"canLose"`  // nodes every object survives the loss of, by all that is known; -1 with nothing stored
	Active      int64         `json:"activeAttempts"`
	Graves      int64         `json:"graves"`            // dead blocks waiting for their delete
	Transitions []Transition  `json:"transitions"`       // not yet ended
	Balance     *Balance      `json:"balance,omitempty"` // under way; nil: none is

	// CountedAt is when what is counted of objects and groups was, where that takes long; what lay on nodes that have stopped
	// answering since counts as lost, each slot of it as if of another group. nil: now.
	CountedAt *time.Time `json:"countedAt,omitempty"`

	// Counting is how far the first count since the gateway's start is, which a full status waits for; a brief one has it. nil: done.
	Counting *Counting `json:"counting,omitempty"`

	// BlocksSeen is since when every block was looked at; all of the above is by the records since then. nil: never.
	BlocksSeen *time.Time `json:"blocksSeen,omitempty"`

	CatalogBehind string `json:"catalogBehind,omitempty"` // how the catalog was found to be behind its nodes, so that nothing is deleted
}

// Counting is how far a count of everything is.
type Counting struct {
	Since   time.Time `json:"since"`
	Groups  int64     `json:"groups"`  // counted so far
	Objects int64     `json:"objects"` // counted so far
}

// Lineage is what a catalog knows of its own timeline.
type Lineage struct {
	Cluster  string         `json:"cluster"`
	Address  string         `json:"address"`          // of the catalog, without secrets; its scheme names the engine
	Sessions []Session      `json:"sessions"`         // starts of gateways, by gateway
	Behind   *CatalogBehind `json:"behind,omitempty"` // nil: nothing was found that this catalog does not know
	// KeptBelow is the number below which the blocks of attempts are kept, dead or not, as the catalog was rebuilt or claimed
	// and is not accepted yet; 0 where nothing is.
	KeptBelow uint64 `json:"keptBelow,omitempty"`
	// Refusals are what nodes have against this gateway, or others.
	Refusals []Refusal   `json:"refusals,omitempty"`
	Size     CatalogSize `json:"size"`
}

// CatalogSize is how much a catalog holds.
type CatalogSize struct {
	Records int64 `json:"records"`         // about; -1 where counting would take long
	Bytes   int64 `json:"bytes"`           // that its engine has for them
	Limit   int64 `json:"limit,omitempty"` // of bytes, where the engine knows one
}

// CatalogMoved says where a catalog is moved to.
type CatalogMoved struct {
	Address string `json:"address"` // without secrets
}

// Refusal is what a node has against a gateway: that its catalog is not the one that the node obeys, or not yet.
type Refusal struct {
	Node block.NodeID `json:"node"`
	Text string       `json:"text"`
}

// Claimed is what came of claiming a catalog.
type Claimed struct {
	Unheard []block.NodeID `json:"unheard"` // nodes that did not answer: if they refuse the catalog later, it has to be claimed again
}

// Session is one start of a gateway.
type Session struct {
	Gateway string `json:"gateway"`
	Start   string `json:"start"`
	Updates int64  `json:"updates"` // of the catalog that took effect
	Upto    uint64 `json:"upto"`    // number of the last stamp that it drew; 0: none
	Present bool   `json:"present"` // the gateway has no later start
}

// CatalogBehind says how a catalog was found to be behind its nodes.
type CatalogBehind struct {
	Gateway string       `json:"gateway"` // who found it
	At      time.Time    `json:"at"`
	Node    block.NodeID `json:"node"`              // where
	Blocks  int          `json:"blocks"`            // with stamps that this catalog never drew
	Stamp   block.Stamp  `json:"stamp"`             // the greatest of theirs
	Refused string       `json:"refused,omitempty"` // what the node has against the catalog, where that is how it was found
}

// NodeStatus is one node.
type NodeStatus struct {
	ID            block.NodeID `json:"id"`
	Address       string       `json:"address"`
	Domain        string       `json:"domain"`
	State         string       `json:"state"`             // up, suspect, down, out, draining
	Spare         bool         `json:"spare,omitempty"`   // it takes no new groups while others can, and substitutes first
	Release       string       `json:"release,omitempty"` // of its agent's program, as it answered last
	Store         string       `json:"store"`
	StoreKind     string       `json:"storeKind,omitempty"`  // file, memcached, redis, mem; unknown while the agent has not answered
	Durable       bool         `json:"durable,omitempty"`    // what was acknowledged survives power loss
	ValueLimit    int64        `json:"valueLimit,omitempty"` // largest item the store takes; 0 where it has no limit of its own
	UsedBytes     int64        `json:"usedBytes"`
	CapacityBytes int64        `json:"capacityBytes"`
	Volume        string       `json:"volume,omitempty"` // of whose capacity and use these are, where other nodes may have the same; Capacity sums up
	Rates         NodeRates    `json:"rates"`            // zero of a node that does not answer
	Warnings      []string     `json:"warnings,omitempty"`
	Leftovers     *Leftovers   `json:"leftovers,omitempty"` // what the last search of its store found; nil: none by this gateway yet
}

// Leftovers are the blocks of a store that no record, attempt or grave names, as a search of it found them.
type Leftovers struct {
	At          time.Time `json:"at"`
	Blocks      int       `json:"blocks"`      // that the store held
	Orphans     int       `json:"orphans"`     // nobody names; deleted, unless withheld
	Withheld    bool      `json:"withheld"`    // there were too many orphans to believe it: none was deleted
	Foreign     int       `json:"foreign"`     // their headers name another node: left alone
	Quarantined int       `json:"quarantined"` // this catalog never drew their stamps: left alone
	Copied      int       `json:"copied"`      // of those, written by gateways of a copy of the catalog that the node has expelled
}

// ClassStatus sums up one class.
type ClassStatus struct {
	Name     string           `json:"name"`
	Ladder   string           `json:"ladder"`
	Objects  int64            `json:"objects"`
	Bytes    int64            `json:"bytes"`
	Earlier  int64            `json:"earlierVersions,omitempty"` // of objects, beside these; not in a brief status
	Kept     int64            `json:"earlierBytes,omitempty"`    // of earlier versions
	Stored   int64            `json:"storedBytes"`               // cells and parities at full size; trailing zeros of cells are not stored
	ByScheme map[string]int64 `json:"byScheme"`                  // groups under each scheme
	NotWhole int64            `json:"notWhole"`                  // groups with a slot on contents that are gone

	// Dead is what no object has of the data columns of its packed groups, parities not counted, as the last look of a compaction
	// found it. nil: nobody has looked yet.
	Dead *int64 `json:"deadBytes,omitempty"`
}

// SweepRequest says what to sweep.
type SweepRequest struct {
	Node        block.NodeID // whose store is searched for orphans; empty: every node's
	BeyondBrake bool         // delete orphans however many they are; of one node alone
}

// SweepResult counts what one sweep did.
type SweepResult struct {
	ObjectsExpired   int `json:"objectsExpired"` // removed because their time had come
	IntentsSettled   int `json:"intentsSettled"`
	IntentsForgotten int `json:"intentsForgotten"`
	GroupsFreed      int `json:"groupsFreed"`
	BlocksDeleted    int `json:"blocksDeleted"`
	OrphansDeleted   int `json:"orphansDeleted"`
	OrphansWithheld  int `json:"orphansWithheld"` // too many on one node to believe it: left alone
	Foreign          int `json:"foreign"`         // orphans whose headers name another node: left alone
	Quarantined      int `json:"quarantined"`     // blocks with stamps the catalog never drew: left alone
	GravesLeft       int `json:"gravesLeft"`      // not yet due, or on nodes that do not answer
	NodesUnsearched  int `json:"nodesUnsearched"` // that did not answer, or whose stores cannot list
}

// Finding is one observation of the doctor.
type Finding struct {
	Severity string `json:"severity"` // ok, warning, error
	Subject  string `json:"subject"`
	Text     string `json:"text"`
	Cure     string `json:"cure,omitempty"`
}

// NodeRates are what a node did of late for clients, transitions, repairs and scrubs, in bytes of whole units per second.
type NodeRates struct {
	Read    float64 `json:"readBytesPerSecond"`
	Sent    float64 `json:"sentBytesPerSecond"` // to other nodes
	Written float64 `json:"writtenBytesPerSecond"`
}

// Capacity sums up what nodes have used, and what they could: nodes that say that they share a volume count it once. The capacity
// is 0 where one of them does not know its own.
func Capacity(nodes []NodeStatus) (used, capacity int64) {
	known, counted := true, map[string]bool{}
	for _, node := range nodes {
		if node.Volume != "" && counted[node.Volume] {
			continue
		}
		counted[node.Volume] = true
		used += node.UsedBytes
		capacity += node.CapacityBytes
		known = known && node.CapacityBytes > 0
	}
	if !known {
		capacity = 0
	}
	return used, capacity
}

// Load is what clients asked of this gateway in the last WindowSeconds, and what transitions did. A request's latency is
// the time until its answer begins; only requests for objects count.
type Load struct {
	WindowSeconds            float64 `json:"windowSeconds"`
	Requests                 int64   `json:"requests"`
	P50Seconds               float64 `json:"p50Seconds"` // 0 without requests
	P99Seconds               float64 `json:"p99Seconds"`
	TransitionBytesPerSecond float64 `json:"transitionBytesPerSecond"` // read, sent and written by groups that ended in the window
}

package api

import "time"

// CompactionState is where the compaction of a cluster stands.
type CompactionState string

// The states of a compaction.
const (
	CompactionIdle    CompactionState = "idle" // it looks from time to time whether something is worth moving
	CompactionRunning CompactionState = "running"
	CompactionPaused  CompactionState = "paused" // nothing is moved, nor begins by itself
)

// CompactionRequest begins a pass now.
type CompactionRequest struct {
	BytesPerSecond int64 `json:"bytesPerSecond,omitempty"` // of objects moved; 0: unlimited
	Everything     bool  `json:"everything,omitempty"`     // whatever the classes allow to be dead, and however young groups are
}

// Compaction moves small objects out of groups in which much is dead, so that those are freed. A cluster has one: the pass under
// way, or else the last. Counts are of this pass.
type Compaction struct {
	Pass           int64             `json:"pass"` // 1 for the first
	State          CompactionState   `json:"state"`
	Background     bool              `json:"background"`     // began by itself
	Everything     bool              `json:"everything"`     // see CompactionRequest
	BytesPerSecond int64             `json:"bytesPerSecond"` // limit on bytes of objects moved; 0: none
	Owner          string            `json:"owner"`          // gateway that carries it out, and its start
	GroupsTotal    int64             `json:"groupsTotal"`    // chosen
	GroupsDone     int64             `json:"groupsDone"`
	ObjectsMoved   int64             `json:"objectsMoved"`   // or left where they were, as they changed meanwhile
	ObjectsSpliced int64             `json:"objectsSpliced"` // of them, those that stayed on their nodes
	BytesTotal     int64             `json:"bytesTotal"`     // of the objects in the groups chosen
	BytesDone      int64             `json:"bytesDone"`
	BytesFreed     int64             `json:"bytesFreed"` // of the data columns emptied, less what the objects take now
	Failed         int64             `json:"failed"`     // groups of which something could not be moved
	Error          string            `json:"error,omitempty"`
	Started        time.Time         `json:"started,omitzero"`
	Finished       *time.Time        `json:"finished,omitempty"`
	ElapsedSeconds float64           `json:"elapsedSeconds"`
	ETASeconds     float64           `json:"etaSeconds"` // -1 unknown
	Looked         *time.Time        `json:"looked,omitempty"`
	Classes        []CompactionClass `json:"classes"` // that have packed groups, as they were then found
}

// CompactionClass is how full the packed groups of a class are. Bytes are of data columns: parities come on top.
type CompactionClass struct {
	Name              string `json:"name"`
	Groups            int64  `json:"groups"`
	Bytes             int64  `json:"bytes"`             // that the groups take
	Dead              int64  `json:"deadBytes"`         // of them, what no object has: deleted, overwritten, or never filled
	DeadAtMostPercent int    `json:"deadAtMostPercent"` // of the bytes that objects have; 0 where the class is gone
}

// IsBeyond reports whether more is dead than so many times what the class allows.
func (c *CompactionClass) IsBeyond(times int64) bool {
	allowed := int64(c.DeadAtMostPercent)
	return allowed > 0 && allowed < NeverCompact && c.Dead > 0 && float64(c.Dead)*100 > float64(times*allowed)*float64(c.Bytes-c.Dead)
}

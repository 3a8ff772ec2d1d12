package kv

import (
	"context"
	"sync/atomic"
)

// Reporting is an Engine that tells how it gets on with the servers behind it.
type Reporting interface {
	// Retries returns how often the engine has asked its servers again since it was opened, by why. All of its reasons are there, also
	// with 0. The map belongs to the caller.
	Retries() map[string]int64

	// Replicas returns those that the server, or the cluster, says it has, each by another name, in no order; none where it does not say.
	Replicas(ctx context.Context) ([]Replica, error)
}

// Reasons of engines to ask again, as Reporting tells of them.
const (
	RetrySerialization = "serialization" // a transaction was ended for the sake of another one
	RetryLock          = "lock"          // one was in a deadlock, or did not get a lock
	RetryConnection    = "connection"    // a connection was lost before the request was sent
	RetryConflict      = "conflict"      // another gateway changed a counter meanwhile
	RetryUnavailable   = "unavailable"   // a member did not answer, had no leader, or did not know who asked any more
)

// Replica is a server that has a copy of the records.
type Replica struct {
	Name string
	Up   bool // it answers, and is sent what is written
	// How far it is behind: bytes of the log of the primary, or entries of that of the cluster; -1 where it is not said in these.
	LagBytes, LagEntries int64
}

// Tally counts by reason. Its reasons are given when it is made.
type Tally map[string]*atomic.Int64

// NewTally returns a Tally with these reasons.
func NewTally(reasons ...string) Tally {
	t := make(Tally, len(reasons))
	for _, reason := range reasons {
		t[reason] = new(atomic.Int64)
	}
	return t
}

// Counts returns what was counted.
func (t Tally) Counts() map[string]int64 {
	counts := make(map[string]int64, len(t))
	for reason, count := range t {
		counts[reason] = count.Load()
	}
	return counts
}

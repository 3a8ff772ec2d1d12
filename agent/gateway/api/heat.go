package api

import (
	"math"
	"time"
)

// HeatReport is how often the groups of every class are used, over all gateways. It is made in the background by walking
// the records at a bounded pace, so it is of At and not of now, and groups that came or moved since may be missing.
type HeatReport struct {
	At       time.Time `json:"at"`       // when the walk behind it ended, or reached while the first one goes on
	Began    time.Time `json:"began"`    // when that walk began
	Since    time.Time `json:"since"`    // accesses are counted since then, in this cluster
	Complete bool      `json:"complete"` // the walk covered every group; while false, counts are of a part

	ObjectsAt time.Time `json:"objectsAt"` // when the last whole count of objects began, which goes on beside the walks; zero: there was none yet

	// What reports cost this gateway: seconds of work in the last walk and count, groups counted, and bytes of memory for
	// them.
	BusySeconds  float64 `json:"busySeconds"`
	Tracked      int     `json:"tracked"`
	TrackedBytes int64   `json:"trackedBytes"`

	Classes []ClassHeat `json:"classes"` // by name: those declared, and those that groups still have
}

// ClassHeat is one class of a HeatReport.
type ClassHeat struct {
	Class    string     `json:"class"`
	HalfLife string     `json:"halfLife"`
	Dwell    string     `json:"dwell"`
	Objects  int64      `json:"objects"`
	Bytes    int64      `json:"bytes"` // of the objects, as their users see them
	Rungs    []RungHeat `json:"rungs"` // the schemes of the ladder in its order, then others that groups are under

	// Elsewhere are the objects whose keys belong to the class, by the prefixes it had when they were counted, but which are of
	// other classes: an object keeps the class that it was put into.
	Elsewhere       []ClassCount `json:"elsewhere,omitempty"`       // by class
	CountedPrefixes []string     `json:"countedPrefixes,omitempty"` // in order; absent before the first whole count

	Estimate *HeatEstimate `json:"estimate,omitempty"` // by which heat is expected; absent: it is what was counted
	Shadows  *Shadows      `json:"shadows,omitempty"`  // what candidates would have cost; absent of a class without prices
}

// HeatEstimate is how often the groups of a class are used, as far as it is known from all of them. A group is taken to be used
// (counted + Prior * Mean) / (watched + Prior) times a day; where Floor is, no less than Mean.
type HeatEstimate struct {
	Mean  float64 `json:"mean"`  // times a day
	Prior float64 `json:"prior"` // days
	Floor bool    `json:"floor"`
}

// Shadows are what candidates would have paid for the groups of a class, in the unit of its prices.
type Shadows struct {
	Since      time.Time    `json:"since"`    // a gateway that starts begins anew
	Days       float64      `json:"days"`     // for which candidates have paid
	Followed   int          `json:"followed"` // groups that candidates are told of
	Groups     int64        `json:"groups"`   // for which these stand
	Done       float64      `json:"done"`     // what it cost where groups really were, with their moves
	Candidates []ShadowCost `json:"candidates"`
}

// ShadowCost is one candidate.
type ShadowCost struct {
	Name string  `json:"name"`
	Cost float64 `json:"cost"`
	Way  float64 `json:"way"` // what it would cost to bring all groups to where it has them
}

// ClassCount counts objects of one class.
type ClassCount struct {
	Class   string `json:"class"`
	Objects int64  `json:"objects"`
	Bytes   int64  `json:"bytes"` // as their users see them
}

// RungHeat is what lies under one scheme of a class.
type RungHeat struct {
	Scheme         string       `json:"scheme"`
	Groups         int64        `json:"groups"`
	Bytes          int64        `json:"bytes"`          // of the cells: user bytes and what fills the last cells up
	StoredBytes    int64        `json:"storedBytes"`    // of cells and parities at full size
	CellBytesTotal int64        `json:"cellBytesTotal"` // sum over the groups of the size of one cell: bytes of a plan per block
	OffLadder      int64        `json:"offLadder"`      // of Groups, those written for a ladder without some scheme of the class's present one
	Buckets        []HeatBucket `json:"buckets"`        // all of them, coldest first; none where Groups is 0
}

// HeatBucket counts the groups that are used less than Below times a day and at least as often as the bucket before it
// says; the first begins at 0 (never). Below is 0, and omitted, in the last bucket, which has no upper bound.
type HeatBucket struct {
	Below         float64 `json:"below,omitempty"`
	Groups        int64   `json:"groups,omitempty"`
	Bytes         int64   `json:"bytes,omitempty"`
	SettledGroups int64   `json:"settledGroups,omitempty"` // under their scheme, and watched, for the class's dwell at least
	SettledBytes  int64   `json:"settledBytes,omitempty"`
}

// The edges of heat buckets are the powers of two from 2^-6 to 2^20 accesses a day.
const (
	lowestEdge  = -6
	highestEdge = 20

	// HeatBuckets is how many buckets a RungHeat with groups has.
	HeatBuckets = highestEdge - lowestEdge + 2
)

// HeatEdge returns the lower bound of bucket i, in accesses a day. The upper bound is HeatEdge(i+1), +Inf for the last.
func HeatEdge(i int) float64 {
	switch {
	case i <= 0:
		return 0
	case i >= HeatBuckets:
		return math.Inf(1)
	}
	return math.Ldexp(1, lowestEdge+i-1)
}

// HeatBucketOf returns the bucket of a heat in accesses a day.
func HeatBucketOf(heat float64) int {
	switch {
	case !(heat >= HeatEdge(1)):
		return 0
	case heat >= HeatEdge(HeatBuckets-1):
		return HeatBuckets - 1
	}
	_, exponent := math.Frexp(heat) // heat is in [2^(exponent-1), 2^exponent)
	return exponent - lowestEdge
}

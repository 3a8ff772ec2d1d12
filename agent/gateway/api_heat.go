package gateway

import (
	"math"
	"time"
)

// ClassSpec declares one class of objects: an entry of a class file, and the body of PUT /v1/classes/{name}. Sizes are
// text such as 64KiB, durations text such as 5ms or 24h. What is empty has the default that ParseClasses names.
type ClassSpec struct {
	Name       string   `json:"name"`
	Ladder     string   `json:"ladder"` // schemes joined by commas, hottest first
	Default    string   `json:"default,omitempty"`
	Mode       string   `json:"mode,omitempty"`
	Prefixes   []string `json:"prefixes,omitempty"`
	PackBelow  string   `json:"packBelow,omitempty"`
	PackDelay  string   `json:"packDelay,omitempty"`
	GroupBytes string   `json:"groupBytes,omitempty"`
	HalfLife   string   `json:"halfLife,omitempty"` // after which an access counts half
	Dwell      string   `json:"dwell,omitempty"`    // under one scheme before a group counts as settled
}

// ClassOrigin says who declared a class as it is.
type ClassOrigin string

// The origins of classes. What was declared through the API is not changed by class files any more.
const (
	ClassFromFile ClassOrigin = "file"
	ClassFromAPI  ClassOrigin = "api"
)

// ClassInfo is a class as it is in force.
type ClassInfo struct {
	Name       string      `json:"name"`
	Ladder     string      `json:"ladder"`
	Default    string      `json:"default"`
	Mode       string      `json:"mode"`
	Prefixes   []string    `json:"prefixes"`
	PackBelow  int64       `json:"packBelow"`  // bytes; objects smaller than this share groups
	PackDelay  string      `json:"packDelay"`  // how long a small object waits for company
	GroupBytes int64       `json:"groupBytes"` // user bytes per group of a large object
	HalfLife   string      `json:"halfLife"`
	Dwell      string      `json:"dwell"`
	Nodes      int         `json:"nodes"` // distinct nodes a group lies on
	Origin     ClassOrigin `json:"origin"`
}

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

// bucketOf returns the bucket of a heat in accesses a day.
func bucketOf(heat float64) int {
	switch {
	case !(heat >= HeatEdge(1)):
		return 0
	case heat >= HeatEdge(HeatBuckets-1):
		return HeatBuckets - 1
	}
	_, exponent := math.Frexp(heat) // heat is in [2^(exponent-1), 2^exponent)
	return exponent - lowestEdge
}

// Estimate is what a transition would cost, by the last HeatReport and the plan that would be carried out. Heat bounds
// between the edges of buckets count the whole bucket; settled is judged by the dwell of the class.
type Estimate struct {
	At                time.Time `json:"at"` // of the report behind it
	Groups            int64     `json:"groups"`
	GroupsOffLadder   int64     `json:"groupsOffLadder"` // written for a ladder without the scheme; not in Groups
	Bytes             int64     `json:"bytes"`           // of the cells of the groups
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

// Load is what clients asked of this gateway in the last WindowSeconds, and what transitions did. A request's latency is
// the time until its answer begins; only requests for objects count.
type Load struct {
	WindowSeconds            float64 `json:"windowSeconds"`
	Requests                 int64   `json:"requests"`
	P50Seconds               float64 `json:"p50Seconds"` // 0 without requests
	P99Seconds               float64 `json:"p99Seconds"`
	TransitionBytesPerSecond float64 `json:"transitionBytesPerSecond"` // read, sent and written by groups that ended in the window
}

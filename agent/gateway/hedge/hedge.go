package hedge

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/gateway/load"
)

// Hedges decide when a read that is still without an answer is asked of other nodes as well, so that one slow node does
// not hold readers up: after factor times the median of the last seconds, whatever makes reads slow or fast here.
// They are rationed by what they read, so that nodes that are all slow, because much is asked of them, are not asked for more: a long
// fragment that is decoded of nine blocks weighs as much as nine, and had they been counted alone, readers of large objects would have all
// nodes read several times as much as they ask for. The zero value is ready, and safe for concurrent use.
type Hedges struct {
	lengths [len(classes)]usual

	mutex sync.Mutex
	spent float64   // of the ration
	taken time.Time // when somebody last asked for a hedge
}

// usual is how long reads of about one length take.
type usual struct {
	latencies load.Window
	judged    atomic.Int64 // the second that waits is of
	waits     atomic.Int64 // nanoseconds
}

// classes are the greatest lengths of the reads that are compared with each other. None is longer than factor
// times another of its kind, but for the short ones, where length matters little: a read is not taken for late because it
// is long.
var classes = [...]int{64 << 10, 256 << 10, 1 << 20}

const (
	factor = 4
	first  = 20 * time.Millisecond // until enough reads have been seen
	fewest = 32                    // reads that are enough
	least  = 2 * time.Millisecond
	most   = time.Second

	// share is what hedges may read at most for what is read, and burst what they may beyond that, in blocks of up to the shortest length.
	// Some is given with time, so that readers go on where all of them wait for one node.
	share     = 0.1
	burst     = 128
	perSecond = 128
)

// weight is what reading so many blocks of a length is counted as.
func weight(length, blocks int) float64 {
	return float64(blocks) * max(1, float64(length)/float64(classes[0]))
}

func (h *Hedges) usual(length int) *usual {
	for i := range classes {
		if length <= classes[i] {
			return &h.lengths[i]
		}
	}
	return &h.lengths[len(classes)-1]
}

// Answered takes note of a read of so many bytes that a node has answered, after a while.
func (h *Hedges) Answered(now time.Time, length int, after time.Duration) {
	h.usual(length).latencies.Request(now, after)
}

// Served takes note of a fragment of so many bytes that a reader has got, however many nodes were read for it.
func (h *Hedges) Served(length int) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.spent = max(0, h.spent-share*weight(length, 1))
}

// Delay is how long a read of so many bytes waits alone.
func (h *Hedges) Delay(now time.Time, length int) time.Duration {
	u := h.usual(length)
	if second := now.Unix(); u.judged.Swap(second) != second {
		delay := first
		if seen := u.latencies.Sum(now); seen.Requests >= fewest {
			median := time.Duration(seen.P50Seconds * float64(time.Second))
			delay = min(max(factor*median, least), most)
		}
		u.waits.Store(int64(delay))
	}
	return cmp.Or(time.Duration(u.waits.Load()), first)
}

// Take reports whether the ration has one more hedge, and takes one that reads so many blocks of a length. Who is denied one asks again
// after another delay.
func (h *Hedges) Take(now time.Time, length, blocks int) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if now.After(h.taken) { // reads ask by the time at which their wait was over, in no order
		h.spent = max(0, h.spent-perSecond*now.Sub(h.taken).Seconds())
		h.taken = now
	}
	if h.spent > burst-1 {
		return false
	}
	h.spent += weight(length, blocks)
	return true
}

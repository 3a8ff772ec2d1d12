package object

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/gateway/load"
)

// hedge decides when a read that is still without an answer is asked of other nodes as well, so that one slow node does
// not hold readers up: after hedgeFactor times the median of the last seconds, whatever makes reads slow or fast here.
// Hedges are rationed, so that nodes that are all slow, because much is asked of them, are not asked for more.
type hedge struct {
	lengths [len(hedgeLengths)]usual

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

// hedgeLengths are the greatest lengths of the reads that are compared with each other. None is longer than hedgeFactor
// times another of its kind, but for the short ones, where length matters little: a read is not taken for late because it
// is long.
var hedgeLengths = [...]int{64 << 10, 256 << 10, maxFragment}

const (
	hedgeFactor = 4
	hedgeFirst  = 20 * time.Millisecond // until enough reads have been seen
	hedgeFewest = 32                    // reads that are enough
	hedgeLeast  = 2 * time.Millisecond
	hedgeMost   = time.Second

	// hedgeShare is how many hedges there are for a fragment at most, and hedgeBurst how many there may be beyond that.
	// Some are given with time, so that readers go on where all of them wait for one node.
	hedgeShare     = 0.1
	hedgeBurst     = 32
	hedgePerSecond = 32
)

func (h *hedge) usual(length int) *usual {
	for i := range hedgeLengths {
		if length <= hedgeLengths[i] {
			return &h.lengths[i]
		}
	}
	return &h.lengths[len(hedgeLengths)-1]
}

// answered takes note of a read of so many bytes that a node has answered, after a while.
func (h *hedge) answered(now time.Time, length int, after time.Duration) {
	h.usual(length).latencies.Request(now, after)
}

// served takes note of a fragment that a reader has got, however many nodes were read for it.
func (h *hedge) served() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.spent = max(0, h.spent-hedgeShare)
}

// delay is how long a read of so many bytes waits alone.
func (h *hedge) delay(now time.Time, length int) time.Duration {
	u := h.usual(length)
	if second := now.Unix(); u.judged.Swap(second) != second {
		delay := hedgeFirst
		if seen := u.latencies.Sum(now); seen.Requests >= hedgeFewest {
			median := time.Duration(seen.P50Seconds * float64(time.Second))
			delay = min(max(hedgeFactor*median, hedgeLeast), hedgeMost)
		}
		u.waits.Store(int64(delay))
	}
	return cmp.Or(time.Duration(u.waits.Load()), hedgeFirst)
}

// take reports whether the ration has one more hedge, and takes it. Who is denied one asks again after another delay.
func (h *hedge) take(now time.Time) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if now.After(h.taken) { // reads ask by the time at which their wait was over, in no order
		h.spent = max(0, h.spent-hedgePerSecond*now.Sub(h.taken).Seconds())
		h.taken = now
	}
	if h.spent > hedgeBurst-1 {
		return false
	}
	h.spent++
	return true
}

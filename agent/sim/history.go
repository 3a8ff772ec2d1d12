package sim

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/anishathalye/porcupine"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/sim/register"
)

const (
	// openPerKey bounds the writes of unknown outcome per key: the check of a history takes time exponential in them.
	openPerKey = 5
	// callsPerKey bounds the history of a key.
	callsPerKey = 60
)

// history records what clients saw of every key.
type history struct {
	journal *journal

	mutex    sync.Mutex
	calls    map[string][]porcupine.Operation
	put      map[version]register.Value // what was put whole, and acknowledged
	unknowns map[string]int
	known    int
	clock    int64 // orders the calls and answers
	number   uint32
}

// version is a key at a revision.
type version struct {
	key      string
	revision block.Stamp
}

// recalled notes what was read of an earlier version.
func (h *history) recalled(who, key string, revision block.Stamp, value register.Value, err error) {
	switch {
	case errors.Is(err, catalog.ErrCorrupt):
		h.journal.violate(Agreement, "reading %s at revision %s through %s: %v", key, revision, who, err)
		return
	case errors.Is(err, api.ErrDataLoss):
		h.journal.violate(NoLoss, "reading %s at revision %s through %s: %v", key, revision, who, err)
		return
	case err != nil:
		h.journal.write(who, "%s at revision %s: %v", key, revision, err)
		return
	}
	h.mutex.Lock()
	put, known := h.put[version{key, revision}]
	h.mutex.Unlock()
	h.journal.write(who, "%s at revision %s: %v", key, revision, value)
	if known && put != value {
		h.journal.violate(OneContent, "%s was put at revision %s as %v, and is read as %v through %s", key, revision, put, value, who)
	}
}

// tick orders what clients see.
func (h *history) tick() int64 {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.clock++
	return h.clock
}

func (h *history) nextNumber() uint32 {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.number++
	return h.number
}

func (h *history) isWornOut(key string) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.unknowns[key] >= openPerKey || len(h.calls[key]) >= callsPerKey
}

// record notes an operation by its outcome: acknowledged, refused (which promises that nothing happened), or unknown.
func (h *history) record(who string, in register.Call, out register.Answer, err error, at int64) {
	back := h.tick()
	switch {
	case err == nil:
	case errors.Is(err, catalog.ErrNoObject):
		out.Missing = true
	case errors.Is(err, catalog.ErrCorrupt):
		h.journal.violate(Agreement, "%s through %s: %v", in, who, err)
		return
	case errors.Is(err, api.ErrDataLoss):
		h.journal.violate(NoLoss, "%s through %s: %v", in, who, err)
		return
	case in.Action == register.Get || isRefusal(err):
		h.journal.write(who, "%s: refused: %v", in, err)
		return
	default:
		h.journal.write(who, "%s: unknown: %v", in, err)
		out.Unknown, back = true, math.MaxInt64
	}
	if !out.Unknown {
		h.journal.write(who, "%s: %s", in, out)
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if out.Unknown {
		h.unknowns[in.Key]++
	} else {
		h.known++
	}
	if !out.Unknown && !out.Revision.IsZero() && in.Value != register.Absent && in.Action != register.Update {
		h.put[version{in.Key, out.Revision}] = in.Value
	}
	h.calls[in.Key] = append(h.calls[in.Key], porcupine.Operation{Input: in, Output: out, Call: at, Return: back})
}

// isRefusal reports whether a write that failed has promised that it did not and will not take effect.
func isRefusal(err error) bool {
	return !errors.Is(err, errDied) && !errors.Is(err, api.ErrUnknownOutcome) && !errors.Is(err, catalog.ErrUnknown)
}

// check holds what clients saw against one order of operations per key.
func (h *history) check(keys []object) {
	for _, o := range keys {
		h.mutex.Lock()
		history := h.calls[o.key]
		h.mutex.Unlock()
		h.checkRevisions(history)
		if porcupine.CheckOperations(register.Model.ToModel(), history) {
			continue
		}
		var lines []string
		for _, operation := range history {
			lines = append(lines, fmt.Sprintf("[%d %d] %v: %v", operation.Call, operation.Return, operation.Input, operation.Output))
		}
		h.journal.violate(Linearizable, "the history of %s is not linearizable: %s", o.key, strings.Join(lines, " | "))
	}
}

// checkRevisions holds the revisions that writes of one key got against the order in which they were asked for (rule 43).
func (h *history) checkRevisions(history []porcupine.Operation) {
	revision := func(o *porcupine.Operation) block.Stamp { return o.Output.(register.Answer).Revision }
	for i := range history {
		for j := range history {
			early, late := &history[i], &history[j]
			if early.Return < late.Call && revision(early) != (block.Stamp{}) && revision(late) != (block.Stamp{}) &&
				revision(early).Compare(revision(late)) >= 0 {
				h.journal.violate(Order, "%v got the revision %s, and %v, which came after it, %s",
					early.Input, revision(early), late.Input, revision(late))
			}
		}
	}
}

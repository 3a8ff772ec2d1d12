package object

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/gateway/member"
)

// Small objects that do not fill a row of their group leave it open: the next ones go into its empty columns (rules 22 to 25), until it
// is full, or old enough to be compacted. A gateway appends to groups alone that it has made itself, and to each once at a time; what
// somebody else has changed meanwhile it leaves alone.

// window is a group that this gateway may append to.
type window struct {
	*group.Window
	kind    batchKey
	opened  time.Time
	appends []*advance // that were announced for it ahead
}

// windows are those that no append is under way to, the oldest first.
type windows struct {
	mutex sync.Mutex
	free  []*window
	bytes int64
}

// Bounds on windows.
const (
	windowLife        = 20 * time.Second // less than a group is left alone by compaction
	mostWindows       = 64
	mostWindowsMemory = 8 << 20
)

// take returns the window with the shortest columns that has room for all objects of a batch, if its nodes answer, and the attempt to
// append to it that was announced ahead, if there is one. A key that is in its manifest already has no room: a revision of it would have
// two places. Neither has what is less than half as long as a column: the parities that are written with it are as long as the longest.
// Objects that were put since the next attempt of a window was announced leave that to others.
func (ws *windows) take(agents *member.Agents, open *batch, recents *recents, now time.Time) (*window, *advance) {
	ws.mutex.Lock()
	defer ws.mutex.Unlock()
	ws.drop(func(w *window) bool { return now.Sub(w.opened) > windowLife })
	isAway := func(id block.NodeID) bool { return !agents.TakesBlocks(id) }
	var best *window
	for _, w := range ws.free {
		if w.kind == open.key && w.hasRoom(open) && !slices.ContainsFunc(w.Nodes(), isAway) &&
			(best == nil || w.ColumnBytes() < best.ColumnBytes()) {
			if next := w.next(); next == nil || recents.areBelow(next, open.entries) {
				best = w
			}
		}
	}
	if best == nil {
		return nil, nil
	}
	ws.drop(func(w *window) bool { return w == best })
	for {
		next := best.next()
		if next == nil || next.claim() {
			return best, next
		}
	}
}

// next is the first attempt that was announced ahead for a window and may be used: one that is above what was done to it since.
func (w *window) next() *advance {
	w.appends = slices.DeleteFunc(w.appends, func(a *advance) bool {
		return a.claimed.Load() || a.Stamp().Sequence <= w.View().Generation.Sequence
	})
	if len(w.appends) == 0 {
		return nil
	}
	return w.appends[0]
}

// refused has no attempts used any more that were announced ahead for windows of a kind. Who announced them gives them up.
func (ws *windows) refused(kind batchKey) {
	ws.mutex.Lock()
	defer ws.mutex.Unlock()
	for _, w := range ws.free {
		if w.kind == kind {
			w.appends = nil
		}
	}
}

// give takes a window into use that no append is under way to.
func (ws *windows) give(w *window) {
	ws.mutex.Lock()
	defer ws.mutex.Unlock()
	ws.free = append(ws.free, w)
	ws.bytes += w.Bytes()
	ws.drop(func(*window) bool { return len(ws.free) > mostWindows || ws.bytes > mostWindowsMemory })
}

// drop forgets windows, the oldest first. The caller holds the mutex.
func (ws *windows) drop(which func(*window) bool) {
	ws.free = slices.DeleteFunc(ws.free, func(w *window) bool {
		is := which(w)
		if is {
			ws.bytes -= w.Bytes()
		}
		return is
	})
}

func (w *window) hasRoom(open *batch) bool {
	columns := len(w.Empty())
	if len(open.entries) > columns || !w.Takes(len(open.entries)) {
		return false
	}
	for key := range open.entries {
		if size := int64(len(open.entries[key].data)); size > w.ColumnBytes() || 2*size <= w.ColumnBytes() {
			return false
		}
	}
	return !slices.ContainsFunc(w.Manifest, func(entry block.ManifestEntry) bool {
		_, is := open.entries[string(entry.Key)]
		return is
	})
}

// append puts a batch into a window, if there is one with room for it, and reports whether the batch is settled. Whatever else keeps
// it from a window does not keep it from a group of its own.
func (b *batches) append(ctx context.Context, open *batch) (settled bool) {
	w, ahead := b.windows.take(b.objects.agents, open, &b.ahead.recents, time.Now())
	if w == nil {
		return false
	}
	open.result, open.err = b.objects.appendPacked(ctx, open.key, open.entries, w, ahead)
	if b.wasAhead(open) {
		w.appends = nil
		open.result, open.err = b.objects.appendPacked(ctx, open.key, open.entries, w, nil)
	}
	if open.err == nil {
		if len(w.Empty()) > 0 {
			b.windows.give(w)
		}
		return true
	}
	if errors.Is(open.err, api.ErrUnknownOutcome) {
		return true
	}
	if open.leaveOut(open.err) { // which is not the window's fault
		b.windows.give(w)
	} else {
		b.objects.log.Info("small objects go into a new group", "instead", w.View().ID, "cause", open.err)
	}
	return false
}

// appendPacked puts small objects into empty columns of a window, each into one of its own, and commits them together, by an attempt
// that was announced ahead, if there is one.
func (o *Objects) appendPacked(
	ctx context.Context, kind batchKey, entries map[string]entry, w *window, ahead *advance,
) (map[string]api.Object, error) {
	over, contents := overAll(entries)
	columns := w.Empty()[:len(entries)]
	keys, extents, _ := pack(len(columns), sizesOf(contents))
	for key, extent := range extents {
		extent.Group, extent.Column = w.View().ID, columns[extent.Column]
		extents[key] = extent
	}
	next := o.groups.NewAppend(w.Window, columns)
	next.Manifest = fill(next.Columns, keys, extents, contents)
	o.Packing.announced(ahead != nil)
	var attempt *catalog.Attempt
	if ahead != nil {
		attempt = ahead.Attempt
	} else {
		begun, err := o.catalog.Begin(ctx, catalog.KindPut, o.groups.Deadline(), func(block.Stamp) []catalog.BlockSet {
			return []catalog.BlockSet{next.Blocks()}
		}, append(over, w.View())...)
		if err != nil {
			return nil, err
		}
		attempt = begun
	}
	for i := range next.Manifest {
		next.Manifest[i].Revision = attempt.Stamp()
	}
	slots, err := o.groups.Append(ctx, attempt, next)
	if err != nil {
		return nil, o.groups.Abandon(ctx, attempt, err)
	}
	change, result := putAll(kind, entries, attempt, extents)
	change.Groups = []catalog.GroupChange{{Was: w.View(), Slots: slots, NewEpoch: true, Seal: len(w.Empty()) == 0}}
	if ahead != nil {
		change.Unsent = unsent(w.View().ID, w.View().Home, slots, attempt.Stamp())
	}
	if err := o.commit(ctx, attempt, change); errors.Is(err, api.ErrConflict) {
		next.TakeBack()
		return nil, err
	} else if err != nil {
		return nil, err
	}
	o.Packing.wrote(intoOpen, len(next.Blocks().Slots))
	o.batches.ahead.recents.note(attempt.Stamp(), entries)
	w.Committed(attempt, w.View().ID)
	o.heat.Used(&w.View().Group)
	return result, nil
}

package object

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/arrival"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/trace"
)

// Small objects that arrive within the class's PackDelay of each other are packed into one shared group, each inside one
// column, so that reading one touches one node (BCStore, Section III.A). All are acknowledged by the one commit of their group.
// Where they come too slowly for that to be worth waiting for (Section III.B), each goes at once, into an empty column of a group
// that others have gone into before (window.go), or into a new one. While as many groups as flushes allows are on their way,
// batches fill up further.

// batchKey says which small objects may share a group.
type batchKey struct {
	class  *api.Class // as it was declared when the put came
	scheme stripe.Scheme
}

func (k batchKey) kind() arrival.Kind {
	return arrival.Kind{Class: k.class.Name, Scheme: k.scheme.String()}
}

// Bounds on one batch and on batches on their way.
const (
	batchObjects = 2048
	batchNames   = 1 << 20
	batchTries   = 4 // of a batch whose blocks a store lost before they were committed
	flushes      = 4
)

type batches struct {
	objects *Objects
	slots   chan struct{} // one token per flush that may run
	coming  arrival.Rates
	ahead   *advances
	windows windows
	mutex   sync.Mutex
	open    map[batchKey][]*batch // more than one only while a key is put again before its first put is flushed
}

// batch collects puts of different keys until it is flushed: all get the one revision of its commit, and a revision names
// one content of a key.
type batch struct {
	key     batchKey
	wait    time.Duration // for company
	entries map[string]entry
	bytes   int64
	names   int           // bytes of the keys and metadata: all are in the group's manifest
	begun   bool          // its objects are on their way to nodes: none leaves it any more
	done    chan struct{} // closed once the fields below are set
	result  map[string]api.Object
	refused map[string]error // by the keys whose own condition did not hold, or whose part of the batch failed
	err     error            // of all others
	full    chan struct{}    // closed when the batch need not wait any longer
	once    sync.Once
}

// content is what is kept of one small object.
type content struct {
	data     []byte
	expires  int64 // Unix milliseconds; 0: never
	metadata map[string]string
	checksum uint32 // CRC-32C; 0: not known
	keep     int    // versions before it that are kept
}

// contentOf is the content of an object as its record has it, but for its bytes.
func contentOf(object *catalog.Object, data []byte) content {
	return content{data, object.Expires, object.Metadata, object.Checksum, object.Keep}
}

// entry is one small object to be put.
type entry struct {
	content
	ifRevision *block.Stamp  // what the object has to be at; nil: anything
	asked      stripe.Scheme // for it; a hot key goes elsewhere
	request    api.Request   // that it is put by
}

func newBatches(objects *Objects) *batches {
	return &batches{
		objects: objects, open: map[batchKey][]*batch{}, slots: make(chan struct{}, flushes),
		ahead: &advances{objects: objects, stocks: map[batchKey]*stock{}},
	}
}

// put adds an object to the first open batch that has no other put of its key, and waits for its flush. A caller that gives
// up takes its object back, unless it is on its way already.
func (b *batches) put(ctx context.Context, key batchKey, name string, object entry) (api.Object, error) {
	perSecond, atOnce := b.coming.Begin(key.kind(), time.Now())
	defer b.coming.End(key.kind())
	b.objects.heat.Popularity.Wrote(key.class, name)
	b.mutex.Lock()
	if b.objects.background.Context().Err() != nil {
		b.mutex.Unlock()
		return api.Object{}, ErrClosed
	}
	open := b.without(ctx, key, name, arrival.Wait(key.class, perSecond, atOnce))
	open.bytes += int64(len(object.data))
	open.names += names(name, object.metadata)
	open.entries[name] = object
	if open.bytes >= key.class.GroupBytes || open.names >= batchNames || len(open.entries) >= batchObjects || open.hasAll(atOnce) {
		b.close(open)
		open.once.Do(func() { close(open.full) })
	}
	b.mutex.Unlock()
	select {
	case <-open.done:
		if err := open.refused[name]; err != nil {
			return api.Object{}, err
		}
		return open.result[name], open.err
	case <-ctx.Done():
	}
	if b.withdraw(open, name) {
		return api.Object{}, fmt.Errorf("waiting for a batch of small objects to begin: %w", ctx.Err())
	}
	return api.Object{}, fmt.Errorf("%w: waiting for a batch of small objects: %w", api.ErrUnknownOutcome, ctx.Err())
}

// hasAll reports whether nobody else will come while a batch waits, as never more objects than it has were under way at once, lately.
func (b *batch) hasAll(atOnce int) bool {
	return b.wait > 0 && b.key.class.PackMode != api.PackBatch && len(b.entries) >= atOnce
}

// withdraw takes an object out of a batch, and reports whether it was not too late for that.
func (b *batches) withdraw(from *batch, name string) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if from.begun {
		return false
	}
	from.bytes -= int64(len(from.entries[name].data))
	from.names -= names(name, from.entries[name].metadata)
	delete(from.entries, name)
	return true
}

// without returns an open batch that has no put of that name, a new one if there is none, which waits as it is told and is of the
// trace of the first. The caller holds the mutex.
func (b *batches) without(first context.Context, key batchKey, name string, wait time.Duration) *batch {
	for _, open := range b.open[key] {
		if _, taken := open.entries[name]; !taken {
			return open
		}
	}
	open := &batch{
		key: key, wait: wait, entries: map[string]entry{}, refused: map[string]error{}, done: make(chan struct{}), full: make(chan struct{}),
	}
	b.open[key] = append(b.open[key], open)
	b.objects.background.Go(func(ctx context.Context) { b.flush(trace.Carry(ctx, first), open) })
	return open
}

// close lets nobody join a batch any more. The caller holds the mutex.
func (b *batches) close(closed *batch) {
	others := slices.DeleteFunc(b.open[closed.key], func(open *batch) bool { return open == closed })
	if len(others) == 0 {
		delete(b.open, closed.key)
	} else {
		b.open[closed.key] = others
	}
}

// flush waits for company and for its turn, then commits the batch.
func (b *batches) flush(ctx context.Context, open *batch) {
	began := time.Now()
	if open.wait > 0 {
		timer := time.NewTimer(open.wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-open.full:
		case <-ctx.Done():
		}
	}
	b.slots <- struct{}{}
	defer func() { <-b.slots }()
	b.mutex.Lock()
	b.close(open)
	open.begun = true
	b.mutex.Unlock()
	defer close(open.done)
	if len(open.entries) == 0 { // all have left
		return
	}
	if ctx.Err() != nil {
		open.err = ErrClosed
		return
	}
	b.objects.Packing.note(open, time.Since(began))
	b.inHalves(open, func(part *batch) { b.commit(ctx, part) })
}

// commit puts the objects of a batch into a window that has room for them all, or into a group of their own.
func (b *batches) commit(ctx context.Context, open *batch) {
	perSecond := b.ahead.used.Note(open.key.kind(), time.Now())
	if b.append(ctx, open) {
		return
	}
	take := func() *advanceGroup { return b.ahead.take(open, perSecond) }
	for try := 0; try < batchTries && len(open.entries) > 0; {
		open.result, open.err = b.objects.putPacked(ctx, open.key, open.entries, take)
		isAhead := b.wasAhead(open)
		if isAhead {
			take = func() *advanceGroup { return nil }
		}
		if open.leaveOut(open.err) || isAhead { // the others have nothing to do with it
			continue
		}
		if open.err == nil && open.leavesEmpty() > 0 {
			b.objects.sparse()
		}
		if !errors.Is(open.err, group.ErrNotWhole) || group.Pause(ctx, try) != nil {
			return
		}
		try++
	}
}

// wasAhead reports whether the commit of a batch was refused because its attempt was announced ahead. Then none is used for a while.
func (b *batches) wasAhead(open *batch) bool {
	var stale *catalog.StaleError
	if !errors.As(open.err, &stale) || !stale.Has(catalog.ViolationAhead) {
		return false
	}
	b.objects.Packing.refused.Inc()
	b.ahead.refused(open.key)
	b.windows.refused(open.key)
	return true
}

// leavesEmpty is how many columns of a group a batch has nothing for.
func (b *batch) leavesEmpty() int { return max(0, b.key.class.Ladder.Width()-len(b.entries)) }

// leaveOut takes the objects out whose own condition a commit was refused for, and reports whether there were any.
func (b *batch) leaveOut(refusal error) bool {
	var stale *catalog.StaleError
	if !errors.As(refusal, &stale) {
		return false
	}
	before := len(b.refused)
	for _, detail := range stale.Details {
		switch detail.Violation {
		case catalog.ViolationRevision:
			b.refused[detail.Key] = fmt.Errorf("%w: %s", api.ErrConflict, detail)
			delete(b.entries, detail.Key)
		case catalog.ViolationRepeated:
			b.refused[detail.Key] = errRepeated
			delete(b.entries, detail.Key)
		}
	}
	return len(b.refused) > before
}

// putPacked writes small objects into one shared group and commits them together, by an attempt that is taken if there is one.
func (o *Objects) putPacked(
	ctx context.Context, kind batchKey, entries map[string]entry, take func() *advanceGroup,
) (map[string]api.Object, error) {
	over, contents := overAll(entries)
	revision := func(attempt *catalog.Attempt, _ string) block.Stamp { return attempt.Stamp() }
	var taken *advanceGroup
	announce := func(code *group.Code) (*catalog.Attempt, []block.NodeID, error) {
		taken = take()
		o.Packing.announced(taken != nil)
		if taken != nil {
			return taken.Attempt, taken.home, nil
		}
		return o.announcePacked(ctx, catalog.KindPut, kind.class, code, over...)
	}
	attempt, packed, err := o.stagePacked(ctx, kind, 0, contents, revision, announce)
	if err != nil {
		return nil, err
	}
	packed.group.Open = packed.window != nil
	change, result := putAll(kind, entries, attempt, packed.extents)
	change.NewGroups = []catalog.Group{*packed.group}
	if taken != nil {
		change.Unsent = unsent(packed.group.ID, packed.group.Home, packed.group.Slots, attempt.Stamp())
	}
	if err := o.commit(ctx, attempt, change); err != nil {
		return nil, err
	}
	o.heat.Used(packed.group)
	o.Packing.wrote(intoNew, len(packed.group.Addresses()))
	o.batches.ahead.recents.note(attempt.Stamp(), entries)
	if packed.window != nil {
		packed.window.Committed(attempt, packed.group.ID)
		w := &window{Window: packed.window, kind: kind, opened: time.Now()}
		if taken != nil {
			w.appends = slices.Clone(taken.appends)
		}
		o.batches.windows.give(w)
	}
	return result, nil
}

// overAll is what an attempt that puts small objects writes over, and what is in them.
func overAll(entries map[string]entry) ([]catalog.Basis, map[string]content) {
	over := make([]catalog.Basis, 0, len(entries))
	contents := make(map[string]content, len(entries))
	for key := range entries {
		over, contents[key] = append(over, catalog.Over(key)), entries[key].content
	}
	return over, contents
}

// putAll is the change by which an attempt puts small objects where they lie, but for their group, and what comes of them.
func putAll(
	kind batchKey, entries map[string]entry, attempt *catalog.Attempt, extents map[string]catalog.Extent,
) (catalog.Change, map[string]api.Object) {
	now := time.Now().UnixMilli()
	change := catalog.Change{IfRevision: map[string]block.Stamp{}}
	result := make(map[string]api.Object, len(entries))
	for key, object := range entries {
		record := recordOf(kind, attempt, key, object, now)
		record.Extents = []catalog.Extent{extents[key]}
		if object.ifRevision != nil {
			change.IfRevision[key] = *object.ifRevision
		}
		change.Put = append(change.Put, record)
		put := publicObject(&record)
		put.Scheme = kind.scheme.String()
		result[key] = put
		change.Answers = append(change.Answers, answerOf(object.request, key, &put)...)
	}
	return change, result
}

// recordOf is the record of a small object, but for where it lies.
func recordOf(kind batchKey, attempt *catalog.Attempt, key string, object entry, modified int64) catalog.Object {
	return catalog.Object{
		Key: key, Revision: attempt.Stamp(), Class: kind.class.Name, Scheme: object.asked.String(), Size: int64(len(object.data)),
		Modified: modified, Expires: object.expires, Metadata: object.metadata, Checksum: object.checksum,
		Keep: object.keep,
	}
}

// packed is a group that small objects were staged in.
type packed struct {
	group   *catalog.Group
	extents map[string]catalog.Extent
	window  *group.Window // that it may be, once it is committed; nil: none
}

// stagePacked packs entries into the columns of one new group, largest first into the emptiest column, has it announced, and stages it.
// The index is that of the group among those of the attempt. After an error the attempt is given up.
func (o *Objects) stagePacked(
	ctx context.Context, kind batchKey, index uint32, entries map[string]content,
	revision func(attempt *catalog.Attempt, key string) block.Stamp,
	announce func(*group.Code) (*catalog.Attempt, []block.NodeID, error),
) (*catalog.Attempt, *packed, error) {
	class := kind.class
	keys, extents, fullest := pack(class.Ladder.Width(), sizesOf(entries))
	layout, err := stripe.NewLayout(class.Ladder, 0, class.Mode)
	if err != nil {
		return nil, nil, fmt.Errorf("class %s: %w", class.Name, err)
	}
	d, err := o.groups.NewDraft(ctx, o.groups.Memory.Batches, class, kind.scheme, group.CellBytesFor(layout.Rows, fullest))
	if err != nil {
		return nil, nil, err
	}
	defer o.groups.Release(d)
	manifest := fill(d.Columns, keys, extents, entries)
	o.groups.Name(d, manifest)
	attempt, home, err := announce(d.Code)
	if err != nil {
		return nil, nil, err
	}
	d.ID = block.GroupID{Stamp: attempt.Stamp(), Index: index}
	d.Packed = true
	for i, key := range keys {
		extent := extents[key]
		extent.Group = d.ID
		extents[key] = extent
		manifest[i].Revision = revision(attempt, key)
	}
	staged, err := o.groups.Stage(ctx, attempt, d, home)
	if err != nil {
		return nil, nil, o.groups.Abandon(ctx, attempt, err)
	}
	return attempt, &packed{staged, extents, o.groups.NewWindow(d)}, nil
}

func sizesOf(entries map[string]content) map[string]int64 {
	sizes := make(map[string]int64, len(entries))
	for key := range entries {
		sizes[key] = int64(len(entries[key].data))
	}
	return sizes
}

// fill puts entries where they lie in columns, and returns their manifest but for the revisions, which are drawn with the stamp.
func fill(columns [][]byte, keys []string, extents map[string]catalog.Extent, entries map[string]content) []block.ManifestEntry {
	manifest := make([]block.ManifestEntry, len(keys))
	for i, key := range keys {
		extent := extents[key]
		manifest[i] = block.ManifestEntry{
			Key: []byte(key), Size: extent.Length, Column: extent.Column, Offset: extent.Offset, Length: extent.Length,
			Expires: entries[key].expires, Metadata: entries[key].metadata, Checksum: entries[key].checksum,
			Keep: entries[key].keep,
		}
		copy(columns[extent.Column][extent.Offset:], entries[key].data)
	}
	return manifest
}

// pack puts objects of these sizes into columns, the largest first into the emptiest column. It returns their keys in that order,
// where they lie, and how many bytes the fullest column has.
func pack(columns int, sizes map[string]int64) (keys []string, extents map[string]catalog.Extent, fullest int64) {
	keys = slices.SortedFunc(maps.Keys(sizes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a, b))
	})
	filled := make([]int64, columns)
	extents = make(map[string]catalog.Extent, len(keys))
	for _, key := range keys {
		emptiest := 0
		for x := range filled {
			if filled[x] < filled[emptiest] {
				emptiest = x
			}
		}
		extents[key] = catalog.Extent{Column: emptiest, Offset: filled[emptiest], Length: sizes[key]}
		filled[emptiest] += sizes[key]
	}
	return keys, extents, slices.Max(filled)
}

// PackedBytes is how many bytes the data columns of one new group take that objects are packed into.
func (o *Objects) PackedBytes(class *api.Class, snapshots []*catalog.Snapshot) (int64, error) {
	sizes := make(map[string]int64, len(snapshots))
	for _, snapshot := range snapshots {
		sizes[snapshot.Object.Key] = snapshot.Object.Size
	}
	_, _, fullest := pack(class.Ladder.Width(), sizes)
	return columnsBytes(class, fullest)
}

// columnsBytes is how many bytes the data columns of one group take of which the fullest has so many.
func columnsBytes(class *api.Class, fullest int64) (int64, error) {
	layout, err := stripe.NewLayout(class.Ladder, 0, class.Mode)
	if err != nil {
		return 0, fmt.Errorf("class %s: %w", class.Name, err)
	}
	return int64(layout.Cells()) * int64(group.CellBytesFor(layout.Rows, fullest)), nil
}

// ErrClosed says that the gateway takes no more requests.
var ErrClosed = errors.New("gateway is closing")

package object

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/budget"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/direct"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/trace"
	"github.com/restripe/restripe/agent/wire"
)

// Reader reads one version of one object. It never mixes versions: if the object is overwritten while it is read and its
// old blocks are gone, the read fails with ErrConflict instead of splicing.
type Reader struct {
	objects *Objects
	memory  budget.Budget
	counted bool             // it reads for a client: the groups are used
	kept    []byte           // all bytes, where the gateway has them in memory; nobody changes them
	first   bool             // it waits for what it misses to be rebuilt, and decodes only what cannot be
	apart   bool             // it was tried in vain to read it with others, straight from where it lies
	repairs api.RepairOnRead // empty: wake
	shared  sharedReads

	mutex    sync.Mutex // of what follows
	current  *catalog.Snapshot
	from, to int64 // the bytes whose groups it has
}

// Open takes a snapshot of the object. Of one with many groups their records are read as its bytes are.
func (o *Objects) Open(ctx context.Context, key string) (*Reader, error) {
	if err := api.CheckKey(key); err != nil {
		return nil, err
	}
	return open(ctx, o, key)
}

// OpenRevision is Open of the version that an object has at a revision, or had, where that is kept.
func OpenRevision(ctx context.Context, o *Objects, key string, revision block.Stamp) (*Reader, error) {
	now, err := o.Open(ctx, key)
	if err != nil || now.Object().Revision == revision {
		return now, err
	}
	kept := now.Object().Earlier
	if slices.Contains(kept, revision) {
		earlier, err := open(ctx, o, block.EarlierKey(key, revision))
		if !errors.Is(err, catalog.ErrNoObject) {
			return earlier, err
		}
	}
	return nil, api.Refuse(api.ErrNotFound, "revision %s of the object is not kept; it is at revision %s, and keeps %v",
		revision, now.Object().Revision, kept)
}

func open(ctx context.Context, o *Objects, key string) (*Reader, error) {
	if kept, err := openKept(ctx, o, key); kept != nil || err != nil {
		return kept, err
	}
	current, isWhole, err := o.catalog.SnapshotToRead(ctx, key, o.readGroups)
	if err == nil && o.catalog.HasExpired(&current.Object) {
		err = errExpired(key)
	}
	if err != nil {
		return nil, err
	}
	return newReader(o, current, isWhole), nil
}

func newReader(o *Objects, current *catalog.Snapshot, isWhole bool) *Reader {
	r := &Reader{objects: o, memory: o.groups.Memory.Reads, counted: true, current: current, repairs: api.DefaultRepairOnRead}
	if isWhole {
		r.to = math.MaxInt64
	}
	if class := o.classes.Named(current.Object.Class); class != nil {
		r.repairs = cmp.Or(class.Repair, r.repairs)
	}
	return r
}

// look sees to it that the records are known of the groups that bytes from offset on lie in, for as many groups as a read has at a
// time, and returns of how many of length bytes they are.
func (r *Reader) look(ctx context.Context, offset, length int64) (int64, error) {
	r.mutex.Lock()
	seen, from, to := r.current, r.from, r.to
	r.mutex.Unlock()
	if offset < from || offset >= to {
		if seen.Object.Location != nil {
			r.objects.catalog.Astray(seen)
		}
		from, to = offset, min(offset+length, endOf(seen.Object.Extents, offset, r.objects.readGroups))
		if _, err := r.renew(ctx, seen, from, to); err != nil {
			return 0, err
		}
	}
	return min(length, to-offset), nil
}

// endOf returns where the bytes end of so many extents, of which the first has the byte at offset.
func endOf(extents []catalog.Extent, offset int64, most int) int64 {
	at := int64(0)
	for _, extent := range extents {
		at += extent.Length
		if at > offset {
			most--
		}
		if most == 0 {
			break
		}
	}
	return at
}

// renew reads the catalog again, with the groups of a range, and fails if the object's bytes have changed.
func (r *Reader) renew(ctx context.Context, seen *catalog.Snapshot, from, to int64) (*catalog.Snapshot, error) {
	fresh, err := r.objects.catalog.Again(ctx, seen, from, to-from)
	if errors.Is(err, catalog.ErrNoObject) || err == nil && fresh.Object.Revision != seen.Object.Revision {
		return nil, api.Refuse(api.ErrConflict, "the object was overwritten or deleted while it was read; read it again")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the catalog again: %w", err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.current, r.from, r.to = fresh, from, to
	return fresh, nil
}

// Object describes the version being read.
func (r *Reader) Object() api.Object {
	snapshot := r.snapshot()
	return publicObject(&snapshot.Object)
}

// Record is the catalog's record of the version being read. Nobody may change it.
func (r *Reader) Record() *catalog.Object { return &r.snapshot().Object }

// Size is the size of the version being read.
func (r *Reader) Size() int64 { return r.snapshot().Object.Size }

func (r *Reader) snapshot() *catalog.Snapshot {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.current
}

// fragment is a run of bytes inside one cell.
type fragment struct {
	position int64 // of its first byte in the object
	group    block.GroupID
	cell     int // row-major index
	offset   int // bytes into the cell
	length   int
}

// maxFragment bounds one request to an agent.
const maxFragment = 1 << 20

// fragments cuts bytes [offset, offset+length) of the object into runs within cells, in order.
func fragments(snapshot *catalog.Snapshot, offset, length int64) []fragment {
	var list []fragment
	at := int64(0)
	for _, extent := range snapshot.Object.Extents {
		from, to := max(offset, at), min(offset+length, at+extent.Length)
		group := snapshot.Groups[extent.Group]
		for position := from; position < to; {
			within := extent.Offset + position - at
			index, inner := within/int64(group.CellBytes), int(within%int64(group.CellBytes))
			row, column := int(index), extent.Column
			if column == catalog.WholeGroup {
				row, column = row/group.Span(), row%group.Span()
			}
			lies, in := catalog.Column{Group: extent.Group, Column: column}, group
			if group.IsDissolved() {
				if at, there, err := snapshot.Where(extent.Group, column); err == nil { // else it is read where it is not, which says so
					lies, in = at, there
				}
			}
			n := min(group.CellBytes-inner, int(to-position), maxFragment)
			list = append(list, fragment{position: position, group: lies.Group, cell: row*in.Columns + lies.Column, offset: inner, length: n})
			position += int64(n)
		}
		at += extent.Length
	}
	return list
}

// WriteTo writes bytes [offset, offset+length) of the object to w. Blocks that are lost are decoded from the others of
// their stripe.
func (r *Reader) WriteTo(ctx context.Context, w io.Writer, offset, length int64) error {
	size := r.Size()
	if offset < 0 || length < 0 || offset > size-length {
		return api.Refuse(api.ErrBadRequest, "range %d+%d is outside the object's %d bytes", offset, length, size)
	}
	if r.kept != nil {
		_, err := w.Write(r.kept[offset : offset+length])
		return err
	}
	var whole *bytes.Buffer
	if length == size && r.mayKeep() {
		whole = bytes.NewBuffer(make([]byte, 0, size))
		w = io.MultiWriter(w, whole)
	}
	err := r.read(ctx, w, offset, length)
	if err == nil && whole != nil {
		object := &r.snapshot().Object
		r.objects.cache.Put(object.Key, object.Revision, whole.Bytes())
	}
	return err
}

func (r *Reader) read(ctx context.Context, w io.Writer, offset, length int64) error {
	if data, done := r.quick(ctx, offset, length); done {
		_, err := w.Write(data.bytes)
		data.free()
		return err
	}
	err := r.writeTo(ctx, w, offset, length)
	if kept := r.Object().Earlier; len(kept) > 0 && errors.Is(err, api.ErrDataLoss) {
		err = fmt.Errorf("%w; what it was before is kept: ask for revision %s", err, kept[0])
	}
	return err
}

const (
	// quickBytes is how many bytes are read in one go, without anything beside it, where their store answers.
	quickBytes = 64 << 10
	// quickPatience is for how long. It is long beside what is waited for with others at hand, as a read that is given up costs twice
	// where everything is slow because there is much to do.
	quickPatience = 100 * time.Millisecond
)

// quickData is what was read in one go.
type quickData struct {
	bytes   []byte
	release func()
}

func (d *quickData) free() {
	wire.Recycle(d.bytes)
	d.release()
}

// quick reads a few bytes straight from the store of the node that has them, if the gateway reaches that, and there is memory: those of
// one cell, or a whole object whose checksum is known.
func (r *Reader) quick(ctx context.Context, offset, length int64) (data quickData, done bool) {
	at, group := r.near(offset, length)
	located := group == nil
	if located {
		at, group = r.located(offset, length)
	}
	if group == nil {
		return data, false
	}
	release, room := r.memory.Try(length)
	if !room {
		return data, false
	}
	o := r.objects
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, quickPatience)
	defer cancel()
	var read []byte
	switch {
	case at.Checksum == 0:
		read, done = o.direct.Read(within, at.Address, at.Unit, at.Offset, at.Length)
	case !r.apart:
		read, done = o.direct.ReadKnown(within, at.Address, at.Unit, at.Offset, at.Length, at.Checksum)
	}
	if !done && located {
		read, done = r.askKnown(within, at, group.CellBytes)
	}
	if !done {
		release()
		return data, false
	}
	r.served(group, int(length), began)
	return quickData{fillUp(read, int(length)), release}, true
}

// near returns where a few bytes lie on one node that answers, of a whole object with its checksum, if that is known; no group: they do
// not, or may not be read in one go.
func (r *Reader) near(offset, length int64) (at direct.Place, group *catalog.Group) {
	snapshot := r.snapshot()
	object := &snapshot.Object
	if length == 0 || length > quickBytes || len(object.Extents) != 1 || r.first || r.apart {
		return at, nil
	}
	if snapshot.Groups[object.Extents[0].Group] == nil {
		return at, nil
	}
	list := fragments(snapshot, offset, length)
	f := list[0]
	if group = snapshot.Groups[f.group]; group.IsDissolved() {
		return at, nil
	}
	at.Unit, at.Offset, at.Length = f.cell/group.Columns, f.offset, f.length
	if object.Checksum != 0 && length == object.Size && object.Extents[0].Column != catalog.WholeGroup {
		at.Checksum, at.Length = object.Checksum, int(length)
	} else if len(list) != 1 {
		return at, nil
	}
	slot := f.cell % group.Columns
	item, found := group.Find(slot, at.Unit)
	last := at.Unit + (at.Offset+int(length)-1)/group.CellBytes
	if !found || last >= item.First+item.Units || !r.objects.agents.Answers(item.Node) {
		return at, nil
	}
	at.Address = group.Address(slot, item)
	return at, group
}

// served takes note of bytes of a group that a store has sent in one go.
func (r *Reader) served(group *catalog.Group, length int, began time.Time) {
	o, now := r.objects, time.Now()
	o.hedge.Answered(now, length, now.Sub(began))
	o.hedge.Served(length)
	if r.counted {
		o.heat.Used(group)
		if group.Packed {
			o.readSmall(r.snapshot(), group)
		}
	}
}

// fetch returns the bytes of one fragment, from its cell or decoded from the rest of the stripe. A miss is judged by
// reading the catalog again (protocol, rule 15): the same records mean a true loss; a moved group is read under its new
// record, with nothing kept but what was whole data; another revision ends the read.
func (r *Reader) fetch(ctx context.Context, f fragment) (_ sharedBuffer, err error) {
	ctx, span := trace.Within(ctx, "read fragment")
	if span != nil {
		span.Text("restripe.group", f.group.String()).Int("restripe.bytes", int64(f.length))
	}
	defer func() { span.End(err) }()
	var cause error
	for range maxMoves {
		snapshot := r.snapshot()
		group, there := snapshot.Groups[f.group]
		if !there {
			return r.fetchMoved(ctx, snapshot, f)
		}
		if !r.objects.homeAnswers(group, f) { // spare the wait where the others can serve
			if again, err := r.mendGone(ctx, group, f, snapshot); err != nil {
				return sharedBuffer{}, err
			} else if again {
				continue
			}
			if data, err := r.decode(ctx, group, f, r.objects.agents.Call); err == nil {
				r.objects.Counters.Degraded.Add(1)
				return data, nil
			}
		}
		read := r.readHedged
		if r.first { // nothing is decoded that can be rebuilt
			read = r.readCell
		}
		data, err := read(ctx, group, f)
		if err == nil {
			return data, nil
		}
		if ctx.Err() != nil || !(member.GoneBlock(err) || member.Unanswered(err)) {
			return sharedBuffer{}, err
		}
		cause = err
		if member.GoneBlock(err) { // a node that does not answer says nothing of its blocks: the others decode under this record
			changed, err := r.refresh(ctx, f.group, snapshot)
			if err != nil {
				return sharedBuffer{}, err
			}
			if changed {
				continue
			}
			if again, err := r.mend(ctx, group, snapshot, true); err != nil {
				return sharedBuffer{}, err
			} else if again {
				continue
			}
		}
		data, err = r.decode(ctx, group, f, r.objects.agents.CallSuspect)
		if err == nil {
			r.objects.Counters.Degraded.Add(1)
			return data, nil
		}
		if ctx.Err() != nil {
			return sharedBuffer{}, err
		}
		if errors.Is(err, api.ErrDataLoss) && !member.GoneBlock(cause) { // the cell itself may still be where nobody answers
			err = api.Refuse(api.ErrUnavailable, "%v; the cell itself: %w", err, cause)
		}
		cause = err
		if changed, refreshErr := r.refresh(ctx, f.group, snapshot); refreshErr != nil {
			return sharedBuffer{}, refreshErr
		} else if !changed {
			return sharedBuffer{}, err
		}
	}
	return sharedBuffer{}, api.Refuse(api.ErrUnavailable, "group %s kept changing while it was read; try again: %w", f.group, cause)
}

// readHedged reads a fragment from its cell and, once that takes long, decodes it beside it: what comes first is returned.
// The error is that of the cell.
func (r *Reader) readHedged(ctx context.Context, group *catalog.Group, f fragment) (sharedBuffer, error) {
	g := r.objects
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cell, leave := context.WithCancel(context.WithoutCancel(ctx))
	stopped := context.AfterFunc(ctx, leave)
	defer stopped()
	type answer struct {
		data sharedBuffer
		err  error
	}
	direct, decoded := make(chan answer), make(chan answer)
	go func() {
		data, err := r.readCell(cell, group, f)
		hand(cell, direct, answer{data, err}, data)
	}()
	alone := time.NewTimer(g.hedge.Delay(time.Now(), f.length))
	defer alone.Stop()
	for {
		select {
		case <-ctx.Done():
			return sharedBuffer{}, ctx.Err()
		case got := <-direct:
			leave()
			return got.data, got.err
		case got := <-decoded:
			if got.err == nil {
				g.Counters.HedgesWon.Add(1)
				if stopped() { // the cell may be lost: that is looked at without the reader
					g.background.Go(func(ctx context.Context) {
						defer leave()
						select {
						case late := <-direct:
							late.data.release()
							r.lostLate(ctx, group, late.err)
						case <-time.After(g.mendings.patience):
						case <-ctx.Done():
						}
					})
				}
				return got.data, nil
			}
			decoded = nil // the cell may still come
		case now := <-alone.C:
			free, may := g.mayHedge(now, group, f)
			if !may {
				alone.Reset(g.hedge.Delay(now, f.length))
				continue
			}
			g.Counters.Hedges.Add(1)
			go func() {
				defer free()
				data, err := r.decodeWithin(ctx, group, f, g.agents.CallSuspect)
				hand(ctx, decoded, answer{data, err}, data)
			}()
		}
	}
}

// lostLate does about a cell what a read of it does that finds it lost, after its bytes were decoded.
func (r *Reader) lostLate(ctx context.Context, group *catalog.Group, err error) {
	if !member.GoneBlock(err) {
		return
	}
	snapshot := r.snapshot()
	if now := snapshot.Groups[group.ID]; now == nil || now.Generation != group.Generation {
		return // it is another group by now
	}
	if _, err := r.mend(ctx, group, snapshot, true); err != nil {
		r.objects.log.Debug("having a group rebuilt that was read", "group", group.ID, "cause", err)
	}
}

// mayHedge reports whether a fragment may be decoded beside the read of its cell, in memory that free gives back. The
// ration keeps nodes that are slow from being asked for more; it is no reason to wait for one that is away.
func (o *Objects) mayHedge(now time.Time, group *catalog.Group, f fragment) (free func(), may bool) {
	code, err := o.groups.CodeOf(group)
	if err != nil {
		return nil, false // the read of the cell says so
	}
	free, room := o.groups.Memory.Decodes.Try(decodeBytes(code, f))
	if !room {
		return nil, false
	}
	if o.homeAnswers(group, f) && !o.hedge.Take(now, f.length, code.Scheme.K) {
		free()
		return nil, false
	}
	return free, true
}

// maxMoves is how many times one fragment starts over because its group was committed anew meanwhile.
const maxMoves = 16

// refresh reads the catalog again. It reports whether the record of the group has changed since the given snapshot, and
// fails if the object's bytes have.
func (r *Reader) refresh(ctx context.Context, id block.GroupID, seen *catalog.Snapshot) (changed bool, err error) {
	r.mutex.Lock()
	from, to := r.from, r.to
	r.mutex.Unlock()
	fresh, err := r.renew(ctx, seen, from, to)
	if err != nil {
		return false, err
	}
	group, there := fresh.Groups[id]
	return !there || group.Generation != seen.Groups[id].Generation, nil
}

// fetchMoved reads a fragment whose bytes were moved to other groups: the revision is the same, so they are the same.
func (r *Reader) fetchMoved(ctx context.Context, snapshot *catalog.Snapshot, f fragment) (sharedBuffer, error) {
	data := make([]byte, 0, f.length)
	for _, piece := range fragments(snapshot, f.position, int64(f.length)) {
		part, err := r.fetch(ctx, piece)
		if err != nil {
			return sharedBuffer{}, err
		}
		data = append(data, part.bytes...)
		part.release()
	}
	return own(data), nil
}

// readCell reads a fragment straight from its cell. Under replication every parity row is a copy, scaled by its
// coefficient: the least loaded copy serves, the exact one where loads are equal.
func (r *Reader) readCell(ctx context.Context, group *catalog.Group, f fragment) (sharedBuffer, error) {
	g := r.objects
	code, err := g.groups.CodeOf(group)
	if err != nil {
		return sharedBuffer{}, err
	}
	column := f.cell % group.Columns
	best := survivor{slot: column, unit: f.cell / group.Columns}
	if code.Scheme.K > 1 {
		return r.readShared(ctx, group, best, f, g.agents.CallSuspect)
	}
	stripe := int(code.Partition.StripeOf[f.cell])
	least := g.loadOf(group, best)
	for p := range code.Scheme.M {
		other := survivor{slot: group.Columns + p, unit: stripe}
		if load := g.loadOf(group, other); load < least {
			best, least = other, load
		}
	}
	data, err := g.readUnit(ctx, group, best, f, g.agents.CallSuspect)
	if err == nil && best.slot != column {
		err = code.Unscale(best.slot-group.Columns, column, data)
	}
	return own(data), err
}

func (o *Objects) loadOf(group *catalog.Group, copy survivor) int64 {
	item, found := group.Find(copy.slot, copy.unit)
	if !found {
		return math.MaxInt64
	}
	return o.agents.Load(item.Node)
}

// caller is Agents.Call or Agents.CallSuspect.
type caller func(ctx context.Context, id block.NodeID, op wire.Op, request any, payload []byte, reply any) ([]byte, error)

// readShared is readUnit, once for all fragments of the reader that want the same bytes.
func (r *Reader) readShared(ctx context.Context, group *catalog.Group, from survivor, f fragment, call caller) (sharedBuffer, error) {
	return r.shared.read(ctx, rangeOf(group, from.slot, from.unit, f.offset), f.length, func(ctx context.Context) ([]byte, error) {
		return r.objects.readUnit(ctx, group, from, f, call)
	})
}

// readUnit reads the fragment's range of a unit.
func (o *Objects) readUnit(ctx context.Context, group *catalog.Group, from survivor, f fragment, call caller) ([]byte, error) {
	item, found := group.Find(from.slot, from.unit)
	if !found && slices.Contains(group.Empty(), from.slot) {
		return make([]byte, f.length), nil
	}
	if !found {
		return nil, fmt.Errorf("group %s has no unit %d in slot %d: %w", group.ID, from.unit, from.slot, wire.ErrNotFound)
	}
	began := time.Now()
	data, done := o.direct.Read(ctx, group.Address(from.slot, item), from.unit, f.offset, f.length)
	if !done {
		request := wire.ReadRequest{
			Address: group.Address(from.slot, item), Ranges: []wire.Range{{Unit: from.unit, Offset: f.offset, Length: f.length}},
			Short: true, // a decode wants the same range of units that end before it does
		}
		var err error
		if data, err = call(ctx, item.Node, wire.OpRead, request, nil, nil); err != nil {
			return nil, err
		}
	}
	now := time.Now()
	o.hedge.Answered(now, f.length, now.Sub(began))
	if len(data) > f.length {
		return nil, fmt.Errorf("node %s answered %d bytes for %d: %w", item.Node, len(data), f.length, wire.ErrCorrupt)
	}
	return fillUp(data, f.length), nil
}

// fillUp returns data with zeros after it, length bytes in all. It takes the place of data, which is not used any more.
func fillUp(data []byte, length int) []byte {
	if len(data) == length {
		return data
	}
	full := wire.Buffer(length)
	clear(full[copy(full, data):])
	wire.Recycle(data)
	return full
}

// homeAnswers reports whether the node of a fragment's cell answered last.
func (o *Objects) homeAnswers(group *catalog.Group, f fragment) bool {
	item, found := group.Find(f.cell%group.Columns, f.cell/group.Columns)
	return found && o.agents.Answers(item.Node)
}

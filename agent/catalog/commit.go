package catalog

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// Commit makes change take effect, whole or not at all (rule 6). It computes by itself whether the result is whole, the
// live counts, and which addresses die.
//
// nil: committed, now or by an earlier call. Every other answer but ErrUnknown says that the attempt has not taken
// effect and never will, and that its blocks are in the graveyard: ErrStale, as a *StaleError, names the conditions
// that did not hold; ErrBadChange is the caller's mistake; ErrNotActive, that somebody settled the attempt, or that the
// engine failed or ctx ended and it was settled here. ErrUnknown only if even settling could not be done.
func (a *Attempt) Commit(ctx context.Context, change Change) error {
	err := a.commit(ctx, &change)
	if err == nil {
		return nil
	}
	if err = a.settleAfter(ctx, err); err != nil {
		a.result = nil
		return fmt.Errorf("committing %s %s: %w", a.kind, a.stamp, err)
	}
	return nil
}

func (a *Attempt) commit(ctx context.Context, change *Change) error {
	if err := change.check(a.stamp); err != nil {
		return err
	}
	for {
		t, err := a.prepare(ctx, change)
		if err != nil {
			return err
		}
		a.result = t.results
		failed, err := a.ledger.engine.Update(ctx, t.checks, t.writes)
		if err != nil {
			return err
		}
		if len(failed) == 0 {
			return nil
		}
		// Reading again shows whether a condition is violated, or only an object that is overwritten blindly has moved.
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// transaction collects the checks and writes of one commit.
type transaction struct {
	attempt    *Attempt
	intent     Intent
	values     map[string][]byte // records as read
	checks     []kv.Check
	writes     []kv.Write
	lives      schema.Lives
	created    map[block.GroupID]bool
	open       map[block.GroupID]bool   // groups that take extents in this commit
	results    map[block.GroupID]*Group // new and changed groups as they will be
	dead       []block.Address
	whole      map[block.NodeID]block.Incarnation // what the stores must still be
	above      uint64                             // the floor of stamps must not be below this number
	floorStays bool                               // it is compared
	isPiece    bool                               // the attempt goes on after it
	joined     []Extent                           // of the pieces that the attempt has committed
	holds      int                                // records that hold what was taken from objects
	violated   []StaleDetail
}

// prepare reads what the commit needs as of one instant and builds its transaction.
func (a *Attempt) prepare(ctx context.Context, change *Change) (*transaction, error) {
	t, err := a.open(ctx, change)
	if err != nil {
		return nil, err
	}
	steps := []func(*Change) error{t.answer, t.changeGroups, t.reshape, t.joinPieces, t.expect, t.put, t.remove, t.update, t.move}
	for _, step := range steps {
		if err := step(change); err != nil {
			return nil, err
		}
	}
	if err := t.requireWhole(); err != nil {
		return nil, err
	}
	t.count()
	return t, t.finish()
}

// open begins a transaction of an attempt that is active.
func (a *Attempt) open(ctx context.Context, change *Change) (*transaction, error) {
	t := &transaction{
		attempt: a, values: map[string][]byte{}, lives: schema.Lives{}, created: map[block.GroupID]bool{},
		open: map[block.GroupID]bool{}, results: map[block.GroupID]*Group{}, whole: map[block.NodeID]block.Incarnation{},
	}
	if err := t.read(ctx, change); err != nil {
		return nil, err
	}
	if err := t.readDurable(ctx, change); err != nil {
		return nil, err
	}
	if t.values[schema.IntentKey(a.stamp)] == nil {
		// Ended, by whomever: settling says how.
		return nil, ErrNotActive
	}
	return t, t.useIntent()
}

func (t *transaction) read(ctx context.Context, change *Change) error {
	stamp := t.attempt.stamp
	keys := []string{schema.IntentKey(stamp), schema.KeyFloor}
	for i := range change.Put {
		keys = append(keys, schema.ObjectKey(change.Put[i].Key))
	}
	for _, key := range change.Delete {
		keys = append(keys, schema.ObjectKey(key))
	}
	for key := range change.IfRevision {
		keys = append(keys, schema.ObjectKey(key))
	}
	for i := range change.Answers {
		keys = append(keys, string(change.Answers[i].Request))
	}
	if len(change.Put)+len(change.Move) > 0 {
		for i := range t.attempt.pieces {
			keys = append(keys, schema.PieceKey(stamp.String(), i))
		}
	}
	if change.Update != nil {
		keys = append(keys, schema.ObjectKey(change.Update.Snapshot.Object.Key))
	}
	for i := range change.Move {
		keys = append(keys, schema.ObjectKey(change.Move[i].Snapshot.Object.Key))
	}
	nodes := map[block.NodeID]bool{}
	use := func(slots []Slot) {
		for _, slot := range slots {
			for _, item := range slot {
				if !nodes[item.Node] {
					nodes[item.Node] = true
					keys = append(keys, schema.IncarnationKey(item.Node))
				}
			}
		}
	}
	for i := range change.NewGroups {
		use(change.NewGroups[i].Slots)
	}
	for i := range change.Groups {
		keys = append(keys, schema.GroupKey(change.Groups[i].Was.ID))
		use(change.Groups[i].Slots)
	}
	for _, id := range change.goneOrigins() {
		keys = append(keys, schema.GroupKey(id))
	}
	values, err := t.attempt.ledger.engine.Read(ctx, keys...)
	if err != nil {
		return err
	}
	for i, key := range keys {
		t.values[key] = values[i]
	}
	return nil
}

func (t *transaction) useIntent() (err error) {
	key := schema.IntentKey(t.attempt.stamp)
	t.intent, err = codec.Decode[Intent](key, t.values[key])
	t.checks = append(t.checks, kv.Check{Key: key, Value: t.values[key]})
	return err
}

func (t *transaction) violate(detail StaleDetail) { t.violated = append(t.violated, detail) }

// changeGroups adds new groups and applies the changes to existing ones.
func (t *transaction) changeGroups(change *Change) error {
	stamp, now := t.attempt.stamp, t.attempt.ledger.now()
	own := map[block.Address]bool{}
	for _, address := range t.intent.Addresses() {
		own[address] = true
	}
	used := map[block.Address]bool{}
	for i := range change.NewGroups {
		group := change.NewGroups[i]
		group.Generation, group.Epoch, group.Settled = stamp, stamp, now.UnixMilli()
		t.checks = append(t.checks, kv.Check{Key: schema.GroupKey(group.ID)})
		t.created[group.ID], t.open[group.ID] = true, true
		if err := t.result(&group, nil, own, used, false); err != nil {
			return err
		}
		t.require(&group, nil)
	}
	for i := range change.Groups {
		edit := &change.Groups[i]
		was, key := edit.Was, schema.GroupKey(edit.Was.ID)
		if raw := t.values[key]; raw == nil {
			t.violate(StaleDetail{Violation: ViolationFreed, Group: was.ID})
			continue
		} else if !bytes.Equal(raw, was.raw) {
			t.violate(StaleDetail{Violation: ViolationGroup, Group: was.ID})
			continue
		} else if t.attempt.ahead && was.newest() >= stamp.Sequence {
			t.violate(StaleDetail{Violation: ViolationAhead, Group: was.ID})
			continue
		}
		t.checks = append(t.checks, kv.Check{Key: key, Value: was.raw})
		t.open[was.ID] = was.Open
		if _, err := codec.DecodeToChange[Group](key, was.raw); err != nil {
			return err
		}
		group := edit.apply(stamp, now)
		repaired, isRepair := change.RepairedSlots[was.ID]
		if err := t.checkFields(&was.Group, &group, repaired, isRepair); err != nil {
			return err
		}
		if err := t.result(&group, &was.Group, own, used, isRepair); err != nil {
			return err
		}
		if isRepair {
			t.require(&group, repaired)
		} else {
			t.require(&group, nil)
		}
	}
	for _, address := range change.Unsent {
		delete(own, address)
	}
	for address := range own {
		if !used[address] && (!t.isPiece || t.created[address.Group]) {
			t.dead = append(t.dead, address)
		}
	}
	schema.SortAddresses(t.dead)
	t.writes = append(t.writes, t.attempt.ledger.graves.bury(t.dead, causeUnused, false)...)
	return nil
}

// checkFields holds an operation to its own fields (rule 6).
func (t *transaction) checkFields(was, group *Group, repaired []int, isRepair bool) error {
	isRelaid := group.Ladder != was.Ladder || group.Mode != was.Mode || group.LayoutVersion != was.LayoutVersion
	switch {
	case group.Columns != was.Columns || !slices.Equal(group.Brought, was.Brought) || !slices.Equal(group.Lies, was.Lies) || t.isReshaping():
		if !t.isReshaping() || isRepair {
			return fmt.Errorf("%s of group %s changes its columns: %w", t.attempt.kind, was.ID, ErrBadChange)
		}
	case isRelaid && (isRepair || t.attempt.kind != KindTransition):
		return fmt.Errorf("%s of group %s changes its ladder: %w", t.attempt.kind, was.ID, ErrBadChange)
	case isRepair:
		if group.Scheme != was.Scheme || group.Epoch != was.Epoch || len(group.Slots) != len(was.Slots) {
			return fmt.Errorf("repair of group %s changes its scheme, epoch or slots: %w", was.ID, ErrBadChange)
		}
		for slot := range group.Slots {
			if !slices.Contains(repaired, slot) && !slices.Equal(group.Slots[slot], was.Slots[slot]) {
				return fmt.Errorf("repair of group %s changes slot %d, which it does not repair: %w", was.ID, slot, ErrBadChange)
			}
		}
	case group.Class != was.Class && t.attempt.kind != KindMove:
		return fmt.Errorf("%s of group %s changes its class: %w", t.attempt.kind, was.ID, ErrBadChange)
	case t.attempt.kind == KindMove:
		if group.Scheme != was.Scheme || group.Epoch != was.Epoch || !slices.EqualFunc(group.Slots, was.Slots, slices.Equal) {
			return fmt.Errorf("move of group %s to another class changes its scheme, epoch or slots: %w", was.ID, ErrBadChange)
		}
	case t.attempt.kind == KindPut:
		if group.Scheme != was.Scheme || len(group.Slots) != len(was.Slots) || !slices.Equal(group.Home, was.Home) {
			return fmt.Errorf("append to group %s changes its scheme, slots or nodes: %w", was.ID, ErrBadChange)
		}
		for slot := range min(was.Columns, len(was.Slots)) { // of columns there are only more
			if have := was.Slots[slot]; len(group.Slots[slot]) < len(have) || !slices.Equal(group.Slots[slot][:len(have)], have) {
				return fmt.Errorf("append to group %s changes what is in data column %d: %w", was.ID, slot, ErrBadChange)
			}
		}
	case t.attempt.kind == KindTransition:
		for slot := 0; slot < was.Columns && slot < len(group.Slots); slot++ {
			if !slices.Equal(group.Slots[slot], was.Slots[slot]) {
				return fmt.Errorf("transition of group %s changes data column %d: %w", was.ID, slot, ErrBadChange)
			}
		}
	}
	return nil
}

// result takes a group as it will be: checks it, writes it, and buries what it does not name any more. A repair may say of
// a block that it was found in other contents than it was stored in; require holds them to be those of now.
func (t *transaction) result(group, was *Group, own, used map[block.Address]bool, isRepair bool) error {
	if err := group.Check(); err != nil {
		return fmt.Errorf("%w: %w", err, ErrBadChange)
	}
	before := map[block.Address]block.Incarnation{}
	if was != nil {
		before = was.Addresses()
	}
	after := group.Addresses()
	for address, incarnation := range after {
		old, kept := before[address]
		switch {
		case kept && old != incarnation && !isRepair:
			return fmt.Errorf("block %s was stored in incarnation %q and is now said to be of %q: %w", address, old, incarnation, ErrBadChange)
		case kept:
		case !own[address]:
			return fmt.Errorf("block %s was not announced by attempt %s: %w", address, t.attempt.stamp, ErrBadChange)
		default:
			used[address] = true
		}
	}
	var dead []block.Address
	for address := range before {
		if _, kept := after[address]; !kept {
			dead = append(dead, address)
		}
	}
	schema.SortAddresses(dead)
	t.results[group.ID] = group
	t.writes = append(t.writes, kv.Write{Key: schema.GroupKey(group.ID), Value: codec.Encode(group)})
	t.writes = append(t.writes, t.attempt.ledger.graves.bury(dead, causeSuperseded, group.Packed)...)
	return nil
}

// require demands that the stores under slots (nil: all) of group have not lost their contents.
func (t *transaction) require(group *Group, slots []int) {
	for slot, items := range group.Slots {
		if slots != nil && !slices.Contains(slots, slot) {
			continue
		}
		for _, item := range items {
			if want, seen := t.whole[item.Node]; seen && want != item.Incarnation {
				t.violate(StaleDetail{Violation: ViolationWhole, Group: group.ID, Node: item.Node})
				continue
			}
			t.whole[item.Node] = item.Incarnation
			if now := t.values[schema.IncarnationKey(item.Node)]; now == nil || string(now) != string(item.Incarnation) {
				t.violate(StaleDetail{Violation: ViolationWhole, Group: group.ID, Node: item.Node})
			}
		}
	}
}

// requireWhole puts the demands of require into the transaction, so that a loss between reading and writing is seen. It fails with
// ErrStale if these, or what was demanded before, do not hold.
func (t *transaction) requireWhole() error {
	nodes := make([]block.NodeID, 0, len(t.whole))
	for node := range t.whole {
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	for _, node := range nodes {
		t.checks = append(t.checks, kv.Check{Key: schema.IncarnationKey(node), Value: []byte(t.whole[node])})
	}
	if len(t.violated) > 0 {
		return &StaleError{Details: t.violated}
	}
	return nil
}

// expect holds objects that the change leaves as they are to the revisions that they must have.
func (t *transaction) expect(change *Change) error {
	changed := map[string]bool{}
	for i := range change.Put {
		changed[change.Put[i].Key] = true
	}
	for _, key := range change.Delete {
		changed[key] = true
	}
	for key := range change.IfRevision {
		if changed[key] {
			continue
		}
		record := schema.ObjectKey(key)
		var is Object
		if raw := t.values[record]; raw != nil {
			var err error
			if is, err = codec.Decode[Object](record, raw); err != nil {
				return err
			}
		}
		t.matches(change, key, &is)
		t.checks = append(t.checks, kv.Check{Key: record, Value: t.values[record]})
	}
	return nil
}

// matches reports whether an object has the revision that it must have, if there is one.
func (t *transaction) matches(change *Change, key string, is *Object) bool {
	want, conditional := change.IfRevision[key]
	if !conditional || want == revisionAt(is, t.attempt.ledger.now()) {
		return true
	}
	t.violate(StaleDetail{Violation: ViolationRevision, Key: key})
	return false
}

// remove takes objects out.
func (t *transaction) remove(change *Change) error {
	for _, key := range change.Delete {
		record := schema.ObjectKey(key)
		raw := t.values[record]
		t.checks = append(t.checks, kv.Check{Key: record, Value: raw})
		if raw == nil {
			t.matches(change, key, &Object{})
			continue
		}
		was, err := codec.DecodeToChange[Object](record, raw)
		if err != nil {
			return err
		}
		if !t.matches(change, key, &was) {
			continue
		}
		t.lives.Add(t.hold(key, was.Extents), -1)
		t.writes = append(t.writes, kv.Write{Key: record, Kind: kv.Remove})
		t.writes = append(t.writes, schema.ExpiryWrites(&was, nil)...)
		t.writes = append(t.writes, schema.DropWrites(key, was.Earlier)...)
		t.above = max(t.above, was.Newest())
	}
	return nil
}

// put stores objects and drops the extents found in this transaction.
func (t *transaction) put(change *Change) error {
	for i := range change.Put {
		object := change.Put[i]
		object.Revision = t.attempt.stamp
		key := schema.ObjectKey(object.Key)
		raw := t.values[key]
		var was Object
		if raw != nil {
			var err error
			if was, err = codec.DecodeToChange[Object](key, raw); err != nil {
				return err
			}
		}
		if !t.matches(change, object.Key, &was) {
			continue
		}
		if below, err := t.isBelow(&was); err != nil {
			return err
		} else if below {
			t.violate(StaleDetail{Violation: ViolationAhead, Key: object.Key})
			continue
		}
		if err := t.place(object.Key, object.Extents[len(t.joined):], nil); err != nil {
			return err
		}
		isLost, err := t.keep(&object, &was)
		if err != nil {
			return err
		}
		if isLost {
			t.replace(raw, &was, t.hold(object.Key, was.Extents), &object)
		} else {
			t.replace(raw, &was, nil, &object)
		}
		if object.Revision.Compare(was.Revision) < 0 { // it was put meanwhile, by an attempt that was announced later
			t.above = max(t.above, was.Newest())
		}
	}
	return nil
}

// isBelow reports whether an attempt that was announced ahead has a stamp below that of an object, or below one that was taken out of
// sight since. Where there is no object the floor must stay until the commit, as one may be put and deleted in between.
func (t *transaction) isBelow(was *Object) (bool, error) {
	if !t.attempt.ahead {
		return false, nil
	}
	floor, err := codec.DecodeCount(schema.KeyFloor, t.values[schema.KeyFloor])
	if was.Key == "" && !t.floorStays {
		t.floorStays = true
		t.checks = append(t.checks, kv.Check{Key: schema.KeyFloor, Value: t.values[schema.KeyFloor]})
	}
	return max(was.Newest(), uint64(floor)) >= t.attempt.stamp.Sequence, err
}

// update changes an object whose extents stay.
func (t *transaction) update(change *Change) error {
	if change.Update == nil {
		return nil
	}
	was := change.Update.Snapshot
	if as, err := t.asRead(was); err != nil {
		return err
	} else if !as {
		t.violate(was.stale())
		return nil
	}
	object, err := resize(was.Object, change.Update.Size)
	if err != nil {
		return err
	}
	if group := was.last(); group != nil && group.IsDissolved() && object.Size > was.Object.Size {
		return fmt.Errorf("object %q: group %s was dissolved, in which it would grow: %w", object.Key, group.ID, ErrBadChange)
	}
	for _, id := range groupsOf(object.Extents, 0, object.Size) {
		if group := t.results[id]; group != nil {
			if err := group.CheckExtents(object.Extents); err != nil {
				return fmt.Errorf("object %q: %w: %w", object.Key, err, ErrBadChange)
			}
		}
	}
	object.Revision, object.Checksum = t.attempt.stamp, 0
	object.Metadata = block.WithoutDigests(object.Metadata)
	if change.Update.Modified != 0 {
		object.Modified = change.Update.Modified
	}
	t.replace(was.object, &was.Object, was.Object.Extents, &object)
	return nil
}

// move gives objects other extents under the same revision.
func (t *transaction) move(change *Change) error {
	var changed []StaleDetail
	for i := range change.Move {
		was := change.Move[i].Snapshot
		if as, err := t.asRead(was); err != nil {
			return err
		} else if !as {
			changed = append(changed, was.stale())
			continue
		}
		object := was.Object
		object.Extents = change.Move[i].Extents
		object.Scheme = cmp.Or(change.Move[i].Scheme, object.Scheme)
		object.Class = cmp.Or(change.Move[i].Class, object.Class)
		if err := t.place(object.Key, object.Extents[len(t.joined):], was.Object.Extents); err != nil {
			return err
		}
		t.replace(was.object, &was.Object, t.hold(object.Key, was.Object.Extents), &object)
	}
	if !change.LeaveOut || len(changed) == len(change.Move) {
		t.violated = append(t.violated, changed...)
	}
	return nil
}

// asRead reports whether an object that is to be changed is as it was read.
func (t *transaction) asRead(was *Snapshot) (bool, error) {
	key := schema.ObjectKey(was.Object.Key)
	if bytes.Equal(t.values[key], was.object) {
		_, err := codec.DecodeToChange[Object](key, was.object)
		return err == nil, err
	}
	return false, nil
}

// place checks that extents lie in groups this change creates or appends to, or are among those the object had.
func (t *transaction) place(key string, extents, kept []Extent) error {
	for _, extent := range extents {
		if slices.Contains(kept, extent) {
			continue
		}
		group := t.results[extent.Group]
		if group == nil {
			if len(t.violated) > 0 {
				continue // the group's own condition failed already
			}
			return fmt.Errorf("object %q is put into group %s, which the change neither creates nor changes: %w", key, extent.Group, ErrBadChange)
		}
		if !t.open[group.ID] {
			t.violate(StaleDetail{Violation: ViolationSealed, Group: group.ID})
		}
		if err := group.CheckExtents([]Extent{extent}); err != nil {
			return fmt.Errorf("object %q: %w: %w", key, err, ErrBadChange)
		}
	}
	return nil
}

// replace writes an object over the record that was read, which loses extents.
func (t *transaction) replace(raw []byte, was *Object, extents []Extent, object *Object) {
	key := schema.ObjectKey(object.Key)
	t.checks = append(t.checks, kv.Check{Key: key, Value: raw})
	t.lives.Add(extents, -1)
	t.lives.Add(object.Extents, 1)
	object.Locate(t.results)
	t.writes = append(t.writes, kv.Write{Key: key, Value: codec.Encode(object)})
	t.writes = append(t.writes, schema.ExpiryWrites(was, object)...)
}

// count writes the live counts.
func (t *transaction) count() {
	for id := range t.created {
		live := t.lives[id]
		t.writes = append(t.writes, kv.Write{Key: schema.LiveKey(id), Kind: kv.Count, Add: live.Extents})
		if t.results[id].Packed {
			t.writes = append(t.writes, kv.Write{Key: schema.BytesKey(id), Kind: kv.Count, Add: live.Bytes})
		}
		if live.Extents == 0 {
			t.writes = append(t.writes, kv.Write{Key: schema.FreeableKey(id), Value: []byte{}})
		}
		delete(t.lives, id)
	}
	t.writes = append(t.writes, t.lives.Writes()...)
}

func (t *transaction) finish() error {
	raise, writes, err := t.attempt.ledger.raise(t.values[schema.KeyFloor], t.above)
	if err != nil {
		return err
	}
	t.checks, t.writes = append(t.checks, raise...), append(t.writes, writes...)
	t.writes = append(t.writes, t.attempt.ledger.end(&t.intent, IntentCommitted)...)
	return nil
}

package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// auditor compares the records with each other and with what stores hold, which matters most after a catalog was lost and
// rebuilt, or restored from an old copy.
type auditor struct{ *records }

// auditPasses bounds how often Audit looks again at a catalog that keeps changing.
const auditPasses = 8

// Audit checks the invariants of the protocol (PROTOCOL section 3) that the records alone can show: live counts equal
// the extents objects and pieces have, no grave and no active attempt names a live block, every group is well-formed and on
// distinct nodes, every object's extents add up to its size, overlap nobody's, and lie inside groups that exist, an
// active attempt has the pieces that it has committed, and every group of live count 0 is noted for Free. It returns every
// violation, joined, as ErrCorrupt.
//
// It holds all records in memory. While others write, it believes a violation only when two passes in a row saw the
// same records.
func (a *auditor) Audit(ctx context.Context) error {
	var last uint64
	for pass := range auditPasses {
		picture, sum, err := a.picture(ctx)
		if err != nil {
			return fmt.Errorf("auditing the catalog: %w", err)
		}
		violations := picture.violations()
		if len(violations) == 0 {
			return nil
		}
		if pass > 0 && sum == last {
			return fmt.Errorf("auditing the catalog: %w: %w", ErrCorrupt, errors.Join(violations...))
		}
		last = sum
	}
	return fmt.Errorf("auditing the catalog: it changes too fast to tell: pause the writers and try again")
}

// picture is everything an audit looks at.
type picture struct {
	drawn     func(block.Stamp) bool // whether a stamp is one that was drawn
	objects   []Object
	groups    map[block.GroupID]*Group
	lives     map[block.GroupID]int64
	bytes     map[block.GroupID]int64
	freeable  map[block.GroupID]bool
	intents   []Intent
	pieces    map[string]schema.Piece // by the keys of their records
	graves    []block.Address
	malformed []error
}

func newPicture(drawn func(block.Stamp) bool) *picture {
	return &picture{
		drawn: drawn, groups: map[block.GroupID]*Group{}, lives: map[block.GroupID]int64{}, bytes: map[block.GroupID]int64{},
		freeable: map[block.GroupID]bool{}, pieces: map[string]schema.Piece{},
	}
}

func (a *auditor) picture(ctx context.Context) (*picture, uint64, error) {
	drawn, err := a.drawn(ctx)
	if err != nil {
		return nil, 0, err
	}
	floor, err := a.number(ctx, schema.KeyFloor)
	if err != nil {
		return nil, 0, err
	}
	p := newPicture(func(stamp block.Stamp) bool { return stamp.Sequence < floor || drawn.has(stamp) })
	sum := fnv.New64a()
	takers := []struct {
		prefix string
		take   func(kv.Record) error
	}{
		{schema.PrefixObject, p.takeObject}, {schema.PrefixGroup, p.takeGroup}, {schema.PrefixLive, p.takeLive},
		{schema.PrefixBytes, p.takeBytes}, {schema.PrefixFreeable, p.takeFreeable}, {schema.PrefixIntent, p.takeIntent},
		{schema.PrefixPiece, p.takePiece},
		{schema.PrefixGrave, p.takeGrave},
	}
	for _, taker := range takers {
		err := a.each(ctx, taker.prefix, func(record kv.Record) error {
			fmt.Fprintf(sum, "%q=%q\n", record.Key, record.Value)
			if err := taker.take(record); err != nil {
				p.malformed = append(p.malformed, err)
			}
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
	}
	return p, sum.Sum64(), nil
}

func (p *picture) takeObject(record kv.Record) error {
	object, err := codec.Decode[Object](record.Key, record.Value)
	if err == nil && schema.ObjectKey(object.Key) != record.Key {
		err = fmt.Errorf("record %q holds object %q", record.Key, object.Key)
	}
	p.objects = append(p.objects, object)
	return err
}

func (p *picture) takeGroup(record kv.Record) error {
	group, err := codec.Decode[Group](record.Key, record.Value)
	if err != nil {
		return err
	}
	if schema.GroupKey(group.ID) != record.Key {
		return fmt.Errorf("record %q holds group %s", record.Key, group.ID)
	}
	p.groups[group.ID] = &group
	return nil
}

func (p *picture) takeLive(record kv.Record) error {
	id, err := block.ParseGroupID(strings.TrimPrefix(record.Key, schema.PrefixLive))
	if err != nil {
		return err
	}
	p.lives[id], err = codec.DecodeCount(record.Key, record.Value)
	return err
}

func (p *picture) takeBytes(record kv.Record) error {
	id, err := block.ParseGroupID(strings.TrimPrefix(record.Key, schema.PrefixBytes))
	if err != nil {
		return err
	}
	p.bytes[id], err = codec.DecodeCount(record.Key, record.Value)
	return err
}

func (p *picture) takeFreeable(record kv.Record) error {
	id, err := block.ParseGroupID(strings.TrimPrefix(record.Key, schema.PrefixFreeable))
	p.freeable[id] = true
	return err
}

func (p *picture) takeIntent(record kv.Record) error {
	intent, err := codec.Decode[Intent](record.Key, record.Value)
	if err == nil && (schema.IntentKey(intent.Stamp) != record.Key || intent.State != IntentActive) {
		err = fmt.Errorf("record %q holds the intent of %s in state %s", record.Key, intent.Stamp, intent.State)
	}
	p.intents = append(p.intents, intent)
	return err
}

func (p *picture) takePiece(record kv.Record) (err error) {
	p.pieces[record.Key], err = codec.Decode[schema.Piece](record.Key, record.Value)
	return err
}

func (p *picture) takeGrave(record kv.Record) error {
	address, err := schema.AddressOfGrave(record.Key)
	p.graves = append(p.graves, address)
	return err
}

func (p *picture) violations() []error {
	violations := slices.Clone(p.malformed)
	add := func(format string, arguments ...any) {
		violations = append(violations, fmt.Errorf(format, arguments...))
	}

	named := map[block.Address]bool{}
	for id, group := range p.groups {
		if err := group.Check(); err != nil {
			add("%w", err)
		}
		for _, stamp := range []block.Stamp{id.Stamp, group.Generation, group.Epoch} {
			if !p.drawn(stamp) {
				add("group %s: stamp %s was never drawn", id, stamp)
			}
		}
		for address := range group.Addresses() {
			named[address] = true
		}
		if _, counted := p.lives[id]; !counted {
			add("group %s has no live count", id)
		}
	}
	for _, address := range p.graves {
		if named[address] {
			add("grave %s is a live block", address)
		}
	}
	for i := range p.intents {
		for _, address := range p.intents[i].Addresses() {
			if named[address] {
				add("active attempt %s announces the live block %s", p.intents[i].Stamp, address)
			}
		}
		for at := range p.intents[i].Pieces {
			if _, there := p.pieces[schema.PieceKey(p.intents[i].Stamp.String(), at)]; !there {
				add("active attempt %s has lost its piece %d", p.intents[i].Stamp, at)
			}
		}
	}
	return append(violations, p.extentViolations()...)
}

// count adds an extent that an object or a piece has to the counts of its group.
func (p *picture) count(extent Extent) {
	p.lives[extent.Group]++
	if extent.Column != WholeGroup {
		p.bytes[extent.Group] += extent.Length
	}
}

// countWrites writes the counts of a group, as they are in the picture.
func (p *picture) countWrites(id block.GroupID) []kv.Write {
	writes := []kv.Write{{Key: schema.LiveKey(id), Kind: kv.Count, Add: p.lives[id]}}
	if p.groups[id].Packed {
		writes = append(writes, kv.Write{Key: schema.BytesKey(id), Kind: kv.Count, Add: p.bytes[id]})
	}
	return writes
}

// place is an extent and whose it is, an object's or a piece's.
type place struct {
	holder string
	extent Extent
}

func (p *picture) extentViolations() (violations []error) {
	add := func(format string, arguments ...any) {
		violations = append(violations, fmt.Errorf(format, arguments...))
	}
	places := map[block.GroupID][]place{}
	lies := func(holder string, extents []Extent) {
		for _, extent := range extents {
			places[extent.Group] = append(places[extent.Group], place{holder, extent})
			group := p.groups[extent.Group]
			if group == nil {
				add("%s lies in group %s, which does not exist", holder, extent.Group)
			} else if err := group.CheckExtents([]Extent{extent}); err != nil {
				add("%s: %w", holder, err)
			}
		}
	}
	for i := range p.objects {
		object := &p.objects[i]
		if err := schema.CheckLengths(object.Key, object.Extents, object.Size); err != nil {
			add("%w", err)
		}
		if !p.drawn(object.Revision) {
			add("object %q: revision %s was never drawn", object.Key, object.Revision)
		}
		lies(fmt.Sprintf("object %q", object.Key), object.Extents)
	}
	for key, piece := range p.pieces {
		lies(fmt.Sprintf("piece %q", key), piece.Extents)
	}
	for id, live := range p.lives {
		if p.groups[id] == nil {
			add("group %s does not exist and has the live count %d", id, live)
		}
		if count := int64(len(places[id])); live != count {
			add("group %s has the live count %d and %d extents", id, live, count)
		}
		if live == 0 && !p.freeable[id] {
			add("group %s has the live count 0 and is not noted for freeing", id)
		}
	}
	for id, counted := range p.bytes {
		bytes := int64(0)
		for _, inside := range places[id] {
			bytes += inside.extent.Length
		}
		if counted >= 0 && counted != bytes { // below 0 it is of a group that a release wrote which did not count
			add("group %s has %d live bytes by its count and %d by its extents", id, counted, bytes)
		}
	}
	for id, inside := range places {
		slices.SortFunc(inside, func(a, b place) int {
			return cmp.Or(cmp.Compare(a.extent.Column, b.extent.Column), cmp.Compare(a.extent.Offset, b.extent.Offset),
				cmp.Compare(a.holder, b.holder))
		})
		for i := 1; i < len(inside); i++ {
			before, after := inside[i-1], inside[i]
			if before.extent.Column == after.extent.Column && before.extent.Offset+before.extent.Length > after.extent.Offset {
				add("group %s: %s and %s overlap at byte %d", id, before.holder, after.holder, after.extent.Offset)
			}
			if inside[0].extent.Column == WholeGroup && after.extent.Column != WholeGroup {
				add("group %s: %s and %s lie in it by different orders", id, inside[0].holder, after.holder)
			}
		}
	}
	return violations
}

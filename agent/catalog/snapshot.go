package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// objects reads objects and groups as they are, one or many, and deletes objects.
type objects struct {
	*records
	decoded decoded
}

// Basis is a record, as it was read, that an attempt is built on: a *Snapshot stands for its object, a *GroupView for
// its group, and an Over for an object that may be any.
type Basis interface {
	basis() kv.Check
	stale() StaleDetail
	newest() uint64 // the stamp of the attempt is above this number
}

// Over is the Basis of an attempt that writes over the object of this key, whatever it is: its stamp is greater than all stamps
// that the record names when the attempt is announced.
type Over string

func (o Over) basis() kv.Check    { return kv.Check{Key: schema.ObjectKey(string(o))} }
func (o Over) stale() StaleDetail { return StaleDetail{Violation: ViolationObject, Key: string(o)} }
func (o Over) newest() uint64     { return 0 }

// Snapshot is one consistent picture of an object and its groups, or some of them. Treat it as immutable.
type Snapshot struct {
	Object Object
	Groups map[block.GroupID]*Group

	object []byte
	views  map[block.GroupID]*GroupView
	shared []*GroupView // in place of views, of one that is only read
}

// GroupView is a group as it was read. Treat it as immutable.
type GroupView struct {
	Group
	Live int64 // extents that objects have in it, at the same instant

	raw []byte
}

// View returns the group as the snapshot has it, to base a GroupChange on; nil if it has not.
func (s *Snapshot) View(id block.GroupID) *GroupView {
	for _, view := range s.shared {
		if view.ID == id {
			return view
		}
	}
	return s.views[id]
}

func (s *Snapshot) basis() kv.Check {
	return kv.Check{Key: schema.ObjectKey(s.Object.Key), Value: s.object}
}
func (s *Snapshot) stale() StaleDetail {
	return StaleDetail{Violation: ViolationObject, Key: s.Object.Key}
}

func (s *Snapshot) newest() uint64 { return s.Object.Newest() }

func (v *GroupView) basis() kv.Check    { return kv.Check{Key: schema.GroupKey(v.ID), Value: v.raw} }
func (v *GroupView) stale() StaleDetail { return StaleDetail{Violation: ViolationGroup, Group: v.ID} }
func (v *GroupView) newest() uint64     { return v.Generation.Sequence }

// Snapshot reads an object and the records of all its groups as of one instant (rule 14). ErrNoObject if there is none.
func (o *objects) Snapshot(ctx context.Context, key string) (*Snapshot, error) {
	return o.SnapshotRange(ctx, key, 0, math.MaxInt64)
}

// SnapshotRange is Snapshot with the records of those groups alone that bytes [offset, offset+length) of the object lie in.
func (o *objects) SnapshotRange(ctx context.Context, key string, offset, length int64) (*Snapshot, error) {
	values, err := o.engine.Read(ctx, schema.ObjectKey(key))
	if err != nil {
		return nil, fmt.Errorf("reading object %q: %w", key, err)
	}
	return o.snapshot(ctx, key, values[0], true, offset, length)
}

// Again is SnapshotRange of an object that was read before: of whatever it is now. Where its record is as it was, that is one read.
func (o *objects) Again(ctx context.Context, seen *Snapshot, offset, length int64) (*Snapshot, error) {
	return o.snapshot(ctx, seen.Object.Key, seen.object, false, offset, length)
}

// snapshot reads the groups of a range as of one instant with the object, whose record was raw: within this call, if it is fresh.
func (o *objects) snapshot(ctx context.Context, key string, raw []byte, fresh bool, offset, length int64) (*Snapshot, error) {
	name := schema.ObjectKey(key)
	var further []block.GroupID // that columns of dissolved groups lie in
	for {
		if raw == nil {
			return nil, fmt.Errorf("object %q: %w", key, ErrNoObject)
		}
		object, err := codec.Decode[Object](name, raw)
		if err != nil {
			return nil, err
		}
		snapshot := &Snapshot{Object: object, Groups: map[block.GroupID]*Group{}, object: raw, views: map[block.GroupID]*GroupView{}}
		keys, ids := []string{name}, groupsOf(object.Extents, offset, length)
		named := len(ids)
		ids = append(ids, further...)
		for _, id := range ids {
			keys = append(keys, schema.GroupKey(id), schema.LiveKey(id))
		}
		if fresh && len(ids) == 0 {
			return snapshot, nil
		}
		values, err := o.engine.Read(ctx, keys...)
		if err != nil {
			return nil, fmt.Errorf("reading the groups of object %q: %w", key, err)
		}
		if !bytes.Equal(raw, values[0]) {
			raw, fresh, further = values[0], true, nil // the object moved between the two reads
			continue
		}
		for i, id := range ids {
			view, err := viewGroup(id, values[1+2*i], values[2+2*i])
			if errors.Is(err, ErrNoGroup) && i >= named {
				continue
			}
			if errors.Is(err, ErrNoGroup) {
				return nil, fmt.Errorf("object %q has an extent in group %s, which does not exist: %w", key, id, ErrCorrupt)
			}
			if err != nil {
				return nil, err
			}
			snapshot.views[id], snapshot.Groups[id] = view, &view.Group
		}
		lacking, err := lacking(snapshot.Groups, ids)
		if err != nil {
			return nil, fmt.Errorf("object %q: %w", key, err)
		}
		if len(lacking) == 0 {
			return snapshot, nil
		}
		further = append(further, lacking...)
	}
}

// lacking returns the groups that columns of dissolved ones lie in and that are not among groups, each once. asked are those whose records
// were read: there has to be one of each that a column lies in.
func lacking(groups map[block.GroupID]*Group, asked []block.GroupID) (ids []block.GroupID, err error) {
	for _, group := range groups {
		for _, id := range group.LiesIn() {
			switch {
			case groups[id] != nil || slices.Contains(ids, id):
			case slices.Contains(asked, id):
				return nil, fmt.Errorf("columns of group %s lie in group %s, which does not exist: %w", group.ID, id, ErrCorrupt)
			default:
				ids = append(ids, id)
			}
		}
	}
	slices.SortFunc(ids, func(a, b block.GroupID) int { return strings.Compare(a.String(), b.String()) })
	return ids, nil
}

// Where returns the column in which a column of a group of the object lies, its own unless the group was dissolved, and the group of that.
func (s *Snapshot) Where(id block.GroupID, column int) (Column, *Group, error) {
	return schema.Where(s.Groups, Column{Group: id, Column: column})
}

// Named returns the groups of the snapshot that extents of the object name.
func (s *Snapshot) Named() (groups []*GroupView) {
	for _, id := range groupsOf(s.Object.Extents, 0, math.MaxInt64) {
		if view := s.View(id); view != nil {
			groups = append(groups, view)
		}
	}
	return groups
}

// last returns the group that the object ends in; nil where it has none, or the snapshot has it not.
func (s *Snapshot) last() *Group {
	if len(s.Object.Extents) == 0 {
		return nil
	}
	return s.Groups[s.Object.Extents[len(s.Object.Extents)-1].Group]
}

// Group reads one group. ErrNoGroup if there is none.
func (o *objects) Group(ctx context.Context, id block.GroupID) (*GroupView, error) {
	values, err := o.engine.Read(ctx, schema.GroupKey(id), schema.LiveKey(id))
	if err != nil {
		return nil, fmt.Errorf("reading group %s: %w", id, err)
	}
	return viewGroup(id, values[0], values[1])
}

// ListObjects returns up to limit objects whose key begins with prefix and is greater than after, ascending by bytes, without earlier
// versions.
func (o *objects) ListObjects(ctx context.Context, prefix, after string, limit int) (list []Object, err error) {
	for {
		wanted := limit - len(list)
		page, err := o.list(ctx, prefix, after, wanted)
		if err != nil {
			return nil, err
		}
		isLast := len(page) < wanted
		list = append(list, slices.DeleteFunc(page, func(object Object) bool {
			if is := block.IsEarlierKey(object.Key); is {
				after = block.AfterEarlier
				return true
			}
			return false
		})...)
		if isLast || len(list) == limit {
			return list, nil
		}
	}
}

// list is ListObjects with earlier versions.
func (o *objects) list(ctx context.Context, prefix, after string, limit int) ([]Object, error) {
	records, err := o.engine.Scan(ctx, schema.ObjectKey(prefix), schema.ObjectKey(after), limit)
	if err != nil {
		return nil, fmt.Errorf("listing objects: %w", err)
	}
	return codec.DecodeAll[Object](records)
}

// ListGroups returns up to limit groups after the given one that have columns of their own, in the order they were created. Others, and
// groups that are freed meanwhile, are left out, so a page may be shorter than limit; only an empty page is the end.
func (o *objects) ListGroups(ctx context.Context, after block.GroupID, limit int) ([]GroupView, error) {
	for {
		records, err := o.engine.Scan(ctx, schema.PrefixGroup, schema.GroupKey(after), limit)
		if err != nil {
			return nil, fmt.Errorf("listing groups: %w", err)
		}
		if len(records) == 0 {
			return nil, nil
		}
		views, err := o.viewGroups(ctx, records)
		if err != nil || len(views) > 0 {
			return views, err
		}
		// All of them were freed in between, or lie in others: look further.
		if after, err = block.ParseGroupID(records[len(records)-1].Key[len(schema.PrefixGroup):]); err != nil {
			return nil, fmt.Errorf("listing groups: %w: %w", ErrCorrupt, err)
		}
	}
}

func (o *objects) viewGroups(ctx context.Context, records []kv.Record) ([]GroupView, error) {
	keys := make([]string, 0, 2*len(records))
	ids := make([]block.GroupID, 0, len(records))
	for _, record := range records {
		id, err := block.ParseGroupID(record.Key[len(schema.PrefixGroup):])
		if err != nil {
			return nil, fmt.Errorf("listing groups: %w: %w", ErrCorrupt, err)
		}
		ids = append(ids, id)
		keys = append(keys, schema.GroupKey(id), schema.LiveKey(id))
	}
	values, err := o.engine.Read(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("listing groups: %w", err)
	}
	views := make([]GroupView, 0, len(ids))
	for i, id := range ids {
		view, err := viewGroup(id, values[2*i], values[2*i+1])
		if errors.Is(err, ErrNoGroup) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !view.IsDissolved() {
			views = append(views, *view)
		}
	}
	return views, nil
}

func viewGroup(id block.GroupID, raw, live []byte) (*GroupView, error) {
	if raw == nil {
		return nil, fmt.Errorf("group %s: %w", id, ErrNoGroup)
	}
	group, err := codec.Decode[Group](schema.GroupKey(id), raw)
	if err != nil {
		return nil, err
	}
	count, err := codec.DecodeCount(schema.LiveKey(id), live)
	if err != nil {
		return nil, err
	}
	return &GroupView{Group: group, Live: count, raw: raw}, nil
}

// groupsOf returns the groups that bytes [offset, offset+length) lie in, each once, in order of first appearance.
func groupsOf(extents []Extent, offset, length int64) []block.GroupID {
	seen, at := map[block.GroupID]bool{}, int64(0)
	var ids []block.GroupID
	for _, extent := range extents {
		if at-offset < length && at+extent.Length > offset && !seen[extent.Group] {
			seen[extent.Group] = true
			ids = append(ids, extent.Group)
		}
		at += extent.Length
	}
	return ids
}

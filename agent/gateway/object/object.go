package object

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/member"
)

func publicObject(object *catalog.Object) api.Object {
	key := object.Key
	if of, _, is := block.OfEarlierKey(key); is {
		key = of
	}
	public := api.Object{
		Key: api.PrintableKey(key), Key64: api.EncodeKey(key), Class: object.Class, Scheme: object.Scheme, Size: object.Size,
		Revision: object.Revision, Modified: time.UnixMilli(object.Modified).UTC(), Metadata: object.Metadata,
		Earlier: object.Earlier,
	}
	if object.Expires != 0 {
		public.Expires = time.UnixMilli(object.Expires).UTC()
	}
	return public
}

// schemeOf is the scheme an object is under: that of the groups that its bytes lie in, or "mixed" in the middle of a transition.
func schemeOf(object *catalog.Object, groups map[block.GroupID]*catalog.Group) string {
	scheme := ""
	for _, extent := range object.Extents {
		for _, group := range holders(groups, extent.Group) {
			switch {
			case scheme == "":
				scheme = group.Scheme
			case scheme != group.Scheme:
				return "mixed"
			}
		}
	}
	if scheme == "" {
		return object.Scheme
	}
	return scheme
}

// holders are the groups that have the columns of a group, itself unless it was dissolved, as far as their records are at hand.
func holders(groups map[block.GroupID]*catalog.Group, id block.GroupID) (list []*catalog.Group) {
	group := groups[id]
	switch {
	case group == nil:
	case !group.IsDissolved():
		list = append(list, group)
	default:
		for _, in := range group.LiesIn() {
			for _, holder := range holders(groups, in) {
				if !slices.Contains(list, holder) {
					list = append(list, holder)
				}
			}
		}
	}
	return list
}

// look reads an object and the records of the groups that a range lies in. ErrNoObject if there is none, or it has expired.
func (o *Objects) look(ctx context.Context, key string, offset, length int64) (*catalog.Snapshot, error) {
	snapshot, err := o.catalog.SnapshotRange(ctx, key, offset, length)
	if err == nil && o.catalog.HasExpired(&snapshot.Object) {
		return nil, errExpired(key)
	}
	return snapshot, err
}

func errExpired(key string) error {
	return fmt.Errorf("object %q has expired: %w", key, catalog.ErrNoObject)
}

// Stat describes an object and the groups that hold it, block by block. Nodes are asked for the blocks' headers and
// lengths; damage inside a block is found by StatDeep.
func (o *Objects) Stat(ctx context.Context, key string) (api.Stat, error) {
	return o.stat(ctx, key, false)
}

// StatDeep is Stat with every block read and checked whole at its node.
func (o *Objects) StatDeep(ctx context.Context, key string) (api.Stat, error) {
	return o.stat(ctx, key, true)
}

func (o *Objects) stat(ctx context.Context, key string, deep bool) (api.Stat, error) {
	if err := api.CheckKey(key); err != nil {
		return api.Stat{}, err
	}
	snapshot, err := o.look(ctx, key, 0, math.MaxInt64)
	if err != nil {
		return api.Stat{}, err
	}
	stat := api.Stat{Object: publicObject(&snapshot.Object), Groups: []api.GroupStat{}}
	for i, extent := range snapshot.Object.Extents {
		bytes := map[block.GroupID]int64{extent.Group: extent.Length}
		if snapshot.Groups[extent.Group].IsDissolved() {
			alone := *snapshot
			alone.Object.Extents = snapshot.Object.Extents[i : i+1]
			for _, f := range fragments(&alone, 0, extent.Length) {
				bytes[f.group] += int64(f.length)
			}
		}
		for _, holder := range holders(snapshot.Groups, extent.Group) {
			group, err := statGroup(ctx, o, snapshot.View(holder.ID), deep)
			if err != nil {
				return api.Stat{}, err
			}
			group.Bytes = bytes[holder.ID]
			stat.Groups = append(stat.Groups, group)
		}
	}
	stat.Scheme = schemeOf(&snapshot.Object, snapshot.Groups)
	return stat, nil
}

// statGroup describes a group, block by block.
func statGroup(ctx context.Context, o *Objects, view *catalog.GroupView, deep bool) (api.GroupStat, error) {
	code, err := o.groups.CodeOf(&view.Group)
	if err != nil {
		return api.GroupStat{}, err
	}
	states, err := o.groups.SlotStates(ctx, &view.Group, deep)
	if err != nil {
		return api.GroupStat{}, err
	}
	group := api.GroupStat{
		ID: view.ID, Epoch: view.Epoch, Scheme: view.Scheme, Ladder: view.Ladder, Mode: view.Mode, Rows: code.Layout.Rows,
		Columns: view.Columns, CellBytes: view.CellBytes, Packed: view.Packed, Live: view.Live, Heat: o.heat.HeatNow(&view.Group),
	}
	for slot, items := range view.Slots {
		node, _ := view.Place(slot)
		role := "data"
		if slot >= view.Columns {
			role = "parity"
		}
		group.Slots = append(group.Slots, api.SlotStat{Slot: slot, Role: role, Node: node, Blocks: len(items), State: states[slot]})
	}
	return group, nil
}

// Find describes an object without looking at its groups; nil where there is none. Its scheme is that which was asked for last.
func (o *Objects) Find(ctx context.Context, key string) (*api.Object, error) {
	if err := api.CheckKey(key); err != nil {
		return nil, err
	}
	snapshot, err := o.look(ctx, key, 0, 0)
	if errors.Is(err, catalog.ErrNoObject) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	public := publicObject(&snapshot.Object)
	return &public, nil
}

// FindEarlier is Find of an earlier version of an object, as OpenRevision reads it.
func FindEarlier(ctx context.Context, o *Objects, key string, revision block.Stamp) (*api.Object, error) {
	if err := api.CheckKey(key); err != nil {
		return nil, err
	}
	snapshot, err := o.look(ctx, block.EarlierKey(key, revision), 0, 0)
	if errors.Is(err, catalog.ErrNoObject) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	public := publicObject(&snapshot.Object)
	return &public, nil
}

// Name is the key of an object, and its class.
type Name struct{ Key, Class string }

// Names returns up to limit objects whose key begins with prefix and comes after the given one, in the order of their keys.
func (o *Objects) Names(ctx context.Context, prefix, after string, limit int) ([]Name, error) {
	objects, err := listed(ctx, o, prefix, after, limit)
	if err != nil {
		return nil, fmt.Errorf("listing objects: %w", err)
	}
	names := make([]Name, len(objects))
	for i := range objects {
		names[i] = Name{objects[i].Key, objects[i].Class}
	}
	return names, nil
}

// Records returns up to limit objects whose key begins with prefix and comes after the given one, in the order of their keys, without
// looking at their groups, as Find does.
func Records(ctx context.Context, o *Objects, prefix, after string, limit int) ([]api.Object, error) {
	objects, err := listed(ctx, o, prefix, after, limit)
	if err != nil {
		return nil, fmt.Errorf("listing objects: %w", err)
	}
	public := make([]api.Object, len(objects))
	for i := range objects {
		public[i] = publicObject(&objects[i])
	}
	return public, nil
}

// List returns one page of the objects whose key begins with prefix and comes after the given one.
func (o *Objects) List(ctx context.Context, prefix, after string, limit int) (api.ObjectList, error) {
	objects, err := listed(ctx, o, prefix, after, limit+1) // one more says whether this page is the last
	if err != nil {
		return api.ObjectList{}, fmt.Errorf("listing objects: %w", err)
	}
	more := len(objects) > limit
	objects = objects[:min(limit, len(objects))]
	list := api.ObjectList{Objects: make([]api.Object, 0, len(objects))}
	groups := map[block.GroupID]*catalog.Group{}
	for i := range objects {
		for _, extent := range objects[i].Extents {
			if _, seen := groups[extent.Group]; !seen {
				addGroup(ctx, o, groups, extent.Group)
			}
		}
		public := publicObject(&objects[i])
		public.Scheme = schemeOf(&objects[i], groups)
		list.Objects = append(list.Objects, public)
	}
	if more {
		list.Next = api.EncodeKey(objects[len(objects)-1].Key)
	}
	return list, nil
}

// addGroup adds the record of a group, and of those that its columns lie in, to others; nil where it cannot be had.
func addGroup(ctx context.Context, o *Objects, groups map[block.GroupID]*catalog.Group, id block.GroupID) {
	groups[id] = nil
	view, err := o.catalog.Group(ctx, id)
	if err != nil {
		return
	}
	groups[id] = &view.Group
	for _, in := range view.LiesIn() {
		if _, seen := groups[in]; !seen {
			addGroup(ctx, o, groups, in)
		}
	}
}

// listed returns up to limit objects that have not expired.
func listed(ctx context.Context, o *Objects, prefix, after string, limit int) (objects []catalog.Object, err error) {
	for {
		wanted := limit - len(objects)
		page, err := o.catalog.ListObjects(ctx, prefix, after, wanted)
		if err != nil {
			return nil, err
		}
		isLast := len(page) < wanted
		if !isLast {
			after = page[wanted-1].Key
		}
		objects = append(objects, slices.DeleteFunc(page, func(object catalog.Object) bool { return o.catalog.HasExpired(&object) })...)
		if isLast || len(objects) == limit {
			return objects, nil
		}
	}
}

// commit commits what a client asked for, and sees to it that nodes of each of its groups notice if the catalog loses it: also those of
// groups that were committed before, in pieces.
func (o *Objects) commit(ctx context.Context, attempt *catalog.Attempt, change catalog.Change, before ...witnesses) error {
	if err := o.groups.Commit(ctx, attempt, change); err != nil || !o.catalog.MayLose() {
		return err
	}
	for i := range change.NewGroups {
		before = append(before, witnessesOf(&change.NewGroups[i]))
	}
	for i := range change.Groups {
		before = append(before, witnessesOf(&change.Groups[i].Was.Group))
	}
	var work errgroup.Group
	for _, one := range before {
		work.Go(func() error { return member.Witness(ctx, o.agents, one.ids, one.spare) })
	}
	return work.Wait()
}

// witnessDelete has most of the nodes that answer notice if the catalog loses a delete: it has no groups of its own.
func (o *Objects) witnessDelete(ctx context.Context) error {
	var ids []block.NodeID
	for _, target := range o.agents.All() {
		if trusted, _, _ := target.State(); trusted {
			ids = append(ids, target.Node.ID)
		}
	}
	if len(ids) == 0 && o.catalog.MayLose() {
		return fmt.Errorf("%w: the object is deleted, but a crash of the catalog might lose that, and no node answers to take note",
			api.ErrUnknownOutcome)
	}
	return member.Witness(ctx, o.agents, ids, (len(ids)-1)/2)
}

// Delete removes an object. Its blocks are deleted in the background.
func (o *Objects) Delete(ctx context.Context, key string, ifRevision *block.Stamp) error {
	return DeleteOnce(ctx, o, key, ifRevision, api.Request{})
}

// DeleteOnce is Delete by a request that may have been carried out before.
func DeleteOnce(ctx context.Context, o *Objects, key string, ifRevision *block.Stamp, request api.Request) error {
	if err := api.CheckKey(key); err != nil {
		return err
	}
	var err error
	if request.IsZero() {
		_, err = o.catalog.Delete(ctx, key, ifRevision)
	} else {
		_, err = o.catalog.DeleteOnce(ctx, nameOf(request), key, ifRevision)
	}
	if err == nil {
		return o.witnessDelete(ctx)
	}
	switch {
	case errors.Is(err, catalog.ErrOtherRequest):
		return refuseName(request)
	case errors.Is(err, catalog.ErrUnknown):
		return fmt.Errorf("%w: %w", api.ErrUnknownOutcome, err)
	case errors.Is(err, catalog.ErrStale):
		return fmt.Errorf("%w: %w", api.ErrConflict, err)
	}
	return err
}

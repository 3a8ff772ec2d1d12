package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// GroupFill is how much lives in a packed group.
type GroupFill struct {
	GroupSummary
	Live  int64 // extents
	Bytes int64 // of them; below 0 where they were not counted from the beginning: see Inside
}

// PackedGroups walks the groups that small objects share, page by page, with what lives in them. Those in which others lie are not among
// them: what of these is alive they do not say.
func (o *objects) PackedGroups(ctx context.Context) iter.Seq2[[]GroupFill, error] {
	return func(yield func([]GroupFill, error) bool) {
		for page, err := range o.GroupSummaries(ctx, block.GroupID{}) {
			var fills []GroupFill
			if err == nil {
				fills, err = o.fills(ctx, page)
			}
			if !yield(fills, err) || err != nil {
				return
			}
		}
	}
}

func (o *objects) fills(ctx context.Context, page []GroupSummary) ([]GroupFill, error) {
	var fills []GroupFill
	var keys []string
	for i := range page {
		if page[i].Packed && len(page[i].Brought) == 0 {
			fills = append(fills, GroupFill{GroupSummary: page[i]})
			keys = append(keys, schema.LiveKey(page[i].ID), schema.BytesKey(page[i].ID))
		}
	}
	if len(fills) == 0 {
		return nil, nil
	}
	values, err := o.engine.Read(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("reading what lives in groups: %w", err)
	}
	for i := range fills {
		if fills[i].Live, err = codec.DecodeCount(keys[2*i], values[2*i]); err != nil {
			return nil, err
		}
		if fills[i].Bytes, err = codec.DecodeCount(keys[2*i+1], values[2*i+1]); err != nil {
			return nil, err
		}
		if values[2*i+1] == nil {
			fills[i].Bytes = -1
		}
	}
	return fills, nil
}

// Inside are objects that lie in one group, as of one instant with it.
type Inside struct {
	Snapshots []*Snapshot // those of the keys asked for that lie in this group alone, without repetition
	Large     []string    // the keys among them that lie in others too
	All       bool        // nothing else lives in it
}

// Inside reads which of the objects named lie in a group, all as of one instant, so that their bytes may be copied from it
// and moved. Where that is all that lives in a packed group, its count of live bytes is made right, if it was not. ErrNoGroup if there is
// no such group.
func (o *objects) Inside(ctx context.Context, id block.GroupID, names []string) (*Inside, error) {
	keys := []string{schema.GroupKey(id), schema.LiveKey(id), schema.BytesKey(id)}
	for _, name := range names {
		keys = append(keys, schema.ObjectKey(name))
	}
	values, views, err := o.readInside(ctx, id, keys)
	if err != nil {
		return nil, fmt.Errorf("reading the objects in group %s: %w", id, err)
	}
	view := views[id]
	found, extents, size, seen := &Inside{}, int64(0), int64(0), map[string]bool{}
	for i, name := range names {
		raw := values[3+i]
		if raw == nil || seen[name] {
			continue
		}
		seen[name] = true
		object, err := codec.Decode[Object](schema.ObjectKey(name), raw)
		if err != nil {
			return nil, err
		}
		inside := 0
		for _, extent := range object.Extents {
			if extent.Group == id {
				inside, size = inside+1, size+extent.Length
			}
		}
		extents += int64(inside)
		switch {
		case inside > 0 && inside < len(object.Extents):
			found.Large = append(found.Large, name)
		case inside > 0:
			snapshot := &Snapshot{Object: object, object: raw, Groups: map[block.GroupID]*Group{}, views: views}
			for _, view := range views {
				snapshot.Groups[view.ID] = &view.Group
			}
			found.Snapshots = append(found.Snapshots, snapshot)
		}
	}
	found.All = extents == view.Live
	right := codec.EncodeCount(size)
	if !found.All || !view.Packed || bytes.Equal(values[2], right) {
		return found, nil
	}
	// Every change of the bytes changes one of these: a count that is wrong is of a release that did not keep it.
	checks := []kv.Check{{Key: keys[0], Value: values[0]}, {Key: keys[1], Value: values[1]}, {Key: keys[2], Value: values[2]}}
	for _, snapshot := range found.Snapshots {
		checks = append(checks, snapshot.basis())
	}
	if _, err := o.engine.Update(ctx, checks, []kv.Write{{Key: keys[2], Kind: kv.Count, Add: size}}); err != nil {
		return nil, fmt.Errorf("counting the live bytes of group %s: %w", id, err)
	}
	return found, nil
}

// readInside reads the records under some keys, of which the first are that of a group and its live count, and the groups that its columns
// lie in, all as of one instant.
func (o *objects) readInside(ctx context.Context, id block.GroupID, keys []string) ([][]byte, map[block.GroupID]*GroupView, error) {
	ids := []block.GroupID{id}
	for {
		all := slices.Clone(keys)
		for _, further := range ids[1:] {
			all = append(all, schema.GroupKey(further), schema.LiveKey(further))
		}
		values, err := o.engine.Read(ctx, all...)
		if err != nil {
			return nil, nil, err
		}
		views, groups := map[block.GroupID]*GroupView{}, map[block.GroupID]*Group{}
		for i, of := range ids {
			records := values[:2]
			if i > 0 {
				records = values[len(keys)+2*(i-1):]
			}
			view, err := viewGroup(of, records[0], records[1])
			if errors.Is(err, ErrNoGroup) && i > 0 {
				continue
			}
			if err != nil {
				return nil, nil, err
			}
			views[of], groups[of] = view, &view.Group
		}
		lacking, err := lacking(groups, ids)
		if err != nil || len(lacking) == 0 {
			return values, views, err
		}
		ids = append(ids, lacking...)
	}
}

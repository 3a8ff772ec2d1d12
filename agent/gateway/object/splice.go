package object

import (
	"context"
	"fmt"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/arrange"
	"github.com/restripe/restripe/agent/gateway/group"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/agent/wire"
)

// Splice is a new group of small objects that all stay on their nodes.
type Splice struct {
	Columns [][]*catalog.Snapshot // what is in each of the first columns, in its order; the others are empty
	home    []block.NodeID
	fullest int64 // bytes of a column
}

// Snapshots are all objects of the group.
func (s *Splice) Snapshots() (all []*catalog.Snapshot) {
	for _, column := range s.Columns {
		all = append(all, column...)
	}
	return all
}

// Bytes is how many bytes the data columns of the group take.
func (s *Splice) Bytes(class *api.Class) (int64, error) { return columnsBytes(class, s.fullest) }

// Splices distributes small objects, in the order that they are to lie together, over new groups whose columns stay where they are. rest
// are those that have to be written elsewhere.
func (o *Objects) Splices(class *api.Class, snapshots []*catalog.Snapshot) (splices []Splice, rest []*catalog.Snapshot) {
	var local []*catalog.Snapshot
	for _, snapshot := range snapshots {
		if nodeOf(snapshot) == "" {
			rest = append(rest, snapshot)
		} else {
			local = append(local, snapshot)
		}
	}
	width := class.Ladder.Width()
	var homes [][]block.NodeID
	columns := func(nodes []block.NodeID) []block.NodeID {
		home, columns, found := o.agents.Around(class, nodes)
		if !found {
			return nil
		}
		homes = append(homes, home)
		return home[:columns]
	}
	bounds := arrange.Bounds{Columns: width, Bytes: class.GroupBytes / int64(width), Objects: batchObjects / width}
	groups, others := arrange.Splices(local, bounds, nodeOf, func(s *catalog.Snapshot) int64 { return s.Object.Size }, columns)
	for i, shares := range groups {
		splice := Splice{home: homes[i]}
		for _, share := range shares {
			splice.Columns = append(splice.Columns, share.Objects)
			splice.fullest = max(splice.fullest, share.Bytes)
		}
		if all := splice.Snapshots(); namesOf(all) > batchNames {
			rest = append(rest, all...)
		} else {
			splices = append(splices, splice)
		}
	}
	return splices, append(rest, others...)
}

// names is how many bytes the name and metadata of an object have, which are in the manifest of its group.
func names(key string, metadata map[string]string) int { return len(key) + api.MetadataBytes(metadata) }

func namesOf(snapshots []*catalog.Snapshot) (bytes int) {
	for _, snapshot := range snapshots {
		bytes += names(snapshot.Object.Key, snapshot.Object.Metadata)
	}
	return bytes
}

// nodeOf is the node that has all bytes of a small object; "" where that is not one.
func nodeOf(snapshot *catalog.Snapshot) (node block.NodeID) {
	parts, err := partsOf(snapshot)
	if err != nil || len(parts) == 0 {
		return ""
	}
	for i := range parts {
		if parts[i].address.Node != parts[0].address.Node {
			return ""
		}
	}
	return parts[0].address.Node
}

// part is a run of bytes of a small object that lies in one unit of one block.
type part struct {
	address block.Address
	unit    int
	offset  int // in the unit
	length  int
}

// partsOf finds where the bytes of a small object lie, by the records of its snapshot.
func partsOf(snapshot *catalog.Snapshot) (parts []part, err error) {
	object := &snapshot.Object
	if len(object.Extents) != 1 || object.Extents[0].Column == catalog.WholeGroup {
		return nil, fmt.Errorf("object %q is not a small one: it has %d extents", object.Key, len(object.Extents))
	}
	extent := object.Extents[0]
	lies, in, err := snapshot.Where(extent.Group, extent.Column)
	if err != nil {
		return nil, fmt.Errorf("where object %q lies: %w", object.Key, err)
	}
	if lies.Column >= len(in.Slots) {
		return nil, fmt.Errorf("the snapshot of object %q has no column %d of group %s", object.Key, lies.Column, lies.Group)
	}
	cell := int64(in.CellBytes)
	for at, end := extent.Offset, extent.Offset+extent.Length; at < end; {
		unit := int(at / cell)
		item := slices.IndexFunc(in.Slots[lies.Column], func(i catalog.Item) bool { return unit >= i.First && unit < i.First+i.Units })
		if item < 0 {
			return nil, fmt.Errorf("object %q lies in unit %d of column %d of group %s, which is not stored",
				object.Key, unit, lies.Column, lies.Group)
		}
		length := min(end, int64(unit+1)*cell) - at
		parts = append(parts, part{in.Address(lies.Column, in.Slots[lies.Column][item]), unit, int(at % cell), int(length)})
		at += length
	}
	return parts, nil
}

// Splice has the nodes put a new group together, and moves those objects into it that have not changed since their snapshots. Each
// keeps its revision, as the bytes are the same, and the scheme that was asked for last. It returns how many bytes crossed the network.
func (o *Objects) Splice(ctx context.Context, class *api.Class, to stripe.Scheme, splice *Splice) (sent int64, err error) {
	code, err := o.groups.CodeFor(class, to)
	if err != nil {
		return 0, err
	}
	next := &group.Splice{
		Class: class, Code: code, Cell: group.CellBytesFor(code.Layout.Rows, splice.fullest), Home: splice.home, Copies: map[int][]wire.Copy{},
	}
	change := catalog.Change{LeaveOut: true}
	var basis []catalog.Basis
	for column, snapshots := range splice.Columns {
		at := int64(0) // in the column
		for _, snapshot := range snapshots {
			object := &snapshot.Object
			extent := catalog.Extent{Column: column, Offset: at, Length: object.Size}
			parts, err := partsOf(snapshot)
			if err != nil {
				return 0, err
			}
			for _, from := range parts {
				next.Copies[column] = appendCopies(next.Copies[column], column, int64(next.Cell), at, from)
				at += int64(from.length)
			}
			next.Manifest = append(next.Manifest, block.ManifestEntry{
				Key: []byte(object.Key), Revision: object.Revision, Size: object.Size,
				Column: column, Offset: extent.Offset, Length: extent.Length,
				Expires: object.Expires, Metadata: object.Metadata, Checksum: object.Checksum, Keep: object.Keep,
			})
			basis = append(basis, catalog.Over(object.Key))
			change.Move = append(change.Move, catalog.ObjectMove{Snapshot: snapshot, Extents: []catalog.Extent{extent}})
		}
	}
	next.Code = o.groups.Narrow(code, next.Manifest, next.Cell)
	attempt, err := o.catalog.Begin(ctx, catalog.KindMove, o.groups.Deadline(), func(stamp block.Stamp) []catalog.BlockSet {
		return []catalog.BlockSet{group.Announce(block.GroupID{Stamp: stamp}, next.Code, splice.home)}
	}, basis...)
	if err != nil {
		return 0, fmt.Errorf("announcing a group of small objects: %w", err)
	}
	made, counters, err := o.groups.Splice(ctx, attempt, next)
	if err != nil {
		return 0, o.groups.Abandon(ctx, attempt, fmt.Errorf("splicing small objects: %w", err))
	}
	change.NewGroups = []catalog.Group{*made}
	for i := range change.Move {
		change.Move[i].Extents[0].Group = made.ID
	}
	if err := o.groups.Commit(ctx, attempt, change); err != nil {
		return 0, err
	}
	o.heat.Carried(splice.Snapshots(), made)
	return counters.BytesSent, nil
}

// appendCopies adds what a part of an object is in the cells of a column, from a place in the column on.
func appendCopies(copies []wire.Copy, column int, cell, at int64, from part) []wire.Copy {
	for from.length > 0 {
		length := min(from.length, int(cell-at%cell))
		copies = append(copies, wire.Copy{
			Slot: column, Unit: int(at / cell), Offset: int(at % cell), Length: length,
			Address: from.address, Source: from.unit, From: from.offset,
		})
		at, from.offset, from.length = at+int64(length), from.offset+length, from.length-length
	}
	return copies
}

package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/stripe"
)

// What is generated: of ten objects one is large and has a group of its own, and the others are small and share groups. All groups
// are of a class with the ladder rs(4,2),rs(12,2), whose first step they are under.
const (
	largeEvery  = 10
	packed      = 64 // small objects in a group
	columns     = 12
	parities    = 2
	largeBytes  = 1 << 20
	smallBytes  = 16 << 10
	chunk       = 16_000 // objects that are generated at a time
	neverDrawn  = 1 << 40
	ladder      = "rs(4,2),rs(12,2)"
	scheme      = "rs(4,2)"
	className   = "default"
	slots       = columns + parities
	columnCells = (packed + columns - 1) / columns
)

// objectKey is the key of a generated object; their order is that of their numbers.
func objectKey(i int64) string { return fmt.Sprintf("archive/%05d/picture-%012d.jpg", i/10_000, i) }

// nodeIDs are the members of the cluster.
func nodeIDs(count int) []block.NodeID {
	ids := make([]block.NodeID, count)
	for i := range ids {
		ids[i] = block.NodeID(fmt.Sprintf("n%05d", i))
	}
	return ids
}

// contentsOf names the contents of a node's store, as block.NewIncarnation does.
func contentsOf(id block.NodeID) block.Incarnation {
	return block.Incarnation("1.ABCDEFGHIJKLMNOPQRST" + string(id) + ".")
}

// newGroup returns a group all of whose blocks are under stamp, on slots of nodes from a place on.
func newGroup(stamp block.Stamp, cellBytes int, isPacked bool, nodes []block.NodeID, random *rand.Rand) catalog.Group {
	group := catalog.Group{
		ID: block.GroupID{Stamp: stamp}, Generation: stamp, Epoch: stamp, Class: className, Ladder: ladder, Mode: string(stripe.ModeFree),
		LayoutVersion: stripe.LayoutVersion, Columns: columns, Scheme: scheme, CellBytes: cellBytes, Packed: isPacked, Settled: 1_790_000_000_000,
	}
	first := random.IntN(len(nodes))
	for slot := range slots {
		node := nodes[(first+slot)%len(nodes)]
		item := catalog.Item{Units: 1, Stamp: stamp, Node: node, Incarnation: contentsOf(node), Checksum: random.Uint32()}
		if slot >= columns {
			item.Units = columns / 4 // a row of parities has a unit for each stripe
		}
		binary.LittleEndian.PutUint64(item.Fingerprint[:], random.Uint64())
		binary.LittleEndian.PutUint64(item.Fingerprint[8:], random.Uint64())
		group.Home, group.Slots = append(group.Home, node), append(group.Slots, catalog.Slot{item})
	}
	return group
}

// newObject returns one that lies in a group at a place.
func newObject(key string, group *catalog.Group, extent catalog.Extent) catalog.Object {
	extent.Group = group.ID
	return catalog.Object{
		Key: key, Revision: group.ID.Stamp, Class: className, Scheme: scheme, Size: extent.Length, Modified: 1_790_000_000_000,
		Extents: []catalog.Extent{extent},
	}
}

// contents are the objects from one number to another, with their groups.
func contents(from, to int64, nodes []block.NodeID) *catalog.Contents {
	random := rand.New(rand.NewPCG(uint64(from), 1))
	c := &catalog.Contents{
		Cluster: catalog.Cluster{ID: "0123456789abcdef0123456789abcdef"}, Next: neverDrawn,
		Incarnations: map[block.NodeID]block.Incarnation{},
	}
	for _, id := range nodes {
		c.Nodes = append(c.Nodes, catalog.Node{
			ID: id, Address: "10.0.0.1:7481", Domain: "rack" + string(id[len(id)-2:]), State: catalog.NodeUp, Version: 1,
		})
		c.Incarnations[id] = contentsOf(id)
	}
	stamp := func(i int64) block.Stamp { return block.Stamp{Sequence: uint64(i) + 1, Salt: random.Uint64()} }
	small := packed
	var shared *catalog.Group
	for i := from; i < to; i++ {
		if i%largeEvery == 0 {
			group := newGroup(stamp(i), (largeBytes+columns-1)/columns, false, nodes, random)
			c.Groups = append(c.Groups, group)
			c.Objects = append(c.Objects, newObject(objectKey(i), &group, catalog.Extent{Column: catalog.WholeGroup, Length: largeBytes}))
			continue
		}
		if small == packed {
			group := newGroup(stamp(i), columnCells*smallBytes, true, nodes, random)
			c.Groups = append(c.Groups, group)
			shared, small = &group, 0
		}
		extent := catalog.Extent{Column: small % columns, Offset: int64(small/columns) * smallBytes, Length: smallBytes}
		c.Objects = append(c.Objects, newObject(objectKey(i), shared, extent))
		small++
	}
	return c
}

// capture is an engine that only takes down what a restore writes.
type capture struct {
	kv.Engine
	writes []kv.Write
}

// Scan implements kv.Engine: there is nothing.
func (c *capture) Scan(context.Context, string, string, int) ([]kv.Record, error) { return nil, nil }

// Update implements kv.Engine.
func (c *capture) Update(_ context.Context, _ []kv.Check, writes []kv.Write) ([]int, error) {
	c.writes = append(c.writes, writes...)
	return nil, nil
}

// kindOf is the prefix of a key, which says of which kind its record is.
func kindOf(key string) string {
	at := strings.IndexByte(key, '/')
	return key[:at+1]
}

// generate returns the writes of objects and groups that a catalog has when it is restored from stores with these objects in them;
// and, of the last ones of a catalog, those that put it into service.
func generate(ctx context.Context, from, to int64, nodes []block.NodeID) (records, last []kv.Write, err error) {
	c := &capture{}
	if err := catalog.Restore(ctx, c, contents(from, to, nodes), nil); err != nil {
		return nil, nil, err
	}
	for _, write := range c.writes {
		switch kindOf(write.Key) {
		case "o/", "g/", "l/":
			records = append(records, write)
		default:
			last = append(last, write)
		}
	}
	return records, last, nil
}

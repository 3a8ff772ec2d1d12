package catalog

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// Contents are the records of a catalog that is made anew from what stores hold.
type Contents struct {
	Cluster      Cluster
	Next         uint64 // greater than the sequence of every stamp in use
	Nodes        []Node
	Incarnations map[block.NodeID]block.Incarnation
	Groups       []Group
	Objects      []Object
	Starts       []string // of gateways that agents have obeyed: they obey this catalog although it does not have them
}

// rebuilding is why a catalog is set aside while it is being filled.
const rebuilding = "a rebuild into it did not end: remove it and rebuild again"

// restoreBatch is how many records one transaction of Restore writes.
const restoreBatch = 256

// Restore fills an empty engine with contents, after which Open opens it. It fails with kv.ErrInUse if the engine has any
// record, and changes nothing then. One that does not end leaves a catalog that Open refuses. It tells progress, if that is not
// nil, of the records it has written.
//
// The blocks of attempts below Next that no record names are kept from sweepers until Accept: they may be all that is
// left of what the records do not know.
func Restore(ctx context.Context, engine kv.Engine, contents *Contents, progress func(written, of int)) error {
	records, err := contents.records()
	if err != nil {
		return fmt.Errorf("restoring a catalog: %w", err)
	}
	if err := CheckEmpty(ctx, engine); err != nil {
		return err
	}
	fill := filler{engine, string(Aside(rebuilding)), "remove what there is of it and rebuild again"}
	if err := fill.begin(ctx, nil); err != nil {
		return fmt.Errorf("restoring a catalog: %w", err)
	}
	err = fill.end(ctx, records, []kv.Write{
		{Key: schema.KeyCluster, Value: codec.Encode(contents.Cluster)},
		{Key: schema.KeyFloor, Value: codec.EncodeCount(contents.Next)},
		{Key: schema.KeyKept, Value: codec.EncodeCount(contents.Next)},
		{Key: schema.KeyDrawn, Value: codec.EncodeCount(contents.Next)},
		{Key: schema.KeyDisowned, Value: codec.Encode(contents.Starts)},
	}, SchemaVersion, progress)
	if err != nil {
		return fmt.Errorf("restoring a catalog: %w", err)
	}
	return nil
}

// filler writes many records into a catalog that nobody opens meanwhile, as a mark stands in the place of the schema version.
type filler struct {
	engine kv.Engine
	mark   string
	cure   string // what to do after an error
}

// begin sets the mark in the place of version, nil for none.
func (f filler) begin(ctx context.Context, version []byte) error {
	return f.update(ctx, kv.Check{Key: schema.KeySchema, Value: version}, []kv.Write{{Key: schema.KeySchema, Value: []byte(f.mark)}})
}

// write makes one update of what is marked.
func (f filler) write(ctx context.Context, writes []kv.Write) error {
	return f.update(ctx, kv.Check{Key: schema.KeySchema, Value: []byte(f.mark)}, writes)
}

// end writes records, of whose number it tells progress if that is not nil, and with the last of them the schema version.
func (f filler) end(ctx context.Context, records, last []kv.Write, version int, progress func(written, of int)) error {
	written := 0
	for batch := range slices.Chunk(records, restoreBatch) {
		if err := f.write(ctx, batch); err != nil {
			return err
		}
		if written += len(batch); progress != nil {
			progress(written, len(records))
		}
	}
	is := []byte(strconv.Itoa(version))
	return f.write(ctx, append(last, kv.Write{Key: schema.KeySchema, Value: is}, kv.Write{Key: schema.KeyVersion, Value: is}))
}

func (f filler) update(ctx context.Context, check kv.Check, writes []kv.Write) error {
	failed, err := f.engine.Update(ctx, []kv.Check{check}, writes)
	if err == nil && len(failed) > 0 {
		err = fmt.Errorf("%w: somebody else writes to it", kv.ErrInUse)
	}
	if err != nil {
		return fmt.Errorf("%w; %s", err, f.cure)
	}
	return nil
}

// CheckEmpty fails with kv.ErrInUse if an engine has any record.
func CheckEmpty(ctx context.Context, engine kv.Engine) error {
	there, err := engine.Scan(ctx, "", "", 1)
	if err != nil {
		return fmt.Errorf("restoring a catalog: %w", err)
	}
	if len(there) > 0 {
		return fmt.Errorf("restoring a catalog: %w: it holds records; name one that does not exist yet", kv.ErrInUse)
	}
	return nil
}

// records checks that the contents hold together and encodes them.
func (c *Contents) records() ([]kv.Write, error) {
	p := schema.NewPicture(func(stamp block.Stamp) bool { return stamp.Sequence < c.Next })
	var writes []kv.Write
	set := func(key string, value []byte) { writes = append(writes, kv.Write{Key: key, Value: value}) }
	for i := range c.Objects {
		p.Add(&c.Objects[i])
		set(schema.ObjectKey(c.Objects[i].Key), codec.Encode(c.Objects[i]))
		writes = append(writes, schema.ExpiryWrites(nil, &c.Objects[i])...)
	}
	for i := range c.Groups {
		id := c.Groups[i].ID
		p.Groups[id] = &c.Groups[i]
		p.Lives[id] += 0 // a group without extents has a count too
	}
	p.CountColumns()
	for i := range c.Groups {
		id := c.Groups[i].ID
		p.Freeable[id] = p.Lives[id] == 0
		set(schema.GroupKey(id), codec.Encode(c.Groups[i]))
		writes = append(writes, p.CountWrites(id)...)
		if p.Freeable[id] {
			set(schema.FreeableKey(id), []byte{})
		}
	}
	if violations := p.Violations(); len(violations) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrBadChange, violations[0])
	}
	for _, node := range c.Nodes {
		set(schema.NodeKey(node.ID), codec.Encode(node))
	}
	for id, incarnation := range c.Incarnations {
		set(schema.IncarnationKey(id), []byte(incarnation))
	}
	return writes, nil
}

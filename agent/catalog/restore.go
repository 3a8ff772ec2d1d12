package catalog

import (
	"context"
	"fmt"
	"strconv"

	"github.com/restripe/restripe/agent/block"
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

// rebuilding stands in the place of the schema version while a catalog is being filled: nothing opens it.
const rebuilding = "rebuilding"

// restoreBatch is how many records one transaction of Restore writes.
const restoreBatch = 256

// Restore fills an empty engine with contents, after which Open opens it. It fails with ErrInUse if the engine has any
// record, and changes nothing then. One that does not end leaves a catalog that Open refuses.
//
// The blocks of attempts below Next that no record names are kept from sweepers until Accept: they may be all that is
// left of what the records do not know.
func Restore(ctx context.Context, engine Engine, contents *Contents) error {
	records, err := contents.records()
	if err != nil {
		return fmt.Errorf("restoring a catalog: %w", err)
	}
	if err := CheckEmpty(ctx, engine); err != nil {
		return err
	}
	update := func(checks []Check, writes []Write) error {
		failed, err := engine.Update(ctx, checks, writes)
		if err != nil {
			return fmt.Errorf("restoring a catalog: %w; remove what there is of it and rebuild again", err)
		}
		if len(failed) > 0 {
			return fmt.Errorf("restoring a catalog: %w: somebody else writes to it", ErrInUse)
		}
		return nil
	}
	mark := []Check{{Key: keySchema, Value: []byte(rebuilding)}}
	if err := update([]Check{{Key: keySchema}}, []Write{{Key: keySchema, Value: mark[0].Value}}); err != nil {
		return err
	}
	for len(records) > 0 {
		count := min(len(records), restoreBatch)
		if err := update(mark, records[:count]); err != nil {
			return err
		}
		records = records[count:]
	}
	return update(mark, []Write{
		{Key: keyCluster, Value: encode(contents.Cluster)},
		{Key: keyNext, Value: encodeNext(contents.Next)},
		{Key: keyKept, Value: encodeNext(contents.Next)},
		{Key: keyDrawn, Value: encodeNext(contents.Next)},
		{Key: keyDisowned, Value: encode(contents.Starts)},
		{Key: keySchema, Value: []byte(strconv.Itoa(SchemaVersion))},
	})
}

// CheckEmpty fails with ErrInUse if an engine has any record.
func CheckEmpty(ctx context.Context, engine Engine) error {
	there, err := engine.Scan(ctx, "", "", 1)
	if err != nil {
		return fmt.Errorf("restoring a catalog: %w", err)
	}
	if len(there) > 0 {
		return fmt.Errorf("restoring a catalog: %w: it holds records; name one that does not exist yet", ErrInUse)
	}
	return nil
}

// records checks that the contents hold together and encodes them.
func (c *Contents) records() ([]Write, error) {
	p := &picture{next: c.Next, objects: c.Objects, groups: map[block.GroupID]*Group{}, lives: map[block.GroupID]int64{}, freeable: map[block.GroupID]bool{}}
	var writes []Write
	set := func(key string, value []byte) { writes = append(writes, Write{Key: key, Value: value}) }
	for i := range c.Objects {
		for _, extent := range c.Objects[i].Extents {
			p.lives[extent.Group]++
		}
		set(objectKey(c.Objects[i].Key), encode(c.Objects[i]))
	}
	for i := range c.Groups {
		id := c.Groups[i].ID
		p.groups[id] = &c.Groups[i]
		p.lives[id] += 0 // a group without extents has a count too
		p.freeable[id] = p.lives[id] == 0
		set(groupKey(id), encode(c.Groups[i]))
		set(liveKey(id), encodeCount(p.lives[id]))
		if p.freeable[id] {
			set(freeableKey(id), []byte{})
		}
	}
	if violations := p.violations(); len(violations) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrBadChange, violations[0])
	}
	for _, node := range c.Nodes {
		set(nodeKey(node.ID), encode(node))
	}
	for id, incarnation := range c.Incarnations {
		set(incarnationKey(id), []byte(incarnation))
	}
	return writes, nil
}

package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// freeBatch bounds how many groups one transaction frees.
const freeBatch = 16

// Free removes a group that no object has an extent in, and buries all its blocks, in one transaction (rule 13).
// Whoever works on the group fails on its record. freed says that the group is gone.
func (g *graveyard) Free(ctx context.Context, id block.GroupID) (freed bool, err error) {
	count, err := g.free(ctx, []block.GroupID{id})
	if err != nil {
		return false, fmt.Errorf("freeing group %s: %w", id, err)
	}
	return count == 1, nil
}

// FreeAll frees every group whose live count is zero and returns how many it freed, of how many whose count went down, or began at
// zero, since it last looked: it looks at those alone. Before that it sweeps the pieces that nobody goes on with.
func (g *graveyard) FreeAll(ctx context.Context) (total, looked int, err error) {
	if err := g.sweepPieces(ctx); err != nil {
		return 0, 0, fmt.Errorf("sweeping pieces of large objects: %w", err)
	}
	after := schema.PrefixFreeable
	for {
		records, err := g.engine.Scan(ctx, schema.PrefixFreeable, after, freeBatch)
		if err != nil {
			return total, looked, fmt.Errorf("listing groups to free: %w", err)
		}
		if len(records) == 0 {
			return total, looked, nil
		}
		ids := make([]block.GroupID, 0, len(records))
		for _, record := range records {
			id, err := block.ParseGroupID(record.Key[len(schema.PrefixFreeable):])
			if err != nil {
				return total, looked, fmt.Errorf("listing groups to free: %w: %w", ErrCorrupt, err)
			}
			ids = append(ids, id)
		}
		after = records[len(records)-1].Key
		count, err := g.free(ctx, ids)
		total, looked = total+count, looked+len(ids)
		if err != nil {
			return total, looked, fmt.Errorf("freeing groups: %w", err)
		}
	}
}

// free looks at groups and frees those without live extents. It returns how many of them are gone. What lay in other groups lives there no
// more, which may make these free.
func (g *graveyard) free(ctx context.Context, ids []block.GroupID) (gone int, err error) {
	err = g.retry(ctx, func(ctx context.Context) (bool, error) {
		keys := make([]string, 0, 3*len(ids))
		for _, id := range ids {
			keys = append(keys, schema.GroupKey(id), schema.LiveKey(id), schema.FreeableKey(id))
		}
		values, err := g.engine.Read(ctx, keys...)
		if err != nil {
			return false, err
		}
		var checks []kv.Check
		var writes []kv.Write
		lives := schema.Lives{}
		count := 0
		for i, id := range ids {
			group, live, note := values[3*i], values[3*i+1], values[3*i+2]
			freed, groupChecks, groupWrites, err := g.freeOne(id, group, live, note, lives)
			if err != nil {
				return false, err
			}
			if freed {
				count++
			}
			checks, writes = append(checks, groupChecks...), append(writes, groupWrites...)
		}
		if len(lives) > 0 { // their notes are left anew
			writes = slices.DeleteFunc(writes, func(w kv.Write) bool {
				id, err := block.ParseGroupID(strings.TrimPrefix(w.Key, schema.PrefixFreeable))
				return err == nil && lives[id].Extents != 0
			})
			writes = append(writes, lives.Writes()...)
		}
		if len(writes) > 0 {
			failed, err := g.engine.Update(ctx, checks, writes)
			if err != nil || len(failed) > 0 {
				return false, err // no condition was met by chance: the records never return, so looking again is right
			}
		}
		gone = count
		return true, nil
	})
	return gone, err
}

// freeOne decides what to do about one group, whose records are given as read.
func (g *graveyard) freeOne(
	id block.GroupID, group, live, note []byte, lives schema.Lives,
) (gone bool, checks []kv.Check, writes []kv.Write, err error) {
	forget := kv.Write{Key: schema.FreeableKey(id), Kind: kv.Remove}
	if group == nil {
		if note != nil {
			writes = []kv.Write{forget} // names are never used twice
		}
		return true, nil, writes, nil
	}
	view, err := viewGroup(id, group, live)
	if err != nil {
		return false, nil, nil, err
	}
	if view.Live != 0 {
		if note != nil {
			checks, writes = []kv.Check{{Key: schema.LiveKey(id), Value: live}}, []kv.Write{forget}
		}
		return false, checks, writes, nil
	}
	lives.Lie(&view.Group, -1)
	var dead []block.Address
	for address := range view.Group.Addresses() {
		dead = append(dead, address)
	}
	schema.SortAddresses(dead)
	checks = []kv.Check{{Key: schema.GroupKey(id), Value: group}, {Key: schema.LiveKey(id), Value: live}}
	writes = append(g.bury(dead, causeFreed, view.Packed), forget,
		kv.Write{Key: schema.GroupKey(id), Kind: kv.Remove}, kv.Write{Key: schema.LiveKey(id), Kind: kv.Remove},
		kv.Write{Key: schema.BytesKey(id), Kind: kv.Remove})
	return true, checks, writes, nil
}

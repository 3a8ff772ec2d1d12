package catalogtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
)

// Bounded is an engine that takes no more at a time than any engine has to.
type Bounded struct{ kv.Engine }

// Update refuses what has more in it than kv.UpdateRecords and kv.UpdateBytes.
func (b Bounded) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	bytes := 0
	for _, check := range checks {
		bytes += len(check.Key) + len(check.Value)
	}
	for _, write := range writes {
		bytes += len(write.Key) + len(write.Value)
	}
	if records := len(checks) + len(writes); records > kv.UpdateRecords || bytes > kv.UpdateBytes {
		return nil, fmt.Errorf("%w: %d records and %d bytes", kv.ErrTooLarge, records, bytes)
	}
	return b.Engine.Update(ctx, checks, writes)
}

// PutLarge puts an object of ten bytes in each of so many groups, in as many pieces as that takes.
func PutLarge(
	ctx context.Context, c *catalog.Catalog, key string, count int, nodes []block.NodeID, incarnations map[block.NodeID]block.Incarnation,
) error {
	attempt, err := c.Begin(ctx, catalog.KindPut, time.Now().Add(time.Hour), func(block.Stamp) []catalog.BlockSet { return nil },
		catalog.Over(key))
	if err != nil {
		return err
	}
	object := catalog.Object{Key: key, Size: 10 * int64(count)}
	var groups []catalog.Group
	share := 0.0
	for i := range count {
		group := NewGroup(attempt.Stamp(), uint32(i), nodes, incarnations)
		if share += catalog.PieceShare(&group); share > 1 {
			if err := putPiece(ctx, attempt, &object, groups); err != nil {
				return err
			}
			groups, share = nil, catalog.PieceShare(&group)
		}
		groups = append(groups, group)
		object.Extents = append(object.Extents, catalog.Extent{Group: group.ID, Column: i % 2, Length: 10})
	}
	if err := putPiece(ctx, attempt, &object, groups); err != nil {
		return err
	}
	return attempt.Commit(ctx, catalog.Change{Put: []catalog.Object{object}})
}

// putPiece commits the groups that have the last extents of an object so far.
func putPiece(ctx context.Context, attempt *catalog.Attempt, object *catalog.Object, groups []catalog.Group) error {
	var sets []catalog.BlockSet
	for i := range groups {
		sets = append(sets, Announce(attempt.Stamp(), groups[i].ID.Index, groups[i].Home))
	}
	if err := attempt.Extend(ctx, sets, time.Now().Add(time.Hour)); err != nil {
		return err
	}
	return attempt.CommitPiece(ctx, object.Key, groups, object.Extents[len(object.Extents)-len(groups):])
}

// largeObjects puts, overwrites and deletes objects of more groups than one update takes.
func largeObjects(t *testing.T, instance Instance) {
	ctx := deadline(t)
	c, err := catalog.Open(ctx, Bounded{instance.Engine}, catalog.Owner("gateway", "start"))
	if err != nil {
		t.Fatal(err)
	}
	nodes, incarnations := Enroll(ctx, t, c)
	const groups = kv.UpdateRecords * 2 / 3
	for i, count := range []int{groups, groups / 2, groups} {
		if err := PutLarge(ctx, c, "large", count, nodes, incarnations); err != nil {
			t.Fatalf("put %d: %v", i, err)
		}
		snapshot, err := c.SnapshotRange(ctx, "large", 0, 10)
		if err != nil || len(snapshot.Object.Extents) != count {
			t.Fatalf("after put %d: %v", i, err)
		}
		if i > 0 { // what was written over is there until it is swept
			continue
		}
		if err := c.Audit(ctx); err != nil {
			t.Error(err)
		}
	}
	if err := c.Audit(ctx); err != nil {
		t.Error(err)
	}
	freed, _, err := c.FreeAll(ctx)
	if err != nil || freed != groups+groups/2 {
		t.Errorf("freed %d groups, %v", freed, err)
	}
	if _, err := c.Delete(ctx, "large", nil); err != nil {
		t.Fatal(err)
	}
	if freed, _, err := c.FreeAll(ctx); err != nil || freed != groups {
		t.Errorf("freed %d groups, %v", freed, err)
	}
	if err := c.Audit(ctx); err != nil {
		t.Error(err)
	}
	if left, err := c.ListGroups(ctx, block.GroupID{}, 1); err != nil || len(left) > 0 {
		t.Errorf("%d groups are left, %v", len(left), err)
	}
	if _, err := c.SnapshotRange(ctx, "large", 0, 10); !errors.Is(err, catalog.ErrNoObject) {
		t.Errorf("it is deleted, and there: %v", err)
	}
}

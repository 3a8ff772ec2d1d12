package object

import (
	"context"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// RepairFirst has reads that meet a missing or wrong block wait until its group is rebuilt, by the nodes themselves, and
// then read it like any other (TriEC Section 3.2, receive and decode); a node that is slow is waited for. What cannot be
// rebuilt, and what lies on a node that does not answer, is decoded here. Without RepairFirst a read decodes what it
// misses, and the group is rebuilt after it. Call it before WriteTo.
func (r *Reader) RepairFirst() { r.repairs = true }

// rebuildForRead has a group rebuilt, if the reader wants that, and takes over its new record. It reports whether the fragment is
// worth another look. Reads that meet the same group while it is rebuilt wait for one and the same rebuilding, which looks at
// every block of the group, and which goes on when they leave: the group wants it whoever reads.
func (r *Reader) rebuildForRead(ctx context.Context, id block.GroupID, seen *catalog.Snapshot) (bool, error) {
	if !r.repairs {
		return false, nil
	}
	if changed, err := r.refresh(ctx, id, seen); changed || err != nil {
		return changed, err // somebody else had it rebuilt
	}
	objects := r.objects
	landed := objects.mending.DoChan(id.String(), func() (any, error) {
		whole := make(chan bool, 1)
		objects.background.Go(func(ctx context.Context) { whole <- objects.repairs.RebuildNow(ctx, id) })
		return <-whole, nil
	})
	select {
	case mended := <-landed:
		if whole, _ := mended.Val.(bool); !whole {
			return false, nil
		}
	case <-ctx.Done():
		return false, ctx.Err()
	}
	return r.refresh(ctx, id, seen)
}

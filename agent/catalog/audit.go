package catalog

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// auditor compares the records with each other and with what stores hold, which matters most after a catalog was lost and
// rebuilt, or restored from an old copy.
type auditor struct{ *records }

// auditPasses bounds how often Audit looks again at a catalog that keeps changing.
const auditPasses = 8

// Audit checks the invariants of the protocol (PROTOCOL section 3) that the records alone can show: live counts equal
// the extents objects and pieces have, no grave and no active attempt names a live block, every group is well-formed and on
// distinct nodes, every object's extents add up to its size, overlap nobody's, and lie inside groups that exist, an
// active attempt has the pieces that it has committed, and every group of live count 0 is noted for Free. It returns every
// violation, joined, as ErrCorrupt.
//
// It holds all records in memory. While others write, it believes a violation only when two passes in a row saw the
// same records.
func (a *auditor) Audit(ctx context.Context) error {
	var last uint64
	for pass := range auditPasses {
		picture, sum, err := a.picture(ctx)
		if err != nil {
			return fmt.Errorf("auditing the catalog: %w", err)
		}
		violations := picture.Violations()
		if len(violations) == 0 {
			return nil
		}
		if pass > 0 && sum == last {
			return fmt.Errorf("auditing the catalog: %w: %w", ErrCorrupt, errors.Join(violations...))
		}
		last = sum
	}
	return fmt.Errorf("auditing the catalog: it changes too fast to tell: pause the writers and try again")
}

func (a *auditor) picture(ctx context.Context) (*schema.Picture, uint64, error) {
	drawn, err := a.drawn(ctx)
	if err != nil {
		return nil, 0, err
	}
	floor, err := a.number(ctx, schema.KeyFloor)
	if err != nil {
		return nil, 0, err
	}
	p := schema.NewPicture(func(stamp block.Stamp) bool { return stamp.Sequence < floor || drawn.has(stamp) })
	sum := fnv.New64a()
	for _, prefix := range schema.Pictured {
		err := a.each(ctx, prefix, func(record kv.Record) error {
			fmt.Fprintf(sum, "%q=%q\n", record.Key, record.Value)
			p.Take(record)
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
	}
	return p, sum.Sum64(), nil
}

package catalog

import (
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/kv"
)

// GroupSummary is what a statistic needs of a group: a part of its record, which takes a fraction of the time to read.
type GroupSummary struct {
	ID            block.GroupID `cbor:"1,keyasint"`
	Class         string        `cbor:"4,keyasint"`
	Ladder        string        `cbor:"5,keyasint"`
	Mode          string        `cbor:"6,keyasint"`
	LayoutVersion int           `cbor:"7,keyasint"`
	Columns       int           `cbor:"8,keyasint"`
	Scheme        string        `cbor:"9,keyasint"`
	CellBytes     int           `cbor:"10,keyasint"`
	Settled       int64         `cbor:"15,keyasint"`
}

// ObjectSummary is the same of an object.
type ObjectSummary struct {
	Key   string `cbor:"1,keyasint"`
	Class string `cbor:"3,keyasint"`
	Size  int64  `cbor:"5,keyasint"`
}

// SummarizeGroups returns up to limit groups after the given one, in the order they were created; fewer are the end.
func (o *objects) SummarizeGroups(ctx context.Context, after block.GroupID, limit int) ([]GroupSummary, error) {
	records, err := o.engine.Scan(ctx, prefixGroup, groupKey(after), limit)
	if err != nil {
		return nil, fmt.Errorf("summarizing groups: %w", err)
	}
	return decodeAll[GroupSummary](records)
}

// SummarizeObjects returns up to limit objects after a place in the listing, "" for its start, and the place to go on
// from; it is "" at the end.
func (o *objects) SummarizeObjects(ctx context.Context, place string, limit int) (page []ObjectSummary, next string, err error) {
	records, err := o.engine.Scan(ctx, prefixObject, prefixObject+place, limit)
	if err != nil {
		return nil, "", fmt.Errorf("summarizing objects: %w", err)
	}
	if len(records) == limit {
		next = records[limit-1].Key[len(prefixObject):]
	}
	page, err = decodeAll[ObjectSummary](records)
	return page, next, err
}

func decodeAll[T any](records []kv.Record) ([]T, error) {
	list := make([]T, len(records))
	for i, record := range records {
		var err error
		if list[i], err = decode[T](record.Key, record.Value); err != nil {
			return nil, err
		}
	}
	return list, nil
}

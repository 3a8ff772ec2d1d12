package catalog

import (
	"context"
	"fmt"
	"iter"

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

// recordPages walks the records with a prefix after a key, as a whole or in part, page by page.
func recordPages[T any](ctx context.Context, engine kv.Engine, prefix, after string) iter.Seq2[[]T, error] {
	return pages(func() ([]T, bool, error) {
		records, err := engine.Scan(ctx, prefix, after, pageRecords)
		if err != nil {
			return nil, false, fmt.Errorf("walking over records: %w", err)
		}
		if len(records) > 0 {
			after = records[len(records)-1].Key
		}
		page, err := decodeAll[T](records)
		return page, len(records) < pageRecords, err
	})
}

func decodeAll[T any](records []kv.Record) (list []T, err error) {
	list = make([]T, len(records))
	for i, record := range records {
		if list[i], err = decode[T](record.Key, record.Value); err != nil {
			return nil, err
		}
	}
	return list, nil
}

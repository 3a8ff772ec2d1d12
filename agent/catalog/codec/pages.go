package codec

import (
	"context"
	"fmt"
	"iter"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// PageRecords is how many records an iterator reads at a time.
const PageRecords = 1000

// Pages walks page by page: read returns the next page and whether it was the last. An error is the last thing yielded.
// No walk is a snapshot: each page is as of its own moment.
func Pages[T any](read func() (page []T, last bool, err error)) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		for {
			page, last, err := read()
			if err != nil {
				yield(nil, err)
				return
			}
			if len(page) > 0 && !yield(page, nil) || last {
				return
			}
		}
	}
}

// Items takes the pages of a walk apart. What it yields may be kept.
func Items[T any](walk iter.Seq2[[]T, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for page, err := range walk {
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page {
				if !yield(&page[i], nil) {
					return
				}
			}
		}
	}
}

// Records walks the records with a prefix after a key, as a whole or in part, page by page.
func Records[T any](ctx context.Context, engine kv.Engine, prefix, after string) iter.Seq2[[]T, error] {
	return Pages(func() ([]T, bool, error) {
		records, err := engine.Scan(ctx, prefix, after, PageRecords)
		if err != nil {
			return nil, false, fmt.Errorf("walking over records: %w", err)
		}
		if len(records) > 0 {
			after = records[len(records)-1].Key
		}
		page, err := DecodeAll[T](records)
		return page, len(records) < PageRecords, err
	})
}

// DecodeAll reads records.
func DecodeAll[T any](records []kv.Record) (list []T, err error) {
	list = make([]T, len(records))
	for i, record := range records {
		if list[i], err = Decode[T](record.Key, record.Value); err != nil {
			return nil, err
		}
	}
	return list, nil
}

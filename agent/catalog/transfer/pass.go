package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
)

// pageRecords is how many records are read at once.
const pageRecords = 256

// One update of the destination has no more than these, but for a record that is larger by itself.
const (
	batchRecords = kv.UpdateRecords / 4
	batchBytes   = kv.UpdateBytes / 4
)

// keyBackup says what a backup has in it. It is no record of the catalog that was copied.
const keyBackup = "meta/backup"

// isOwn reports whether a record is of one copy of a catalog, and not of its contents.
func isOwn(key string) bool { return key == catalog.KeySchema || key == keyBackup }

// Records are what a page at a time is read of.
type Records interface {
	Scan(ctx context.Context, prefix, after string, limit int) ([]kv.Record, error)
}

// reader reads all records in order.
type reader struct {
	from   Records
	own    bool   // those too that are of this copy alone
	schema []byte // once it was read
	page   []kv.Record
	at     int
	last   string
	done   bool
}

// next returns the next record, nil after the last. It is valid until the call after.
func (r *reader) next(ctx context.Context) (*kv.Record, error) {
	for {
		if r.at == len(r.page) {
			if r.done {
				return nil, nil
			}
			page, err := r.from.Scan(ctx, "", r.last, pageRecords)
			if err != nil {
				return nil, err
			}
			if len(page) == 0 {
				r.done = true
				return nil, nil
			}
			r.page, r.at, r.last = page, 0, page[len(page)-1].Key
		}
		r.at++
		record := &r.page[r.at-1]
		if record.Key == catalog.KeySchema {
			r.schema = record.Value
		}
		if r.own || !isOwn(record.Key) {
			return record, nil
		}
	}
}

// sum adds up records, in their order.
type sum struct {
	digest  hash.Hash
	records int64
	bytes   int64
}

func newSum() *sum { return &sum{digest: sha256.New()} }

func (s *sum) add(record *kv.Record) {
	s.records++
	s.bytes += int64(len(record.Key) + len(record.Value))
	for _, text := range [][]byte{[]byte(record.Key), record.Value} {
		s.digest.Write(binary.AppendUvarint(nil, uint64(len(text))))
		s.digest.Write(text)
	}
}

func (s *sum) checksum() string { return hex.EncodeToString(s.digest.Sum(nil)) }

// total adds up what an engine or a snapshot has.
func total(ctx context.Context, from Records, progress func(*sum)) (*sum, error) {
	s, r := newSum(), reader{from: from}
	for {
		record, err := r.next(ctx)
		if err != nil || record == nil {
			return s, err
		}
		s.add(record)
		if s.records%pageRecords == 0 {
			progress(s)
		}
	}
}

// destination is what a copy is written into, while it is set aside.
type destination struct {
	engine kv.Engine
	mark   []byte // its schema record

	writes []kv.Write
	bytes  int
	made   int64 // writes, of all passes
}

// level gives the destination the records of from, which is of one instant and whose schema record has to be one that is wanted, and
// returns their sum.
func (d *destination) level(ctx context.Context, from Records, wanted func(schema []byte) bool, progress func(*sum)) (*sum, error) {
	s, source, there := newSum(), reader{from: from}, reader{from: d.engine}
	have, err := there.next(ctx)
	if err != nil {
		return nil, err
	}
	for {
		record, err := source.next(ctx)
		if err != nil {
			return nil, err
		}
		for have != nil && (record == nil || have.Key < record.Key) {
			if err := d.write(ctx, kv.Write{Key: have.Key, Kind: kv.Remove}); err != nil {
				return nil, err
			}
			if have, err = there.next(ctx); err != nil {
				return nil, err
			}
		}
		if record == nil {
			if !wanted(source.schema) {
				return nil, fmt.Errorf("%w: what is to be copied has the schema version %q", catalog.ErrBadChange, source.schema)
			}
			return s, d.flush(ctx)
		}
		s.add(record)
		isThere := have != nil && have.Key == record.Key
		if !isThere || !bytes.Equal(have.Value, record.Value) {
			write, err := writeOf(record)
			if err == nil {
				err = d.write(ctx, write)
			}
			if err != nil {
				return nil, err
			}
		}
		if isThere {
			if have, err = there.next(ctx); err != nil {
				return nil, err
			}
		}
		if s.records%pageRecords == 0 {
			progress(s)
		}
	}
}

// writeOf returns what stores a record.
func writeOf(record *kv.Record) (kv.Write, error) {
	if !catalog.IsCounter(record.Key) {
		return kv.Write{Key: record.Key, Value: record.Value}, nil
	}
	count, err := strconv.ParseInt(string(record.Value), 10, 64)
	if err != nil {
		return kv.Write{}, fmt.Errorf("record %q is no number: %w: %w", record.Key, catalog.ErrCorrupt, err)
	}
	return kv.Write{Key: record.Key, Kind: kv.Count, Add: count}, nil
}

func (d *destination) write(ctx context.Context, write kv.Write) error {
	size := len(write.Key) + len(write.Value)
	if len(d.writes) == batchRecords || len(d.writes) > 0 && d.bytes+size > batchBytes {
		if err := d.flush(ctx); err != nil {
			return err
		}
	}
	d.writes, d.bytes = append(d.writes, write), d.bytes+size
	return nil
}

func (d *destination) flush(ctx context.Context) error {
	if len(d.writes) == 0 {
		return nil
	}
	if err := d.update(ctx, d.writes); err != nil {
		return err
	}
	d.made += int64(len(d.writes))
	d.writes, d.bytes = d.writes[:0], 0
	return nil
}

// update writes while the mark is there. What was asked twice is the same, so it is asked again by whoever goes on.
func (d *destination) update(ctx context.Context, writes []kv.Write) error {
	failed, err := d.engine.Update(ctx, []kv.Check{{Key: catalog.KeySchema, Value: d.mark}}, writes)
	if err == nil && len(failed) > 0 {
		err = fmt.Errorf("%w: somebody else has put the destination to another use", kv.ErrInUse)
	}
	return err
}

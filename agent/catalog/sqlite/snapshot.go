package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// snapshot is a read transaction. The log of the database grows for as long as it is open.
type snapshot struct {
	engine  *Engine
	reading *sql.Tx
	close   sync.Once
}

// Snapshot implements kv.Engine.
func (e *Engine) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	if e.isClosed() {
		return nil, kv.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	reading, err := e.reading.BeginTx(context.WithoutCancel(ctx), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("reading the catalog %s: %w", e.path, err)
	}
	e.held.Add(1)
	s := &snapshot{engine: e, reading: reading}
	if _, err := s.Scan(ctx, "", "", 1); err != nil { // its instant is that of the first read
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Scan implements kv.Snapshot.
func (s *snapshot) Scan(ctx context.Context, prefix, after string, limit int) ([]kv.Record, error) {
	records, err := list(ctx, s.reading, prefix, after, limit)
	if err != nil {
		return nil, fmt.Errorf("listing the catalog %s: %w", s.engine.path, err)
	}
	return records, nil
}

// Close implements kv.Snapshot.
func (s *snapshot) Close() (err error) {
	s.close.Do(func() {
		s.engine.held.Add(-1)
		if err = s.reading.Rollback(); errors.Is(err, sql.ErrTxDone) {
			err = nil
		}
	})
	return err
}

// Size implements kv.Engine.
func (e *Engine) Size(ctx context.Context) (kv.Size, error) {
	if e.isClosed() {
		return kv.Size{}, kv.ErrClosed
	}
	size := kv.Size{Records: -1}
	err := e.reading.QueryRowContext(ctx, "SELECT (page_count - freelist_count) * page_size "+
		"FROM pragma_page_count, pragma_freelist_count, pragma_page_size").Scan(&size.Bytes)
	if err != nil {
		return size, fmt.Errorf("measuring the catalog %s: %w", e.path, err)
	}
	return size, nil
}

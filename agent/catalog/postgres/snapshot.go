package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// snapshot is a transaction that reads, over a connection of its own.
type snapshot struct {
	engine *Engine
	single *pool
	mu     sync.Mutex
	from   *connection
}

// Snapshot implements kv.Engine. The server keeps old records while it is open.
func (e *Engine) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	s := &snapshot{engine: e, single: newPool(e.servers, e.target.hosts, 1, true)}
	if e.isClosed() {
		return nil, kv.ErrClosed
	}
	var err error
	if s.from, err = s.single.take(ctx); err == nil {
		// Its first statement takes the instant.
		_, err = s.from.Exec(ctx, in(e.target.schema,
			"begin isolation level repeatable read read only; select from $schema.list('', '', false, null, null, 1)")).ReadAll()
	}
	if err != nil {
		s.single.close()
		return nil, fmt.Errorf("reading all of the catalog %s: %w", e.target.location, err)
	}
	return s, nil
}

// Scan implements kv.Snapshot.
func (s *snapshot) Scan(ctx context.Context, prefix, after string, limit int) ([]kv.Record, error) {
	if s.engine.isClosed() {
		return nil, kv.ErrClosed
	}
	if limit <= 0 {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, err := s.from.query(ctx, in(s.engine.target.schema, listing), page(prefix, after, limit))
	if err != nil {
		return nil, fmt.Errorf("reading all of the catalog %s: %w; begin again", s.engine.target.location, err)
	}
	return records(rows), nil
}

// Close implements kv.Snapshot.
func (s *snapshot) Close() error {
	s.single.close()
	return nil
}

// Size implements kv.Engine. Records are as many as the server counted last.
func (e *Engine) Size(ctx context.Context) (size kv.Size, err error) {
	rows, err := e.ask(ctx, in(e.target.schema, `select c.reltuples::bigint, pg_total_relation_size(c.oid)
		from pg_class c where c.oid = to_regclass($name || '.records')`), &arguments{})
	if err == nil && len(rows) == 0 {
		err = errors.New("its table is gone")
	}
	if err != nil {
		return size, fmt.Errorf("measuring the catalog %s: %w", e.target.location, err)
	}
	return kv.Size{Records: number(rows[0][0]), Bytes: number(rows[0][1])}, nil
}

// Retries implements kv.Reporting.
func (e *Engine) Retries() map[string]int64 { return e.retries.Counts() }

// Replicas implements kv.Reporting: the standbys that are connected, by their application_name, of several of one name the one that is
// furthest behind. What one has on its disk counts. A role that may not read pg_stat_replication is told of none.
func (e *Engine) Replicas(ctx context.Context) ([]kv.Replica, error) {
	rows, err := e.ask(ctx, `select application_name::text, max(pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn))::bigint
		from pg_stat_replication where state in ('streaming', 'catchup') and flush_lsn is not null group by application_name`, &arguments{})
	if err != nil {
		return nil, fmt.Errorf("asking the catalog %s for its standbys: %w", e.target.location, err)
	}
	replicas := make([]kv.Replica, len(rows))
	for i, row := range rows {
		replicas[i] = kv.Replica{Name: string(row[0]), Up: true, LagBytes: max(0, number(row[1])), LagEntries: -1}
	}
	return replicas, nil
}

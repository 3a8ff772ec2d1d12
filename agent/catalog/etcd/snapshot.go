package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// countBytes is how much a database may have for its records to be counted.
const countBytes = 256 << 20

// snapshot is the records as of a revision, for as long as the members keep it.
type snapshot struct {
	engine   *Engine
	revision int64
}

// Snapshot implements kv.Engine. It lasts until the members compact its revision.
func (e *Engine) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	answer, err := e.ask(ctx, "reading", nil, clientv3.OpGet(e.told, clientv3.WithCountOnly()))
	if err != nil {
		return nil, err
	}
	return &snapshot{engine: e, revision: answer.Header.Revision}, nil
}

// Scan implements kv.Snapshot.
func (s *snapshot) Scan(ctx context.Context, prefix, after string, limit int) ([]kv.Record, error) {
	records, err := s.engine.list(ctx, prefix, after, limit, s.revision)
	if errors.Is(err, rpctypes.ErrCompacted) {
		err = fmt.Errorf("%w: its members have dropped what it was when this began: begin again, with a longer --auto-compaction-retention", err)
	}
	return records, err
}

// Close implements kv.Snapshot.
func (s *snapshot) Close() error { return nil }

// Size implements kv.Engine. Bytes are those of the whole cluster, of the member that has used the most.
func (e *Engine) Size(ctx context.Context) (kv.Size, error) {
	size := kv.Size{Records: -1}
	if e.closed.Load() {
		return size, kv.ErrClosed
	}
	var all error
	for _, is := range e.states(ctx) {
		if is.err != nil {
			all = errors.Join(all, is.err)
		} else if is.DbSize > size.Bytes {
			size.Bytes, size.Limit = is.DbSize, is.DbSizeQuota
		}
	}
	if size.Bytes == 0 {
		return size, fmt.Errorf("measuring the catalog %s: %w", e.location, all)
	}
	if size.Bytes <= countBytes {
		count := clientv3.OpGet(e.prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		answer, err := e.ask(ctx, "measuring", nil, count)
		if err != nil {
			return size, err
		}
		size.Records = answer.Responses[0].GetResponseRange().Count
	}
	return size, nil
}

// Retries implements kv.Reporting.
func (e *Engine) Retries() map[string]int64 { return e.retries.Counts() }

// Replicas implements kv.Reporting: the members that the address names. One is behind by what of the log it has not applied.
func (e *Engine) Replicas(ctx context.Context) ([]kv.Replica, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	states := e.states(ctx)
	newest := uint64(0)
	for _, is := range states {
		if is.err == nil {
			newest = max(newest, is.RaftIndex)
		}
	}
	replicas := make([]kv.Replica, len(states))
	for i, is := range states {
		replicas[i] = kv.Replica{Name: is.host, Up: is.err == nil, LagBytes: -1, LagEntries: -1}
		if is.err == nil {
			replicas[i].LagEntries = int64(newest - is.RaftAppliedIndex)
		}
	}
	return replicas, nil
}

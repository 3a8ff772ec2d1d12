package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// readAtOnce is how many keys one transaction reads. What is more is read as of the same revision.
const readAtOnce = 1024

// Engine is a kv.Engine over a cluster of etcd.
type Engine struct {
	client   *clientv3.Client
	location string
	hosts    []string
	prefix   string // of the keys of records
	told     string // the key whose value names those that were told of
	counters counters
	hub      kv.Hub
	listen   sync.Once
	hearing  context.Context
	deaf     context.CancelFunc // ends the watch
	work     sync.WaitGroup
	warnings []string
	retries  kv.Tally
	closed   atomic.Bool
}

var (
	_ kv.Engine    = (*Engine)(nil)
	_ kv.Reporting = (*Engine)(nil)
)

// Open connects to the cluster that address names: etcd://user@host:port,host:port, or etcds:// for TLS, with the files ?passwordfile=,
// ?cacert=, ?cert= and ?key=. The query parameter catalog names one of several catalogs in a cluster; default "restripe".
func Open(ctx context.Context, address string) (*Engine, error) {
	parsed, err := parse(address)
	if err != nil {
		return nil, err
	}
	if err := reach(ctx, parsed.hosts, parsed.config.TLS); err != nil {
		return nil, fmt.Errorf("connecting to the catalog %s: %w%s", parsed.location, err, cure(err))
	}
	client, err := clientv3.New(parsed.config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the catalog %s: %w%s", parsed.location, err, cure(err))
	}
	root := "restripe/" + parsed.name + "/"
	e := &Engine{client: client, location: parsed.location, hosts: parsed.hosts, prefix: root + "r/", told: root + "told"}
	e.retries = kv.NewTally(kv.RetryConflict, kv.RetryUnavailable)
	e.counters.begin()
	e.hub.Deafen()
	e.hearing, e.deaf = context.WithCancel(context.Background())
	if err := e.inspect(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Read implements kv.Engine.
func (e *Engine) Read(ctx context.Context, keys ...string) ([][]byte, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	for {
		values, err := e.readOnce(ctx, keys)
		if !errors.Is(err, rpctypes.ErrCompacted) {
			return values, err
		}
		// The revision of the first part is gone.
	}
}

func (e *Engine) readOnce(ctx context.Context, keys []string) ([][]byte, error) {
	values := make([][]byte, 0, len(keys))
	var revision int64
	for part := range slices.Chunk(keys, readAtOnce) {
		answer, err := e.ask(ctx, "reading", nil, e.gets(part, revision)...)
		if err != nil {
			return nil, err
		}
		if revision == 0 {
			revision = answer.Header.Revision
		}
		values = append(values, valuesIn(answer.Responses)...)
	}
	return values, nil
}

// gets are the reads of keys, as of a revision or as they are.
func (e *Engine) gets(keys []string, revision int64) []clientv3.Op {
	gets := make([]clientv3.Op, len(keys))
	for i, key := range keys {
		gets[i] = clientv3.OpGet(e.prefix+key, clientv3.WithRev(revision))
	}
	return gets
}

// valuesIn are what the reads of a transaction found; nil for nothing.
func valuesIn(responses []*etcdserverpb.ResponseOp) [][]byte {
	values := make([][]byte, len(responses))
	for i, response := range responses {
		if records := response.GetResponseRange().Kvs; len(records) > 0 {
			values[i] = valueOf(records[0].Value)
		}
	}
	return values
}

// valueOf is a value as it is handed out, which is never nil.
func valueOf(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

// Scan implements kv.Engine.
func (e *Engine) Scan(ctx context.Context, prefix, after string, limit int) ([]kv.Record, error) {
	return e.list(ctx, prefix, after, limit, 0)
}

// list returns records as of a revision, or, where it is 0, as they are.
func (e *Engine) list(ctx context.Context, prefix, after string, limit int, revision int64) ([]kv.Record, error) {
	from, end := e.prefix+prefix, clientv3.GetPrefixRangeEnd(e.prefix+prefix)
	if after >= prefix && after != "" {
		from = e.prefix + after + "\x00"
	}
	if from >= end || limit <= 0 {
		if e.closed.Load() {
			return nil, kv.ErrClosed
		}
		return nil, ctx.Err()
	}
	get := clientv3.OpGet(from, clientv3.WithRange(end), clientv3.WithLimit(int64(limit)), clientv3.WithRev(revision))
	answer, err := e.ask(ctx, "listing", nil, get)
	if err != nil {
		return nil, err
	}
	found := answer.Responses[0].GetResponseRange().Kvs
	records := make([]kv.Record, len(found))
	for i, record := range found {
		records[i] = kv.Record{Key: string(record.Key[len(e.prefix):]), Value: valueOf(record.Value)}
	}
	return records, nil
}

// Close implements kv.Engine.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	e.deaf()
	e.hub.Close()
	err := e.client.Close()
	e.work.Wait()
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("closing the catalog %s: %w", e.location, err)
	}
	return nil
}

package redis

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// snapshotSeconds is how long the server keeps what belongs to a snapshot that nobody reads.
const snapshotSeconds = 3600

// copyAll makes copies of the hash and the index at one instant. KEYS: hash, index, their copies. ARGV: seconds that the copies are kept.
var copyAll = rueidis.NewLuaScript(`
for i = 1, 2 do
  redis.call('COPY', KEYS[i], KEYS[i + 2], 'REPLACE')
  redis.call('EXPIRE', KEYS[i + 2], ARGV[1])
end
`)

// begin has updates save what they change. KEYS: set of snapshots, hash and index of what is saved. ARGV: name, seconds that they are kept.
// The hash and the index have a member at once, which is no key of a record, so that they are there as long as the snapshot is.
var begin = rueidis.NewLuaScript(`
redis.call('SADD', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[2], '', '')
redis.call('ZADD', KEYS[3], 0, '')
for i = 2, 3 do redis.call('EXPIRE', KEYS[i], ARGV[2]) end
`)

// snapshot is all records as of one instant: what was saved of those that were changed since, over the others as they are; or a copy of
// all of them.
type snapshot struct {
	engine      *Engine
	name        string
	saved       bool
	hash, index string // of what was saved, or the copies
}

// Snapshot implements kv.Engine. From then on the first update of a record saves what it was, or that it was not there, and takes memory
// for that. Gateways of a release before do not: of a catalog at which they may be at work all records are copied, which needs memory for
// them twice, and the server answers nobody meanwhile, for about a second for a million records.
func (e *Engine) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	versions, err := e.Read(ctx, schema.KeySchema, schema.KeyVersion)
	if err != nil {
		return nil, err
	}
	s := &snapshot{engine: e, name: rand.Text()}
	s.saved = versions[0] == nil || max(schema.VersionOf(versions[0]), schema.VersionOf(versions[1])) >= schema.Version
	seconds := strconv.Itoa(snapshotSeconds)
	if !s.saved {
		s.hash, s.index = e.records+":"+s.name, e.index+":"+s.name
		if err := copyAll.Exec(ctx, e.client, []string{e.records, e.index, s.hash, s.index}, []string{seconds}).Error(); notNil(err) {
			return nil, fmt.Errorf("copying the catalog %s on its server, as there may be gateways of the release before: %w", e.location, err)
		}
		return s, nil
	}
	s.hash, s.index = e.snapshots+":"+s.name, e.snapshots+":"+s.name+":index"
	if err := begin.Exec(ctx, e.client, []string{e.snapshots, s.hash, s.index}, []string{s.name, seconds}).Error(); notNil(err) {
		return nil, fmt.Errorf("beginning a snapshot of the catalog %s: %w", e.location, err)
	}
	return s, nil
}

// notNil reports whether a script failed, not that it returned nothing.
func notNil(err error) bool { return err != nil && !rueidis.IsRedisNil(err) }

// Scan implements kv.Snapshot.
func (s *snapshot) Scan(ctx context.Context, prefix, after string, limit int) ([]kv.Record, error) {
	e := s.engine
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	if !s.saved {
		if err := s.renew(ctx); err != nil {
			return nil, err
		}
		return e.list(ctx, s.hash, s.index, prefix, after, limit)
	}
	var records []kv.Record
	for len(records) < limit {
		// What is saved is read after what there is: a record that is changed between the two is saved then.
		now, err := e.list(ctx, e.records, e.index, prefix, after, limit)
		if err != nil {
			return nil, err
		}
		saved, err := e.list(ctx, s.hash, s.index, prefix, after, limit)
		if err != nil {
			return nil, err
		}
		if err := s.renew(ctx); err != nil {
			return nil, err
		}
		page, end := merge(now, saved, limit)
		if records = append(records, page...); end == "" {
			break
		}
		after = end
	}
	return records[:max(0, min(limit, len(records)))], nil
}

// renew keeps what belongs to a snapshot for longer, and checks that it is there.
func (s *snapshot) renew(ctx context.Context) error {
	b := s.engine.client.B()
	for _, answer := range s.engine.client.DoMulti(ctx,
		b.Expire().Key(s.hash).Seconds(snapshotSeconds).Build(), b.Expire().Key(s.index).Seconds(snapshotSeconds).Build()) {
		kept, err := answer.AsBool()
		if err != nil {
			return fmt.Errorf("listing a snapshot of the catalog %s: %w", s.engine.location, err)
		}
		if !kept {
			return fmt.Errorf("listing a snapshot of the catalog %s: the server has dropped it; begin again", s.engine.location)
		}
	}
	return nil
}

// merge returns the records of a snapshot by a page of those that there are and one of what was saved, each of up to limit: up to the key
// where the first of them ends, or all, where end is empty.
func merge(now, saved []kv.Record, limit int) (page []kv.Record, end string) {
	for _, full := range [][]kv.Record{now, saved} {
		if len(full) == limit {
			if last := full[limit-1].Key; end == "" || last < end {
				end = last
			}
		}
	}
	was := make(map[string]bool, len(saved))
	for _, record := range saved {
		was[record.Key] = true
		if value, found := bytes.CutPrefix(record.Value, []byte(savedValue)); found {
			page = append(page, kv.Record{Key: record.Key, Value: value})
		}
	}
	page = append(page, slices.DeleteFunc(now, func(record kv.Record) bool { return was[record.Key] })...)
	slices.SortFunc(page, func(a, b kv.Record) int { return strings.Compare(a.Key, b.Key) })
	if end != "" {
		page = slices.DeleteFunc(page, func(record kv.Record) bool { return record.Key > end })
	}
	return page, end
}

// Close implements kv.Snapshot.
func (s *snapshot) Close() error {
	e := s.engine
	if e.closed.Load() {
		return nil // the server drops it in time
	}
	b := e.client.B()
	commands := rueidis.Commands{b.Unlink().Key(s.hash, s.index).Build()}
	if s.saved {
		commands = append(commands, b.Srem().Key(e.snapshots).Member(s.name).Build())
	}
	for _, answer := range e.client.DoMulti(context.Background(), commands...) {
		if err := answer.Error(); err != nil {
			return fmt.Errorf("dropping a snapshot of the catalog %s: %w", e.location, err)
		}
	}
	return nil
}

// Size implements kv.Engine. Bytes are those of the whole server.
func (e *Engine) Size(ctx context.Context) (size kv.Size, err error) {
	if e.closed.Load() {
		return size, kv.ErrClosed
	}
	if size.Records, err = e.client.Do(ctx, e.client.B().Hlen().Key(e.records).Build()).AsInt64(); err != nil {
		return size, fmt.Errorf("measuring the catalog %s: %w", e.location, err)
	}
	memory, err := e.client.Do(ctx, e.client.B().Info().Section("memory").Build()).ToString()
	if err != nil {
		return size, fmt.Errorf("measuring the catalog %s: %w", e.location, err)
	}
	for line := range strings.Lines(memory) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "used_memory":
			size.Bytes, err = strconv.ParseInt(value, 10, 64)
		case "maxmemory":
			size.Limit, err = strconv.ParseInt(value, 10, 64)
		}
		if err != nil {
			return size, fmt.Errorf("measuring the catalog %s: %s of %q: %w", e.location, name, value, err)
		}
	}
	return size, nil
}

// Retries implements kv.Reporting: nothing is asked again.
func (e *Engine) Retries() map[string]int64 { return nil }

// Replicas implements kv.Reporting: those that the server says are connected.
func (e *Engine) Replicas(ctx context.Context) ([]kv.Replica, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	said, err := e.client.Do(ctx, e.client.B().Info().Section("replication").Build()).ToString()
	if err != nil {
		return nil, fmt.Errorf("asking the catalog %s for its replicas: %w", e.location, err)
	}
	replicas, err := replicasIn(said)
	if err != nil {
		return nil, fmt.Errorf("asking the catalog %s for its replicas: %w", e.location, err)
	}
	return replicas, nil
}

// replicasIn reads what a server says of its replication, with lines as slave0:ip=10.0.0.1,port=6379,state=online,offset=5,lag=1.
func replicasIn(said string) (replicas []kv.Replica, err error) {
	written := int64(0) // stands behind the replicas
	for line := range strings.Lines(said) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "master_repl_offset" {
			if written, err = strconv.ParseInt(value, 10, 64); err != nil {
				return nil, fmt.Errorf("%s of %q: %w", name, value, err)
			}
		}
		if !strings.HasPrefix(name, "slave") || !strings.HasPrefix(value, "ip=") {
			continue
		}
		fields := map[string]string{}
		for field := range strings.SplitSeq(value, ",") {
			key, value, _ := strings.Cut(field, "=")
			fields[key] = value
		}
		has, err := strconv.ParseInt(fields["offset"], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s of %q: %w", name, value, err)
		}
		replicas = append(replicas, kv.Replica{
			Name: net.JoinHostPort(fields["ip"], fields["port"]), Up: fields["state"] == "online", LagBytes: has, LagEntries: -1,
		})
	}
	for i := range replicas {
		replicas[i].LagBytes = max(0, written-replicas[i].LagBytes)
	}
	return replicas, nil
}

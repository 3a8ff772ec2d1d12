package redis

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// snapshotSeconds is how long the server keeps a copy that nobody reads.
const snapshotSeconds = 3600

// copyAll makes copies of the hash and the index at one instant, and says whether there was anything to copy. KEYS: hash, index, their
// copies. ARGV: seconds that the copies are kept.
var copyAll = rueidis.NewLuaScript(`
for i = 1, 2 do
  redis.call('COPY', KEYS[i], KEYS[i + 2], 'REPLACE')
  redis.call('EXPIRE', KEYS[i + 2], ARGV[1])
end
return redis.call('EXISTS', KEYS[1])
`)

// snapshot is a copy of all records on the server.
type snapshot struct {
	engine      *Engine
	hash, index string
	empty       bool
}

// Snapshot implements kv.Engine. The server answers nobody while it makes the copy, about a second for a million records, and needs
// memory for all of them twice.
func (e *Engine) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	name := rand.Text()
	s := &snapshot{engine: e, hash: e.records + ":" + name, index: e.index + ":" + name}
	keys := []string{e.records, e.index, s.hash, s.index}
	there, err := copyAll.Exec(ctx, e.client, keys, []string{strconv.Itoa(snapshotSeconds)}).AsBool()
	if s.empty = !there; err != nil {
		return nil, fmt.Errorf("copying the catalog %s on its server: %w", e.location, err)
	}
	return s, nil
}

// Scan implements kv.Snapshot.
func (s *snapshot) Scan(ctx context.Context, prefix, after string, limit int) ([]kv.Record, error) {
	e := s.engine
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	if s.empty {
		return nil, nil
	}
	for _, key := range []string{s.hash, s.index} {
		kept, err := e.client.Do(ctx, e.client.B().Expire().Key(key).Seconds(snapshotSeconds).Build()).AsBool()
		if err != nil {
			return nil, fmt.Errorf("listing a copy of the catalog %s: %w", e.location, err)
		}
		if !kept {
			return nil, fmt.Errorf("listing a copy of the catalog %s: the server has dropped it; begin again", e.location)
		}
	}
	return e.list(ctx, s.hash, s.index, prefix, after, limit)
}

// Close implements kv.Snapshot.
func (s *snapshot) Close() error {
	e := s.engine
	if s.empty || e.closed.Load() {
		return nil // the server drops it in time
	}
	if err := e.client.Do(context.Background(), e.client.B().Unlink().Key(s.hash, s.index).Build()).Error(); err != nil {
		return fmt.Errorf("dropping a copy of the catalog %s: %w", e.location, err)
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

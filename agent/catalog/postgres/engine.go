package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// How many connections an engine has at most, beside one that listens, one that asks for proofs,
// and those of snapshots: a server has a hundred by default.
const (
	readers = 6
	writers = 2
)

// closePatience is how long Close waits for updates that are on their way.
const closePatience = 5 * time.Second

// Engine is a kv.Engine over one PostgreSQL server, or over several of which one is the primary.
type Engine struct {
	target   *target
	servers  *servers
	reads    *pool
	updates  *pool
	mayLose  bool
	retries  kv.Tally
	warnings []string

	hub    kv.Hub
	listen sync.Once
	life   context.Context
	end    context.CancelFunc
	work   sync.WaitGroup // of writers, of who listens, and of who asks for proofs

	mu      sync.Mutex
	queue   []*request
	writing int
}

var (
	_ kv.Engine    = (*Engine)(nil)
	_ kv.Reporting = (*Engine)(nil)
)

// Open connects to the server that address names, postgres://user@host:port/database, with the parameters that PostgreSQL knows; with
// several hosts the one that is the primary is found. The parameter catalog names one of several catalogs in a database, which is the
// schema that it is in; default "restripe". The schema is made if it is not there.
func Open(ctx context.Context, address string) (*Engine, error) {
	target, err := parse(address)
	if err != nil {
		return nil, err
	}
	e := &Engine{target: target, retries: kv.NewTally(kv.RetrySerialization, kv.RetryLock, kv.RetryConnection)}
	e.hub.Deafen()
	e.life, e.end = context.WithCancel(context.Background())
	e.servers = newServers(target, e.life, &e.work)
	e.reads, e.updates = newPool(e.servers, target.hosts, readers, true), newPool(e.servers, target.hosts, writers, false)
	for range openTries {
		e.warnings = nil
		if err = e.inspect(ctx); !errors.Is(err, errReplaced) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// openTries is how often a server is looked at again, at Open, whose place another that the address names was just seen to have taken.
const openTries = 3

// MayLose implements kv.Forgetful: whether the server, as it was configured at Open, loses acknowledged updates in a crash, or
// has a standby that may take its place without the newest.
func (e *Engine) MayLose() bool { return e.mayLose }

// Warnings returns whole sentences about what the server, as it was configured at Open, may lose, and the cure.
func (e *Engine) Warnings() []string { return append([]string(nil), e.warnings...) }

// isClosed reports whether Close was called.
func (e *Engine) isClosed() bool { return e.life.Err() != nil }

// ask calls a function that reads, over a connection of its own for the time.
func (e *Engine) ask(ctx context.Context, sql string, a *arguments) ([][][]byte, error) {
	if e.isClosed() {
		return nil, kv.ErrClosed
	}
	c, err := e.reads.take(ctx)
	if err != nil {
		return nil, e.orClosed(err)
	}
	rows, err := c.query(ctx, sql, a)
	e.reads.give(c, unfit(err) || c.IsClosed() && ctx.Err() == nil) // of who has gone only that one is lost
	return rows, e.orClosed(err)
}

// query calls a function over a connection, which is closed if it broke.
func (c *connection) query(ctx context.Context, sql string, a *arguments) ([][][]byte, error) {
	result := c.ExecParams(ctx, sql, a.values, a.types, binaryForm, binaryForm).Read()
	if result.Err != nil && ctx.Err() != nil {
		return nil, errors.Join(ctx.Err(), result.Err)
	}
	return result.Rows, result.Err
}

// orClosed says why what failed after Close has failed.
func (e *Engine) orClosed(err error) error {
	if err != nil && e.isClosed() {
		return kv.ErrClosed
	}
	return err
}

// Read implements kv.Engine.
func (e *Engine) Read(ctx context.Context, keys ...string) ([][]byte, error) {
	if len(keys) == 0 && !e.isClosed() {
		return nil, nil
	}
	leads, digests := make([][]byte, len(keys)), make([][]byte, len(keys))
	for i, key := range keys {
		leads[i], digests[i], _ = split(key)
	}
	var a arguments
	a.byteas(leads)
	a.byteas(digests)
	rows, err := e.ask(ctx, in(e.target.schema, "select content from $schema.fetch($1, $2)"), &a)
	if err != nil {
		return nil, fmt.Errorf("reading the catalog %s: %w", e.target.location, err)
	}
	values := make([][]byte, len(keys))
	for i := range rows {
		values[i] = rows[i][0]
	}
	return values, nil
}

// Scan implements kv.Engine.
func (e *Engine) Scan(ctx context.Context, prefix, after string, limit int) ([]kv.Record, error) {
	if limit <= 0 && !e.isClosed() {
		return nil, nil
	}
	rows, err := e.ask(ctx, in(e.target.schema, listing), page(prefix, after, limit))
	if err != nil {
		return nil, fmt.Errorf("listing the catalog %s: %w", e.target.location, err)
	}
	return records(rows), nil
}

const listing = "select key, content from $schema.list($1, $2, $3, $4, $5, $6)"

// page returns what lists a page.
func page(prefix, after string, limit int) *arguments {
	from, beyond := after, true
	if after < prefix {
		from, beyond = prefix, false
	}
	var a arguments
	lead, _, tail := split(from)
	a.bytes(lead)
	a.bytes(tail)
	a.bool(beyond)
	if end := kv.Successor(prefix); end != "" {
		lead, _, tail := split(end)
		a.bytes(lead)
		a.bytes(tail)
	} else {
		a.bytes(nil)
		a.bytes(nil)
	}
	a.int(int64(limit))
	return &a
}

func records(rows [][][]byte) []kv.Record {
	records := make([]kv.Record, len(rows))
	for i, row := range rows {
		records[i] = kv.Record{Key: string(row[0]), Value: row[1]}
	}
	return records
}

// Close implements kv.Engine. It waits for updates that are on their way, but not for long.
func (e *Engine) Close() error {
	e.mu.Lock()
	waiting := e.queue
	e.queue = nil
	e.servers.mu.Lock() // as no work begins after it
	e.end()
	e.servers.mu.Unlock()
	e.mu.Unlock()
	for _, r := range waiting {
		r.settle(nil, kv.ErrClosed)
	}
	e.hub.Close()
	e.reads.close()
	e.servers.proofs.close()
	done := make(chan struct{})
	go func() {
		e.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		e.updates.close()
	case <-time.After(closePatience):
		e.updates.close()
		<-done
	}
	return nil
}

// unfit reports whether a server has said that it only reads.
func unfit(err error) bool {
	answer := refused(err)
	return answer != nil && answer.Code == "25006"
}

// refused returns what a server has said, nil for none. A server that says so has not done what it was asked, and goes on.
func refused(err error) *pgconn.PgError {
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.SeverityUnlocalized == "ERROR" {
		return answer
	}
	return nil
}

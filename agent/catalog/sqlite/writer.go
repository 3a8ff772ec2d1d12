package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// batchRequests and batchBytes bound what shares one transaction.
const (
	batchRequests = 256
	batchBytes    = 8 << 20
)

// request is one Update on its way.
type request struct {
	ctx    context.Context
	checks []kv.Check
	writes []kv.Write
	done   chan struct{} // closed once failed and err are set

	failed []int
	err    error
}

// Update implements kv.Engine. An Update that was taken up is carried out even if ctx ends, which is not waited for: a disk may
// hang for long.
func (e *Engine) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	r := &request{ctx: ctx, checks: slices.Clone(checks), writes: slices.Clone(writes), done: make(chan struct{})}
	for i := range r.checks { // the slices belong to the caller, who may be gone before they are used
		r.checks[i].Value = bytes.Clone(r.checks[i].Value)
	}
	for i := range r.writes {
		r.writes[i].Value = bytes.Clone(r.writes[i].Value)
	}
	if e.isClosed() {
		return nil, kv.ErrClosed
	}
	select {
	case e.requests <- r:
	case <-ctx.Done():
		return nil, fmt.Errorf("updating the catalog %s: %w", e.path, ctx.Err())
	case <-e.quit:
		return nil, kv.ErrClosed
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, fmt.Errorf("updating the catalog %s, which may take effect yet: %w", e.path, ctx.Err())
	case <-e.stopped:
		select {
		case <-r.done:
		default:
			return nil, kv.ErrClosed
		}
	}
	if r.err != nil {
		return nil, fmt.Errorf("updating the catalog %s: %w", e.path, r.err)
	}
	return r.failed, nil
}

// writer carries out Updates, one transaction at a time.
type writer struct {
	connection              *sql.Conn
	begin, commit, rollback *sql.Stmt
	get, set, remove        *sql.Stmt

	cache  *cache
	staged map[string][]byte // by the transaction under way; nil: removed

	log      string // path of the file that is written ahead to
	emptying time.Time
}

func newWriter(ctx context.Context, database *sql.DB, cache *cache, log string) (*writer, error) {
	connection, err := database.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{connection: connection, cache: cache, log: log}
	for _, s := range []struct {
		statement **sql.Stmt
		text      string
	}{
		{&w.begin, "BEGIN IMMEDIATE"},
		{&w.commit, "COMMIT"},
		{&w.rollback, "ROLLBACK"},
		{&w.get, "SELECT value FROM records WHERE key = ?"},
		{&w.set, "INSERT INTO records (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"},
		{&w.remove, "DELETE FROM records WHERE key = ?"},
	} {
		if *s.statement, err = connection.PrepareContext(ctx, s.text); err != nil {
			return nil, errors.Join(fmt.Errorf("preparing %q: %w", s.text, err), connection.Close())
		}
	}
	return w, nil
}

// run takes whatever is queued into one transaction, again and again, until the engine is closed.
func (w *writer) run(e *Engine) {
	for {
		select {
		case <-e.quit:
			w.stop()
			return
		case first := <-e.requests:
			w.answer(gather(first, e.requests), &e.hub)
			if e.held.Load() == 0 {
				w.boundLog()
			}
		}
	}
}

// logBytes is how long the log may get. SQLite writes it back by itself every 4 MiB, but begins it anew only if nobody reads at
// that moment, which may never be.
const logBytes = 32 << 20

// boundLog empties the log if it has become long, for which readers are waited for a little.
func (w *writer) boundLog() {
	info, err := os.Stat(w.log)
	if err != nil || info.Size() < logBytes || time.Since(w.emptying) < time.Second {
		return
	}
	// A failure has no one to go to: the log stays long, and the next commit tells what is wrong with the database.
	for _, pragma := range []string{"busy_timeout = 200", "wal_checkpoint(TRUNCATE)", "busy_timeout = " + busyMilliseconds} {
		_, _ = w.connection.ExecContext(context.Background(), "PRAGMA "+pragma)
	}
	w.emptying = time.Now()
}

// stop ends the connection. Its error has no one to go to: everything acknowledged was committed, and closing the
// database reports what is wrong with it.
func (w *writer) stop() {
	for _, statement := range []*sql.Stmt{w.begin, w.commit, w.rollback, w.get, w.set, w.remove} {
		_ = statement.Close()
	}
	_ = w.connection.Close()
}

func gather(first *request, requests <-chan *request) []*request {
	batch, size := []*request{first}, first.size()
	for len(batch) < batchRequests && size < batchBytes {
		select {
		case next := <-requests:
			batch, size = append(batch, next), size+next.size()
		default:
			return batch
		}
	}
	return batch
}

func (r *request) size() int {
	size := 0
	for _, write := range r.writes {
		size += len(write.Key) + len(write.Value)
	}
	return size
}

// answer carries out a batch and tells every request how it ended, and hub of what was made.
func (w *writer) answer(batch []*request, hub *kv.Hub) {
	err := w.transact(batch)
	for _, r := range batch {
		if err != nil {
			r.failed, r.err = nil, err
		}
		if r.err == nil && len(r.failed) == 0 {
			hub.Made(r.writes)
		}
		close(r.done)
	}
}

// transact carries out a batch. Its error is everybody's; a request's own goes into the request.
func (w *writer) transact(batch []*request) (err error) {
	ctx := context.Background() // the transaction is shared: no single caller may break it
	if _, err := w.begin.ExecContext(ctx); err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	w.staged = map[string][]byte{}
	for _, r := range batch {
		if r.err = r.ctx.Err(); r.err != nil {
			continue
		}
		if err := w.apply(ctx, r); err != nil {
			return w.undo(ctx, err)
		}
	}
	w.cache.begin(w.staged)
	if _, err := w.commit.ExecContext(ctx); err != nil {
		w.cache.end(false)
		return w.undo(ctx, fmt.Errorf("committing: %w", err))
	}
	w.cache.end(true)
	return nil
}

// value returns that of a key as the transaction under way sees it; nil: it is absent. Nobody changes it.
func (w *writer) value(ctx context.Context, key string) ([]byte, error) {
	if value, has := w.inMemory(key); has {
		return value, nil
	}
	return get(ctx, w.get, key)
}

// inMemory is value of what need not be read for it.
func (w *writer) inMemory(key string) (value []byte, has bool) {
	if value, has = w.staged[key]; !has {
		value, has = w.cache.one(key)
	}
	return value, has
}

func (w *writer) undo(ctx context.Context, cause error) error {
	if _, err := w.rollback.ExecContext(ctx); err != nil {
		// SQLite rolls back by itself after some errors; the next transaction tells whether it did.
		return fmt.Errorf("%w; rolling back: %w", cause, err)
	}
	return cause
}

// apply evaluates the checks of one request and, if all hold, makes its writes.
func (w *writer) apply(ctx context.Context, r *request) error {
	for i, check := range r.checks {
		value, err := w.value(ctx, check.Key)
		if err != nil {
			return fmt.Errorf("checking record %q: %w", check.Key, err)
		}
		if (value == nil) != (check.Value == nil) || !bytes.Equal(value, check.Value) {
			r.failed = append(r.failed, i)
		}
	}
	if len(r.failed) > 0 {
		return nil
	}
	counts := make(map[int][]byte)
	for i, write := range r.writes {
		if write.Kind != kv.Increment {
			continue
		}
		value, err := w.value(ctx, write.Key)
		if err != nil {
			return fmt.Errorf("reading record %q: %w", write.Key, err)
		}
		count := int64(0)
		if value != nil {
			if count, err = strconv.ParseInt(string(value), 10, 64); err != nil {
				r.err = fmt.Errorf("incrementing record %q: %w", write.Key, err)
				return nil
			}
		}
		counts[i] = strconv.AppendInt(nil, count+write.Add, 10)
	}
	for i, write := range r.writes {
		if err := w.write(ctx, write, counts[i]); err != nil {
			return fmt.Errorf("writing record %q: %w", write.Key, err)
		}
	}
	return nil
}

func (w *writer) write(ctx context.Context, write kv.Write, count []byte) (err error) {
	value := write.Value // which is the request's own
	switch write.Kind {
	case kv.Remove:
		value = nil
	case kv.Count:
		value = strconv.AppendInt(nil, write.Add, 10)
	case kv.Increment:
		value = count
	default:
		value = present(value)
	}
	was, isKnown := w.inMemory(write.Key)
	if isKnown && (was == nil) == (value == nil) && bytes.Equal(was, value) {
		return nil // as it is: of the groups that objects leave most are noted already
	}
	if value == nil {
		_, err = w.remove.ExecContext(ctx, []byte(write.Key))
	} else {
		_, err = w.set.ExecContext(ctx, []byte(write.Key), value)
	}
	w.staged[write.Key] = value
	return err
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/flock"
	_ "modernc.org/sqlite" // registers the driver
)

// The file format: application_id and user_version of the database.
const (
	applicationID = 0x52535450
	formatVersion = 1
)

// busyMilliseconds is how long whoever finds the database locked waits.
const busyMilliseconds = "10000"

// pageSize is of files that are made now. A key and its value lie in one page up to a quarter of it, and beyond that take a page of their
// own besides: the record of a group has about 1.5 kB. An older file keeps the pages it has.
const pageSize = "page_size(8192)"

// readers is how many reads run at once.
const readers = 4

// Engine is a kv.Engine over one database file.
type Engine struct {
	path     string
	lock     *os.File
	reading  *sql.DB
	writing  *sql.DB
	get      *sql.Stmt
	cache    *cache
	requests chan *request
	quit     chan struct{}
	stopped  chan struct{}
	hub      kv.Hub
	held     atomic.Int64 // snapshots that are open
	close    sync.Once
	closeErr error
}

var _ kv.Engine = (*Engine)(nil)

// Open opens the database at path, and creates it if there is none. It fails with kv.ErrInUse if another Engine has
// it open, and with kv.ErrNewer if a newer release wrote it.
func Open(ctx context.Context, path string) (engine *Engine, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening the catalog: %w", err)
	}
	e := &Engine{
		path: path, cache: newCache(cacheBytes),
		requests: make(chan *request, 1024), quit: make(chan struct{}), stopped: make(chan struct{}),
	}
	if e.lock, err = lockFile(path); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.release())
		}
	}()
	if err := makeFile(path); err != nil {
		return nil, fmt.Errorf("opening the catalog %s: %w", path, err)
	}
	if e.writing, err = sql.Open("sqlite", dataSource(path)); err != nil {
		return nil, fmt.Errorf("opening the catalog %s: %w", path, err)
	}
	e.writing.SetMaxOpenConns(1)
	if err := e.prepareFile(ctx); err != nil {
		return nil, fmt.Errorf("opening the catalog %s: %w", path, err)
	}
	if err := closeToOthers(path); err != nil {
		return nil, fmt.Errorf("closing the catalog %s to other users: %w", path, err)
	}
	if e.reading, err = sql.Open("sqlite", dataSource(path)); err != nil {
		return nil, fmt.Errorf("opening the catalog %s: %w", path, err)
	}
	e.reading.SetMaxOpenConns(readers)
	e.reading.SetMaxIdleConns(readers)
	if e.get, err = e.reading.PrepareContext(ctx, "SELECT value FROM records WHERE key = ?"); err != nil {
		return nil, fmt.Errorf("opening the catalog %s: %w", path, err)
	}
	w, err := newWriter(ctx, e.writing, e.cache, path+logSuffix)
	if err != nil {
		return nil, fmt.Errorf("opening the catalog %s: %w", path, err)
	}
	go func() {
		defer close(e.stopped)
		w.run(e)
	}()
	return e, nil
}

func dataSource(path string) string {
	pragmas := url.Values{
		// The driver sets the journal last, after which the size of pages is settled.
		"_journal_mode": {"WAL"},
		"_pragma":       {pageSize, "synchronous(FULL)", "busy_timeout(" + busyMilliseconds + ")", "cache_size(-16384)"},
	}
	return "file://" + (&url.URL{Path: path}).EscapedPath() + "?" + pragmas.Encode()
}

// prepareFile creates the table, or sees that the file is a catalog this release understands.
func (e *Engine) prepareFile(ctx context.Context) error {
	var tables, application, version int
	if err := e.writing.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return fmt.Errorf("reading it as a SQLite database: %w", err)
	}
	if tables == 0 {
		for _, statement := range []string{
			"BEGIN IMMEDIATE",
			"CREATE TABLE records (key BLOB PRIMARY KEY NOT NULL, value BLOB NOT NULL) WITHOUT ROWID",
			fmt.Sprintf("PRAGMA application_id = %d", applicationID),
			fmt.Sprintf("PRAGMA user_version = %d", formatVersion),
			"COMMIT",
		} {
			if _, err := e.writing.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("creating it: %w", err)
			}
		}
		return syncDirectory(filepath.Dir(e.path))
	}
	if err := e.writing.QueryRowContext(ctx, "PRAGMA application_id").Scan(&application); err != nil {
		return fmt.Errorf("reading its kind: %w", err)
	}
	if application != applicationID {
		return errors.New("it is a SQLite database of another application: name another file")
	}
	if err := e.writing.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return fmt.Errorf("reading its version: %w", err)
	}
	if version > formatVersion {
		return fmt.Errorf("%w: its file format has version %d, this program knows versions up to %d: use a newer release of restripe",
			kv.ErrNewer, version, formatVersion)
	}
	return nil
}

func syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("making its directory durable: %w", err)
	}
	if err := errors.Join(directory.Sync(), directory.Close()); err != nil {
		return fmt.Errorf("making its directory durable: %w", err)
	}
	return nil
}

// Read implements kv.Engine.
func (e *Engine) Read(ctx context.Context, keys ...string) ([][]byte, error) {
	if e.isClosed() {
		return nil, kv.ErrClosed
	}
	values, err := e.read(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("reading the catalog %s: %w", e.path, err)
	}
	return values, nil
}

// ReadNow implements kv.Nearby.
func (e *Engine) ReadNow(key string) (value []byte, known bool) {
	if e.isClosed() {
		return nil, false
	}
	return e.cache.one(key)
}

// ReadAllNow implements kv.Nearby.
func (e *Engine) ReadAllNow(keys []string) (values [][]byte, known bool) {
	if e.isClosed() {
		return nil, false
	}
	return e.cache.all(keys)
}

// read returns the values of keys as of one instant, from memory as far as it has them.
func (e *Engine) read(ctx context.Context, keys []string) (values [][]byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	values, missing, at := e.cache.get(keys)
	if len(missing) == 0 {
		return values, nil
	}
	rest := make([]string, len(missing))
	for i, index := range missing {
		rest[i] = keys[index]
	}
	read, err := e.readFile(ctx, rest)
	if err != nil {
		return nil, err
	}
	e.cache.fill(rest, read, at)
	if len(rest) < len(keys) && !e.cache.isSince(at) {
		return e.readFile(ctx, keys)
	}
	for i, index := range missing {
		values[index] = read[i]
	}
	return values, nil
}

func (e *Engine) readFile(ctx context.Context, keys []string) (values [][]byte, err error) {
	if len(keys) == 1 {
		value, err := get(ctx, e.get, keys[0])
		return [][]byte{value}, err
	}
	// One read transaction is one instant.
	reading, err := e.reading.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() {
		if ended := reading.Rollback(); ended != nil && !errors.Is(ended, sql.ErrTxDone) {
			err = errors.Join(err, ended)
		}
	}()
	statement := reading.StmtContext(ctx, e.get)
	values = make([][]byte, len(keys))
	for i, key := range keys {
		if values[i], err = get(ctx, statement, key); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// get returns the value of key, nil if it is absent.
func get(ctx context.Context, statement *sql.Stmt, key string) ([]byte, error) {
	var value []byte
	switch err := statement.QueryRowContext(ctx, []byte(key)).Scan(&value); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return present(value), nil
}

// present returns value such that an empty one differs from an absent one.
func present(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	return value
}

// Scan implements kv.Engine.
func (e *Engine) Scan(ctx context.Context, prefix, after string, limit int) (records []kv.Record, err error) {
	if e.isClosed() {
		return nil, kv.ErrClosed
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("listing the catalog %s: %w", e.path, err)
		}
	}()
	return list(ctx, e.reading, prefix, after, limit)
}

// list reads one page.
func list(ctx context.Context, from interface {
	QueryContext(ctx context.Context, query string, arguments ...any) (*sql.Rows, error)
}, prefix, after string, limit int) (records []kv.Record, err error) {
	query, arguments := "SELECT key, value FROM records WHERE key > ?", []any{[]byte(after)}
	if after < prefix {
		query, arguments = "SELECT key, value FROM records WHERE key >= ?", []any{[]byte(prefix)}
	}
	if end := kv.Successor(prefix); end != "" {
		query, arguments = query+" AND key < ?", append(arguments, []byte(end))
	}
	rows, err := from.QueryContext(ctx, query+" ORDER BY key LIMIT ?", append(arguments, max(0, limit))...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var key, value []byte
		if err := rows.Scan(&key, &value); err != nil {
			return nil, err
		}
		records = append(records, kv.Record{Key: string(key), Value: present(value)})
	}
	return records, rows.Err()
}

// Watch implements kv.Engine: the process that has the file open makes every change.
func (e *Engine) Watch(ctx context.Context, keys ...string) <-chan struct{} {
	return e.hub.Watch(ctx, keys...)
}

// Close implements kv.Engine. Updates that have not been taken up fail; the one being written is finished.
func (e *Engine) Close() error {
	e.close.Do(func() {
		close(e.quit)
		<-e.stopped
		e.hub.Close()
		if err := e.release(); err != nil {
			e.closeErr = fmt.Errorf("closing the catalog %s: %w", e.path, err)
		}
	})
	return e.closeErr
}

func (e *Engine) isClosed() bool {
	select {
	case <-e.quit:
		return true
	default:
		return false
	}
}

// release gives back what was opened, the lock last.
func (e *Engine) release() error {
	var errs []error
	if e.get != nil {
		errs = append(errs, e.get.Close())
	}
	for _, database := range []*sql.DB{e.reading, e.writing} {
		if database != nil {
			errs = append(errs, database.Close())
		}
	}
	return errors.Join(append(errs, flock.Release(e.lock))...)
}

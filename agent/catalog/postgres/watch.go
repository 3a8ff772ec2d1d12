package postgres

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// How often is asked what was told: as a second way where the server says it at once, and as the only one else, which is asked sooner
// where something was told just now. And how long after an error nothing is asked.
const (
	askEvery   = 2 * time.Second
	askAlone   = 250 * time.Millisecond
	askSoon    = 20 * time.Millisecond
	againAfter = 200 * time.Millisecond
)

// Watch implements kv.Engine. All watches share one connection, which the first makes.
func (e *Engine) Watch(ctx context.Context, keys ...string) <-chan struct{} {
	e.listen.Do(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if !e.isClosed() {
			e.work.Go(e.hear)
		}
	})
	return e.hub.Watch(ctx, keys...)
}

// listener knows by which transaction each key was told of last, if it is not of those before since, which are over and done with.
type listener struct {
	engine *Engine
	since  uint64
	heard  map[string]uint64
	news   bool // something was passed on since this was unset
}

// hear listens until the engine is closed.
func (e *Engine) hear() {
	l := &listener{engine: e, heard: map[string]uint64{}}
	for !e.isClosed() {
		l.session(e.life)
		e.hub.Deafen()
		select {
		case <-e.life.Done():
		case <-time.After(againAfter):
		}
	}
}

// session listens over one connection until it breaks, of which others learn why.
func (l *listener) session(ctx context.Context) {
	heard := func(_ *pgconn.PgConn, told *pgconn.Notification) {
		at, key, _ := strings.Cut(told.Payload, " ")
		transaction, errAt := strconv.ParseUint(at, 10, 64)
		name, errKey := base64.StdEncoding.DecodeString(key)
		if told.Channel == channel(l.engine.target.schema) && errAt == nil && errKey == nil && transaction >= l.since {
			l.told(string(name), transaction)
		}
	}
	var hosts []*pgconn.Config
	for _, host := range l.engine.target.hosts {
		host = host.Copy()
		host.OnNotification = heard
		hosts = append(hosts, host)
	}
	single := newPool(l.engine.servers, hosts, 1, true)
	defer single.close()
	c, err := single.take(ctx)
	if err != nil {
		return
	}
	soon, every := askSoon, askAlone
	if !c.pooler { // what shares sessions listens in one, and nobody knows in whose
		soon, every = askEvery, askEvery
		if _, err := c.words(ctx, "listen "+channel(l.engine.target.schema)); err != nil {
			return
		}
	}
	pause := soon
	for first := true; ctx.Err() == nil; first = false {
		l.news = false
		if l.ask(ctx, c, !first) != nil {
			return
		}
		if pause = min(2*pause, every); l.news {
			pause = soon
		}
		if first {
			l.engine.hub.Hears()
		}
		until, cancel := context.WithTimeout(ctx, pause)
		for until.Err() == nil {
			if err := c.WaitForNotification(until); err != nil && !pgconn.Timeout(err) {
				cancel()
				return
			}
		}
		cancel()
	}
}

// ask looks for what was told since the oldest transaction that had not ended when it was asked before, and passes it on or not.
func (l *listener) ask(ctx context.Context, c *connection, pass bool) error {
	limited, cancel := context.WithTimeout(ctx, silentTimeout)
	defer cancel()
	if err := l.engine.servers.assure(limited, c); err != nil {
		return err
	}
	var a arguments
	a.add(pgtype.XID8OID, binary.BigEndian.AppendUint64(nil, l.since))
	rows, err := c.query(limited, in(l.engine.target.schema, "select key, at, next from $schema.told_since($1)"), &a)
	if err != nil {
		return err
	}
	for _, row := range rows {
		switch key := string(row[0]); {
		case row[0] == nil:
			l.since = binary.BigEndian.Uint64(row[2])
		case pass:
			l.told(key, binary.BigEndian.Uint64(row[1]))
		default:
			l.heard[key] = binary.BigEndian.Uint64(row[1])
		}
	}
	for key, at := range l.heard {
		if at < l.since {
			delete(l.heard, key)
		}
	}
	return nil
}

// told passes on that a transaction told of a key, once. Transactions do not end in the order of their numbers.
func (l *listener) told(key string, transaction uint64) {
	if l.heard[key] != transaction {
		l.heard[key], l.news = transaction, true
		l.engine.hub.Told(key)
	}
}

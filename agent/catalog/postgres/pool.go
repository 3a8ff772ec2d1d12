package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// errStandby refuses a server that follows another: what it has may be old.
var errStandby = errors.New("the server is a standby or only reads: name the primary, or all servers as postgres://user@host,host/database")

// origin is which server a connection leads to. A standby that takes over begins a new timeline.
type origin struct {
	system   string
	timeline uint64
}

// pool keeps connections. None is used again after an error.
type pool struct {
	config *pgconn.Config
	slots  chan struct{} // one for each connection that is used

	mu     sync.Mutex
	idle   []*connection
	open   map[*connection]bool
	newest origin
	closed bool
}

// connection is one of a pool.
type connection struct {
	*pgconn.PgConn
	wire    net.Conn
	origin  origin
	pooler  bool // something between shares the server's sessions
	doubted bool // the server warned of what it answers
}

func newPool(config *pgconn.Config, most int) *pool {
	p := &pool{config: config, slots: make(chan struct{}, most), open: map[*connection]bool{}}
	return p
}

// take returns a connection, which the caller gives back.
func (p *pool) take(ctx context.Context) (*connection, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	for !p.closed && len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if p.follows(c.origin) && !ended(c.wire) {
			p.mu.Unlock()
			return c, nil
		}
		p.drop(c)
	}
	p.mu.Unlock()
	c, err := p.connect(ctx)
	if err != nil {
		<-p.slots
	}
	return c, err
}

// give takes a connection back. broken says that it is of no use any more; then the idle ones are most likely not either.
func (p *pool) give(c *connection, broken bool) {
	defer func() { <-p.slots }()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !broken && !p.closed && !c.IsClosed() && len(p.idle) < cap(p.slots) {
		p.idle = append(p.idle, c)
		return
	}
	p.drop(c)
	if broken {
		for _, other := range p.idle {
			p.drop(other)
		}
		p.idle = nil
	}
}

// drop ends a connection. The caller holds mu.
func (p *pool) drop(c *connection) {
	delete(p.open, c)
	_ = c.wire.Close() // the other side may have done so
}

// connect makes a connection and finds out where it leads.
func (p *pool) connect(ctx context.Context) (*connection, error) {
	c := &connection{}
	config := p.config.Copy()
	config.OnNotice = func(_ *pgconn.PgConn, notice *pgconn.Notice) {
		c.doubted = c.doubted || notice.SeverityUnlocalized == "WARNING"
	}
	validate := config.ValidateConnect
	config.ValidateConnect = func(ctx context.Context, connection *pgconn.PgConn) (err error) {
		if validate != nil {
			if err := validate(ctx, connection); err != nil {
				return err
			}
		}
		c.origin, c.pooler, err = originOf(ctx, connection)
		return err
	}
	made, err := pgconn.ConnectConfig(context.WithValue(ctx, connecting{}, true), config)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	c.PgConn, c.wire, c.doubted = made, made.Conn(), false
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.wire.Close() // nobody knows of it
		return nil, kv.ErrClosed
	}
	if !p.follows(c.origin) {
		_ = c.wire.Close() // nobody knows of it
		return nil, fmt.Errorf("connecting: another server has taken the place of this one, which is at timeline %d, not %d",
			c.origin.timeline, p.newest.timeline)
	}
	p.newest = c.origin
	p.open[c] = true
	return c, nil
}

// follows reports whether a server is not one whose place another has taken. The caller holds mu.
func (p *pool) follows(o origin) bool {
	return o.system != p.newest.system || o.timeline >= p.newest.timeline
}

// originOf asks a server which one it is.
func originOf(ctx context.Context, connection *pgconn.PgConn) (origin, bool, error) {
	result := connection.ExecParams(ctx, `select pg_is_in_recovery() or current_setting('transaction_read_only')::boolean, pg_backend_pid(),
		(select system_identifier from pg_control_system()),
		case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_lsn()), 8) end`, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return origin{}, false, fmt.Errorf("asking which server it is: %w", result.Err)
	}
	row := result.Rows[0]
	if string(row[0]) == "t" {
		return origin{}, false, errStandby
	}
	timeline, err := strconv.ParseUint(string(row[3]), 16, 64)
	if err != nil {
		return origin{}, false, fmt.Errorf("asking which server it is: its timeline is %q", row[3])
	}
	return origin{system: string(row[2]), timeline: timeline}, string(row[1]) != strconv.Itoa(int(connection.PID())), nil
}

// close ends all connections, also those that are used.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.open {
		p.drop(c)
	}
	p.idle = nil
}

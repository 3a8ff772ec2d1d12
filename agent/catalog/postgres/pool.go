package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// errStandby refuses a server that follows another: what it has may be old.
var errStandby = errors.New("the server is a standby or only reads: name the primary, or all servers as postgres://user@host,host/database")

// pool keeps connections. None is used again after an error.
type pool struct {
	*servers
	hosts   []*pgconn.Config
	assured bool          // what is read over its connections has to be what the primary has
	slots   chan struct{} // one for each connection that is used

	// Guarded by the mutex of the servers.
	idle   []*connection
	closed bool
}

// connection is one of a pool.
type connection struct {
	*pgconn.PgConn
	owner   *pool
	wire    net.Conn
	made    time.Time
	origin  origin
	pooler  bool // something between shares the server's sessions
	doubted bool // the server warned of what it answers
}

func newPool(servers *servers, hosts []*pgconn.Config, most int, assured bool) *pool {
	return &pool{servers: servers, hosts: hosts, assured: assured, slots: make(chan struct{}, most)}
}

// take returns a connection, which the caller gives back.
func (p *pool) take(ctx context.Context) (*connection, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for attempt := 0; ; attempt++ {
		c, err := p.next(ctx)
		if err != nil {
			<-p.slots
			return nil, err
		}
		if !p.assured {
			return c, nil
		}
		err = p.assure(ctx, c)
		switch {
		case err == nil:
			return c, nil
		case !errors.Is(err, errReplaced) || attempt == cap(p.slots):
			p.give(c, false)
			return nil, err
		}
		p.mu.Lock()
		p.drop(c)
		p.mu.Unlock()
	}
}

// next returns an idle connection, or else a new one.
func (p *pool) next(ctx context.Context) (*connection, error) {
	p.mu.Lock()
	for !p.closed && len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.origin == p.newest && !ended(c.wire) {
			p.mu.Unlock()
			return c, nil
		}
		p.drop(c)
	}
	p.mu.Unlock()
	return p.connect(ctx)
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

// connect makes a connection to the server that is the first to show that it may be used. All are tried at once, for one that does not
// answer takes as long as who waits has patience.
func (p *pool) connect(ctx context.Context) (made *connection, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		host int
		c    *connection
		err  error
	}
	outcomes := make(chan outcome, len(p.hosts))
	for i, host := range p.hosts {
		go func() {
			c, err := p.reach(ctx, host)
			outcomes <- outcome{i, c, err}
		}()
	}
	failures := make([]error, len(p.hosts))
	for range p.hosts {
		each := <-outcomes
		switch {
		case each.err != nil:
			failures[each.host] = each.err
		case made != nil:
			_ = each.c.wire.Close() // nobody knows of it
		default:
			made = each.c
			cancel()
		}
	}
	if made == nil {
		return nil, fmt.Errorf("connecting: %w", errors.Join(failures...))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || made.origin != p.newest {
		_ = made.wire.Close() // nobody knows of it
		if p.closed {
			return nil, kv.ErrClosed
		}
		return nil, fmt.Errorf("connecting: %w", errReplaced)
	}
	p.open[made] = true
	return made, nil
}

// reach makes a connection to one server and finds out which it is.
func (p *pool) reach(ctx context.Context, host *pgconn.Config) (*connection, error) {
	c := &connection{owner: p}
	config := host.Copy()
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
		if c.origin, c.pooler, err = originOf(ctx, connection); err != nil {
			return err
		}
		return p.meet(c.origin)
	}
	made, err := pgconn.ConnectConfig(context.WithValue(ctx, connecting{}, true), config)
	if err != nil {
		return nil, err
	}
	c.PgConn, c.wire, c.made, c.doubted = made, made.Conn(), time.Now(), false
	return c, nil
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
		if c.owner == p {
			p.drop(c)
		}
	}
	p.idle = nil
}

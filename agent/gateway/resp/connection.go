package resp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/values"
)

const (
	writePatience = time.Minute // without progress
	writeBytes    = 256 << 10   // that have to be taken in that time
)

// connection is one client. What it remembers is changed by commands alone that nothing else of the client runs beside.
type connection struct {
	server *Server
	conn   net.Conn
	reader reader
	lines  pipeline

	gathered []*call // that are read, and not begun

	number  int64
	since   time.Time
	session *values.Session
	ahead   *values.Session // the same one, for commands that are answered after others
	class   string          // that values are put into; empty: by their keys
	name    string
	library [2]string // name and version
	version int       // of the protocol
	replies replyMode
	quit    bool // once what was asked is answered

	queue   *queue                 // after MULTI
	watched map[string]block.Stamp // revisions
	broken  *atomic.Bool           // a watched key was read with another one since
}

// replyMode is which commands the client wants answered.
type replyMode int

const (
	replyOn replyMode = iota
	replyOff
	replySkip // for the next
)

func newConnection(server *Server, conn net.Conn) *connection {
	c := &connection{server: server, conn: conn, number: server.clients.Add(1), since: time.Now()}
	c.reset()
	c.reader = reader{limits: &server.limits, source: source{conn: conn, waits: c.waits}}
	c.lines.out.to = conn
	return c
}

// reset makes a connection what it was at first.
func (c *connection) reset() {
	c.become(c.server.store.Anybody())
	c.class, c.name, c.version, c.replies = "", "", 2, replyOn
	c.dropQueue()
	c.watched = nil
}

// become has the client be whom a session is of.
func (c *connection) become(session *values.Session) { c.session, c.ahead = session, session.Ahead() }

// Serve carries out what the client sends, until one of the two ends.
func (c *connection) Serve(ctx context.Context, state *tls.ConnectionState) {
	defer func() {
		c.carryGathered()
		c.lines.writer.Wait()
		c.dropQueue()
		c.reader.release()
	}()
	if state != nil {
		if err := c.enter(state); err != nil {
			c.server.log.Info("a client of Redis was not let in", "from", c.conn.RemoteAddr().String(), "cause", err)
			return
		}
	}
	for !c.quit && !c.lines.out.broken() {
		err := c.reader.wait()
		x := calls.Get().(*call)
		x.client = c
		c.reader.known = !c.session.NeedsLogin()
		if err == nil {
			err = c.reader.next(ctx, &x.command)
		}
		if err != nil {
			c.end(x, err)
			return
		}
		if len(x.arguments) == 0 && x.refusal == nil {
			x.drop()
			continue
		}
		c.carry(ctx, x)
	}
}

// Stop has the connection end once what was asked is answered.
func (c *connection) Stop() { c.reader.source.close() }

// enter has the client be whom the certificate names that it has shown, if it has.
func (c *connection) enter(state *tls.ConnectionState) error {
	session, err := c.server.store.Certified(state)
	if err != nil {
		return err
	}
	if session != nil {
		c.become(session)
	}
	return nil
}

// end tells a client what it sent that is no command.
func (c *connection) end(x *call, err error) {
	c.carryGathered()
	c.lines.writer.Wait()
	var sent *protocolError
	if errors.As(err, &sent) {
		x.reply.clear()
		x.reply.fail("ERR " + sent.Error())
		c.lines.out.send(&x.reply)
	} else if !errors.Is(err, io.EOF) && !errors.Is(err, errClosing) {
		c.server.log.Debug("a client of Redis left in the middle", "from", c.conn.RemoteAddr().String(), "cause", err)
	}
	x.drop()
}

// carry has a command carried out: beside those before it where they do not hinder each other, else after them.
func (c *connection) carry(ctx context.Context, x *call) {
	x.prepare(ctx)
	alone := x.entry == nil || x.entry.alone || c.queue != nil || x.refusal != nil
	if !alone && (c.answerNow(x) || c.gather(x)) {
		return
	}
	c.carryGathered()
	switch {
	case alone || !c.reader.waiting() && !c.lines.busy():
		c.lines.writer.Wait()
		x.carryOut()
		c.lines.out.send(&x.reply)
		x.finish()
	default:
		c.lines.add(x)
	}
}

// answerNow answers a command for which all is in memory, where no other one of the connection is under way. The reply goes with those
// after it, if they have come.
func (c *connection) answerNow(x *call) bool {
	if x.entry.now == nil || len(c.watched) > 0 || len(c.gathered) > 0 || c.lines.busy() || x.allowed() != nil || !x.entry.now(x) {
		return false
	}
	x.wasDone()
	c.lines.out.add(&x.reply)
	x.finish()
	return true
}

// waits sees to it that the client has its replies before more of it is waited for.
func (c *connection) waits() {
	c.carryGathered()
	if !c.lines.busy() {
		c.lines.out.flush()
	}
}

var calls = sync.Pool{New: func() any { return new(call) }}

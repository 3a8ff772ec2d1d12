package memcache

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// connection is one client. Commands that come alone are carried out one after the other by the goroutine that reads. Those that come
// before the reply to the one before is sent, or want no reply, are carried out side by side where they are on different keys, and
// written in their order by a goroutine that is there for as long as there are some.
type connection struct {
	server   *Server
	socket   net.Conn
	client   client
	shown    *certificate // nil: the client has shown none
	in       input
	out      output
	window   *window // nil: there was no need for one yet
	gathered []*job  // that read values, and are not begun
	working  context.Context
	closing  sync.Once
}

func newConnection(s *Server, socket net.Conn) *connection {
	s.stats.connections.Add(1)
	c := &connection{server: s, socket: socket, client: client{server: s, from: socket}}
	c.in.init(socket, s.incoming, func(bytes int) { s.stats.bytesRead.Add(int64(bytes)) }, c.waits)
	c.out.conn, c.out.sent = socket, func(bytes int) { s.stats.bytesWritten.Add(int64(bytes)) }
	return c
}

// close closes the connection. It may be called more than once.
func (c *connection) close() {
	c.closing.Do(func() {
		_ = c.socket.Close() // nobody is left to be told of an error
	})
}

// refuse says why the client is not served.
func (c *connection) refuse(why string) {
	c.out.add([]byte(why), nil, nil)
	c.out.flush()
}

// Stop has the connection take no more commands.
func (c *connection) Stop() { c.in.stop() }

// Serve carries out what the client sends until it, or the server, ends the connection.
func (c *connection) Serve(working context.Context, state *tls.ConnectionState) {
	c.working = working
	if err := c.enter(state); err != nil {
		c.in.close()
		c.server.log.Debug("a client was not taken in", "from", c.socket.RemoteAddr(), "cause", err)
		return
	}
	err := c.serveCommands()
	c.in.close()
	drain(c)
	switch {
	case errors.Is(err, errLongLine):
		c.refuse("CLIENT_ERROR line too long\r\n")
	case errors.Is(err, errNoMemory):
		c.refuse("SERVER_ERROR out of memory reading request\r\n")
	case err == nil, errors.Is(err, io.EOF), errors.Is(err, errStopped):
	default:
		c.server.log.Debug("a client was lost", "from", c.socket.RemoteAddr(), "cause", err)
	}
}

// enter finds out who the client is.
func (c *connection) enter(state *tls.ConnectionState) error {
	anybody := c.server.options.Store.Anybody()
	if state != nil && len(state.PeerCertificates) > 0 && anybody.NeedsLogin() {
		c.shown = &certificate{state: *state}
		return c.checkCertificate()
	}
	c.client.session = c.server.options.Session
	if c.client.session == nil {
		c.client.session = anybody
	}
	if !c.client.session.NeedsLogin() {
		return nil
	}
	return c.login()
}

// certificate is what a client has shown, and when that was looked at.
type certificate struct {
	state   tls.ConnectionState
	checked time.Time
}

// believed is for how long a certificate is believed before it is looked at again: it may expire, or be revoked.
const believed = 10 * time.Second

// checkCertificate finds out whom the certificate of the client names, where it has shown one.
func (c *connection) checkCertificate() error {
	if c.shown == nil || time.Since(c.shown.checked) < believed {
		return nil
	}
	session, err := c.server.options.Store.Certified(&c.shown.state)
	if err != nil {
		drain(c)
		c.refuse(errorLine(err))
		return err
	}
	if c.shown.checked = time.Now(); c.client.session == nil {
		c.client.session = session
	}
	return nil
}

// login waits until the client has said who it is, by memcached's authentication: a command set of any key, whose value is a name and
// a secret.
func (c *connection) login() error {
	timer := time.AfterFunc(loginPatience, c.in.stop)
	defer timer.Stop()
	for {
		line, err := c.in.line()
		if err != nil {
			return fmt.Errorf("waiting for who it is: %w", err)
		}
		began := time.Now()
		reply, isIn, err := c.authenticate(string(line))
		if err != nil {
			return err
		}
		c.server.metrics.observe(commandAuth, outcomeOf(reply), time.Since(began))
		c.refuse(reply)
		if isIn {
			return c.out.err
		}
	}
}

// mostSecret is how long a name and a secret may be.
const mostSecret = 16 << 10

func (c *connection) authenticate(line string) (reply string, isIn bool, err error) {
	words := strings.Fields(line)
	if len(words) < 5 || words[0] != "set" {
		return "CLIENT_ERROR unauthenticated\r\n", false, nil
	}
	length, isNumber := parseNumber(words[4])
	if !isNumber || length < 0 || length > mostSecret {
		return "CLIENT_ERROR unauthenticated\r\n", false, nil
	}
	held := c.server.incoming.Hold(memoryPatience)
	defer held.Release()
	data, isWhole, _, err := c.in.block(c.working, held, length)
	switch {
	case err != nil:
		return "", false, err
	case !isWhole:
		return "CLIENT_ERROR bad command line termination\r\n", false, nil
	}
	var name, secret string
	switch words := strings.Fields(string(data)); len(words) {
	case 0:
		return "CLIENT_ERROR bad authentication token format\r\n", false, nil
	case 1:
		secret = words[0]
	default:
		name, secret = words[0], words[1]
	}
	if name == "token" {
		name = ""
	}
	session, err := c.server.options.Store.Login(c.working, name, secret)
	if err != nil {
		c.client.failed(commandAuth, err)
		if isRefusal(err) {
			return "CLIENT_ERROR authentication failure\r\n", false, nil
		}
		return errorLine(err), false, nil
	}
	c.client.session = session
	return "STORED\r\n", true, nil
}

// serveCommands carries out commands until there are no more.
func (c *connection) serveCommands() error {
	for {
		line, err := c.in.line()
		if err != nil {
			return err
		}
		if err := c.checkCertificate(); err != nil {
			return err
		}
		goesOn, err := c.command(string(line))
		if err != nil || !goesOn {
			return err
		}
		if c.isQuiet() && c.out.err != nil {
			return c.out.err
		}
	}
}

// isQuiet reports whether nothing is under way.
func (c *connection) isQuiet() bool {
	return len(c.gathered) == 0 && (c.window == nil || c.window.isIdle())
}

// isLast reports whether nothing is under way, and nothing came after what is carried out.
func isLast(c *connection) bool { return c.in.isEmpty() && c.isQuiet() }

// waits sees to it that the client has its replies before more of it is waited for.
func (c *connection) waits() {
	carryGathered(c)
	if c.isQuiet() {
		c.out.flush()
	}
}

// do has a job done and written: at once where nothing else is under way or waits, and the client waits for a reply.
func (c *connection) do(j *job, waits bool) {
	if waits && isLast(c) {
		if c.window != nil {
			c.window.keys = nil
		}
		j.do(c.working, j)
		c.write(j)
		c.out.flush()
		return
	}
	c.start(j)
}

// start has a job done beside others, and written when it is its turn.
func (c *connection) start(j *job) {
	carryGathered(c)
	admit(c, j)
	go work(c, j)
}

// admit takes a job in, which is written when it is its turn.
func admit(c *connection, j *job) {
	if c.window == nil {
		c.window = &window{}
		c.window.changed.L = &c.window.mutex
	}
	c.window.order(j)
	if c.window.add(j) {
		go c.writeAll()
	}
}

// work does a job, after the one before it.
func work(c *connection, j *job) {
	defer close(j.done)
	if j.after != nil {
		<-j.after
	}
	j.do(c.working, j)
	c.keep(j)
}

// keep sees to it that what a job came to holds none of the memory of the store while it waits for its turn: others may wait for that
// whose turn it is. Where there is no other memory for it, the job works again when it is its turn.
func (c *connection) keep(j *job) {
	if j.value == nil && (len(j.data) == 0 || j.held != nil) {
		return
	}
	held, room := c.server.waiting.Try(int64(len(j.data)))
	data := j.data
	if !room && j.again != nil {
		j.release()
		j.line, j.tail, j.dropped = j.line[:0], nil, true
		return
	}
	if !room {
		held = nil
	}
	j.release()
	j.data, j.held = data, held
}

// writeAll writes what jobs come to, in their order, until there are no more.
func (c *connection) writeAll() {
	for {
		j := c.window.next()
		if j == nil {
			c.out.flush()
			if c.window.end() {
				return
			}
			continue
		}
		select {
		case <-j.done:
		default:
			c.out.flush()
			<-j.done
		}
		if j.dropped && !j.call.failed && c.out.err == nil {
			j.again(c.working, j)
		}
		c.write(j)
		c.window.gone()
	}
}

// write writes what a job came to.
func (c *connection) write(j *job) {
	of := j.call
	if !of.failed {
		c.out.add(j.line, j.data, j.tail)
		of.failed = j.failed
	}
	j.release()
	of.outcome = max(of.outcome, j.outcome)
	if j.last {
		c.server.metrics.observe(of.name, of.outcome, time.Since(of.began))
	}
	if c.out.err != nil {
		c.close() // so that nothing more is read either
	}
}

// say sends a line that is known without work.
func (c *connection) say(name command, line string, outcome outcome) {
	j := &job{call: &call{name: name, began: time.Now()}, last: true, do: func(_ context.Context, j *job) {
		j.line, j.outcome = append(j.line, line...), outcome
	}}
	c.do(j, true)
}

package memcache

import (
	"net"

	"github.com/restripe/restripe/agent/gateway/values"
)

// client is who sends commands, and what these do with values. It is safe for concurrent use.
type client struct {
	server  *Server
	session *values.Session
	from    net.Conn
}

// failed is the reply for an error of a command, which is logged where it is not the client's, or everything is to be.
func (c *client) failed(name command, err error) string {
	reply := errorLine(err)
	if isServers := outcomeOf(reply) == outcomeServerError && reply != tooLarge; isServers || c.server.verbosity.Load() > 0 {
		c.server.log.Warn("a command of a client of memcached failed", "call", commandNames[name], "from", c.from.RemoteAddr(), "cause", err)
	}
	return reply
}

// complain makes the error of a job its reply.
func (c *client) complain(j *job, err error) {
	reply := c.failed(j.call.name, err)
	j.line, j.outcome = append(j.line, reply...), outcomeOf(reply)
}

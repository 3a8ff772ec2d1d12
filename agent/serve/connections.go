package serve

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// mostConnections is how many connections a server has at a time. They may cost some 20 KiB each.
const mostConnections = 2048

// connections bounds those of one server: for one too many the one is closed that has had no request for the longest, or the
// new one where all have requests.
type connections struct {
	most  int
	mutex sync.Mutex
	quiet map[net.Conn]time.Time // since when they have had no request; zero: they have one
}

// state is http.Server.ConnState.
func (c *connections) state(conn net.Conn, state http.ConnState) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch state {
	case http.StateNew:
		if len(c.quiet) >= c.most {
			c.evict(conn)
		}
		c.quiet[conn] = time.Now()
	case http.StateIdle:
		c.quiet[conn] = time.Now()
	case http.StateActive:
		c.quiet[conn] = time.Time{}
	case http.StateClosed, http.StateHijacked:
		delete(c.quiet, conn)
	}
}

func (c *connections) evict(newest net.Conn) {
	quietest, since := newest, time.Now()
	for conn, quiet := range c.quiet {
		if !quiet.IsZero() && quiet.Before(since) {
			quietest, since = conn, quiet
		}
	}
	delete(c.quiet, quietest)
	_ = quietest.Close() // its server learns of it, and there is nobody to tell of a failure
}

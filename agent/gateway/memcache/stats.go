package memcache

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
)

// hits counts commands that found a value, and those that did not.
type hits struct{ found, missed atomic.Int64 }

func (h *hits) note(found bool) {
	if found {
		h.found.Add(1)
	} else {
		h.missed.Add(1)
	}
}

func (h *hits) reset() {
	h.found.Store(0)
	h.missed.Store(0)
}

// stats are what the command of that name tells.
type stats struct {
	began time.Time

	gets, touches, deletes, incrs, decrs hits
	cas                                  hits
	casMismatches                        atomic.Int64
	sets, flushes                        atomic.Int64
	connections                          atomic.Int64 // since it began
	bytesRead, bytesWritten              atomic.Int64
}

// read counts what a command read that does not touch it.
func (s *stats) read(name command, found bool) {
	if name != commandGat && name != commandGats {
		s.gets.note(found)
	}
}

func (s *stats) counted(isUp, found bool) {
	if isUp {
		s.incrs.note(found)
	} else {
		s.decrs.note(found)
	}
}

func (s *stats) compared(result result) {
	if result == exists {
		s.casMismatches.Add(1)
	} else {
		s.cas.note(result == stored)
	}
}

func (s *stats) reset() {
	for _, one := range []*hits{&s.gets, &s.touches, &s.deletes, &s.incrs, &s.decrs, &s.cas} {
		one.reset()
	}
	for _, one := range []*atomic.Int64{&s.casMismatches, &s.sets, &s.flushes, &s.connections, &s.bytesRead, &s.bytesWritten} {
		one.Store(0)
	}
}

// tell carries out `stats`.
func (c *connection) tell(words []string) {
	s := c.server
	var reply string
	switch {
	case len(words) == 1:
		reply = c.statistics()
	case words[1] == "reset":
		s.stats.reset()
		reply = "RESET\r\n"
	case words[1] == "settings":
		reply = s.settings()
	case words[1] == "items", words[1] == "slabs": // there are none
		reply = "END\r\n"
	case words[1] == "sizes":
		reply = "STAT sizes_status disabled\r\nEND\r\n"
	default:
		reply = errorReply
	}
	c.say(commandStats, reply, outcomeOf(reply))
}

// list is a list of names and what they are.
func list(pairs ...any) string {
	var text strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&text, "STAT %s %v\r\n", pairs[i], pairs[i+1])
	}
	return text.String() + "END\r\n"
}

// countPatience is for how long statistics wait until objects are counted, which takes longer only after a start.
const countPatience = time.Second

// statistics are what is known of this server. What memcached tells of its memory and of the items in it is not there.
func (c *connection) statistics() string {
	s := c.server
	now, of := time.Now(), &s.stats
	pairs := []any{
		"pid", os.Getpid(), "uptime", int64(now.Sub(of.began).Seconds()), "time", now.Unix(), "version", Version,
		"pointer_size", 32 << (^uint(0) >> 63),
		"max_connections", s.options.MaxConnections, "curr_connections", s.connections.Count(),
		"total_connections", of.connections.Load(),
		"cmd_get", of.gets.found.Load() + of.gets.missed.Load(), "cmd_set", of.sets.Load(), "cmd_flush", of.flushes.Load(),
		"cmd_touch", of.touches.found.Load() + of.touches.missed.Load(),
		"get_hits", of.gets.found.Load(), "get_misses", of.gets.missed.Load(),
		"delete_misses", of.deletes.missed.Load(), "delete_hits", of.deletes.found.Load(),
		"incr_misses", of.incrs.missed.Load(), "incr_hits", of.incrs.found.Load(),
		"decr_misses", of.decrs.missed.Load(), "decr_hits", of.decrs.found.Load(),
		"cas_misses", of.cas.missed.Load(), "cas_hits", of.cas.found.Load(), "cas_badval", of.casMismatches.Load(),
		"touch_hits", of.touches.found.Load(), "touch_misses", of.touches.missed.Load(),
		"bytes_read", of.bytesRead.Load(), "bytes_written", of.bytesWritten.Load(), "threads", runtime.GOMAXPROCS(0),
	}
	ctx, cancel := context.WithTimeout(c.working, countPatience)
	defer cancel()
	if items, known, err := c.client.session.Count(ctx, true); known { // which counts all objects, of other protocols too
		pairs = append(pairs, "curr_items", items)
	} else if err != nil {
		s.log.Debug("counting objects for a client", "from", c.socket.RemoteAddr(), "cause", err)
	}
	return list(pairs...)
}

// settings are those of this server that memcached has, too.
func (s *Server) settings() string {
	yes := func(is bool) string {
		if is {
			return "yes"
		}
		return "no"
	}
	needsLogin := s.options.Session == nil && s.options.Store.Anybody().NeedsLogin()
	return list(
		"maxconns", s.options.MaxConnections, "verbosity", s.verbosity.Load(), "evictions", "off", "cas_enabled", "yes",
		"auth_enabled_ascii", yes(needsLogin), "item_size_max", s.options.MaxItemBytes, "flush_enabled", yes(s.options.AllowFlush),
		"dump_enabled", "no", "ssl_enabled", yes(s.options.TLS != nil), "binding_protocol", "ascii",
	)
}

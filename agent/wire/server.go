package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/budget"
)

// Handler carries out one request. header is the CBOR of the operation's struct (see Decode); header and payload are
// valid only until it returns, unless it takes the payload. ctx ends when the caller cancels, its connection breaks, or the
// server stops.
//
// The reply is the operation's struct, or nil. replyPayload is sent as it is, after which release, if not nil, is
// called once. An error is sent as the sentinel it wraps, else as ErrInternal.
type Handler func(ctx context.Context, op Op, header []byte, payload *Payload) (reply any, replyPayload []byte, release func(), err error)

// ServerOptions bound what a server takes on. Zero fields take the defaults.
type ServerOptions struct {
	// AllowRemote permits addresses other than loopback.
	AllowRemote bool
	// RequestBytes bounds the bytes of requests in flight, payloads and headers as they lie in memory once decoded, over all
	// connections; beyond that the server stops reading until requests end. What is announced counts as it comes, a MiB
	// ahead at first and never more than has come. Messages between agents (Deliver, DeliverLast) have a budget of the same size of their
	// own, because runs hold theirs until those arrive, and so do, of controlBytes, operations that IsControl. Default 96 MiB.
	RequestBytes int64
	// Wait bounds how long the server stops reading; a request that still finds no room is answered with ErrBusy.
	// Default 5 s.
	Wait time.Duration
	// Concurrent is the largest number of requests in flight on one connection. Default 1024.
	Concurrent int
	// Connections is the largest number of connections. For one more, that is closed which has had no request for the
	// longest; if all have requests in flight, the new one is. Default 1024.
	Connections int
	// Stall is how long a frame that has begun may bring nothing new before its connection is closed. Default 15 s.
	Stall time.Duration
	// Admit finds out who has connected, before anything else is read, and returns what they may ask for. On an error of it
	// the connection is closed. Default: everybody may ask for everything.
	Admit func(ctx context.Context, conn net.Conn) (May, error)
}

// May says whether a caller may ask for an operation. A refusal wraps ErrForbidden and is answered; after any other error the
// connection is closed, so that its caller connects anew.
type May func(op Op) error

// Server answers requests. Safe for concurrent use.
type Server struct {
	options                     ServerOptions
	requests, messages, control budget.Budget

	mutex    sync.Mutex
	sessions map[*session]bool
}

// controlBytes bounds the requests in flight by which gateways learn who is there.
const controlBytes = 8 << 20

// NewServer returns a server with the given bounds.
func NewServer(options ServerOptions) *Server {
	if options.RequestBytes <= 0 {
		options.RequestBytes = 96 << 20
	}
	if options.Wait <= 0 {
		options.Wait = 5 * time.Second
	}
	if options.Concurrent <= 0 {
		options.Concurrent = 1024
	}
	if options.Connections <= 0 {
		options.Connections = 1024
	}
	if options.Stall <= 0 {
		options.Stall = stallTime
	}
	return &Server{
		options: options, requests: budget.New(options.RequestBytes), messages: budget.New(options.RequestBytes),
		control: budget.New(controlBytes), sessions: map[*session]bool{},
	}
}

// budgetOf is what requests for an operation are counted in.
func (s *Server) budgetOf(op Op) budget.Budget {
	switch {
	case op == OpDeliver || op == OpDeliverLast:
		return s.messages
	case IsControl(op):
		return s.control
	default:
		return s.requests
	}
}

// enter makes room for a session, and reports whether there is any.
func (s *Server) enter(entering *session) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.sessions) >= s.options.Connections {
		var quietest *session
		var since time.Time
		for other := range s.sessions {
			if quiet, idle := other.quietSince(); idle && (quietest == nil || quiet.Before(since)) {
				quietest, since = other, quiet
			}
		}
		if quietest == nil {
			return false
		}
		delete(s.sessions, quietest)
		_ = quietest.link.conn.Close() // its reader reports the end; there is nobody to tell of a failed close
	}
	s.sessions[entering] = true
	return true
}

func (s *Server) leave(leaving *session) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.sessions, leaving)
}

// Serve answers requests that come in by listener until ctx ends, which is no error; it closes the listener and, before
// it returns, every connection and waits for the handlers. An address that is not loopback is ErrRemote unless allowed.
func (s *Server) Serve(ctx context.Context, listener net.Listener, handler Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var closing error
	var once sync.Once
	closeListener := func() { once.Do(func() { closing = listener.Close() }) }
	defer closeListener()
	if err := checkLocal(listener.Addr(), s.options.AllowRemote); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, closeListener)
	defer stop()
	var sessions sync.WaitGroup
	defer sessions.Wait()
	defer cancel()
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			if err == nil {
				err = conn.Close()
			}
			closeListener()
			return ignoreClosed(errors.Join(closing, err))
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accepting connections at %s: %w", listener.Addr(), err)
		}
		if err != nil { // out of descriptors, say: it passes when connections end
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
			continue
		}
		entering := newSession(s, conn, handler)
		if !s.enter(entering) {
			_ = conn.Close() // the peer sees the end of the connection; a failure to close it changes nothing for anybody
			continue
		}
		sessions.Go(func() {
			defer s.leave(entering)
			entering.serve(ctx)
		})
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
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
	// RequestBytes bounds the bytes of requests in flight, headers and payloads, over all connections; beyond that the
	// server stops reading until requests end. Messages between agents (Deliver) have a budget of the same size of
	// their own, because runs hold theirs until those arrive. Default 96 MiB.
	RequestBytes int64
	// Wait bounds how long the server stops reading; a request that still finds no room is answered with ErrBusy.
	// Default 5 s.
	Wait time.Duration
	// Concurrent is the largest number of requests in flight on one connection. Default 1024.
	Concurrent int
	// Connections is the largest number of connections; more are closed at once. Default 1024.
	Connections int
	// Admit finds out who has connected, before anything else is read, and returns what they may ask for. On an error of it
	// the connection is closed. Default: everybody may ask for everything.
	Admit func(ctx context.Context, conn net.Conn) (May, error)
}

// May says whether a caller may ask for an operation. A refusal wraps ErrForbidden and is answered; after any other error the
// connection is closed, so that its caller connects anew.
type May func(op Op) error

// Server answers requests. Safe for concurrent use.
type Server struct {
	options  ServerOptions
	requests *semaphore.Weighted
	messages *semaphore.Weighted
}

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
	return &Server{
		options: options, requests: semaphore.NewWeighted(options.RequestBytes), messages: semaphore.NewWeighted(options.RequestBytes),
	}
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
	places := make(chan struct{}, s.options.Connections)
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
		select {
		case places <- struct{}{}:
		default:
			// The peer sees the end of the connection; a failure to close it changes nothing for anybody.
			_ = conn.Close()
			continue
		}
		sessions.Add(1)
		go func() {
			defer sessions.Done()
			defer func() { <-places }()
			newSession(s, conn, handler).serve(ctx)
		}()
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

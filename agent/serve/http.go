// Package serve runs servers, of HTTP and of protocols of their own: it bounds slow clients and how many there are, and lets what is under
// way finish when a server stops.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Bounds on slow clients, and on the wait for requests under way when a server stops.
const (
	headerPatience = 10 * time.Second
	idlePatience   = 2 * time.Minute
	drainPatience  = 5 * time.Second
)

// headerBytes bounds the head of a request.
const headerBytes = 64 << 10

// Server returns a server of a handler that slow clients, and many of them, cannot hold up.
func Server(handler http.Handler) *http.Server {
	open := &connections{most: mostConnections, quiet: map[net.Conn]time.Time{}}
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: headerPatience, IdleTimeout: idlePatience, MaxHeaderBytes: headerBytes, ConnState: open.state,
	}
}

// Until serves until the context ends, then lets requests under way finish for a while before it breaks them off. It closes
// the listener. ending, where it is given, is called before the wait; it ends requests that would never finish.
func Until(ctx context.Context, listener net.Listener, server *http.Server, ending func()) error {
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving HTTP: %w", err)
	case <-ctx.Done():
	}
	if ending != nil {
		ending()
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainPatience)
	defer cancel()
	err := server.Shutdown(drain)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	if err != nil {
		return fmt.Errorf("ending to serve HTTP: %w", err)
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving HTTP: %w", err)
	}
	return nil
}

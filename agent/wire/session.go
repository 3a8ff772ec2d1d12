package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// session is the server's side of one connection.
type session struct {
	server  *Server
	link    *link
	handler Handler
	slots   chan struct{}
	may     May // nil: everything

	mutex   sync.Mutex
	cancels map[uint64]context.CancelFunc // by stream, of the requests in flight
}

func newSession(server *Server, conn net.Conn, handler Handler) *session {
	return &session{
		server: server, link: newLink(conn, new(atomic.Int64), new(atomic.Int64)), handler: handler,
		slots: make(chan struct{}, server.options.Concurrent), cancels: map[uint64]context.CancelFunc{},
	}
}

// serve reads requests until the connection or ctx ends, and waits for their handlers. Why a connection ended is for
// its client to report: it knows what it wanted.
func (s *session) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	closed := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(closed)
		_ = s.link.conn.Close() // the reader below reports the end; there is nobody to tell of a failed close
	})
	var handlers sync.WaitGroup
	if s.admit(ctx) == nil {
		for s.next(ctx, &handlers) == nil {
		}
	}
	cancel()
	handlers.Wait()
	<-closed
}

// admit finds out who is there.
func (s *session) admit(ctx context.Context) (err error) {
	if s.server.options.Admit != nil {
		s.may, err = s.server.options.Admit(ctx, s.link.conn)
	}
	return err
}

// next takes one frame in. An error means that the connection is of no further use.
func (s *session) next(ctx context.Context, handlers *sync.WaitGroup) error {
	head, err := s.link.readPrefix()
	if err != nil {
		return err
	}
	switch head.kind {
	case kindRequest:
		return s.request(ctx, head, handlers)
	case kindCancel:
		s.mutex.Lock()
		cancel := s.cancels[head.stream]
		s.mutex.Unlock()
		if cancel != nil {
			cancel()
		}
		return nil
	case kindPing:
		_, err := s.link.write(ctx, prefix{kind: kindPong, stream: head.stream}, nil, nil)
		return err
	default:
		return fmt.Errorf("%w: kind %d from a client", errFrame, head.kind)
	}
}

func (s *session) request(ctx context.Context, head prefix, handlers *sync.WaitGroup) error {
	if s.may != nil {
		if refused := s.may(head.op); errors.Is(refused, ErrForbidden) {
			if err := s.link.skipBody(head); err != nil {
				return err
			}
			return s.reply(ctx, head.stream, nil, nil, refused)
		} else if refused != nil {
			return refused
		}
	}
	budget := s.server.requests
	if head.op == OpDeliver {
		budget = s.server.messages
	}
	size := min(head.size(), s.server.options.RequestBytes)
	if err := s.wait(ctx, budget, size); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.link.skipBody(head); err != nil {
			return err
		}
		busy := fmt.Errorf("%w: requests of %d bytes are in flight", ErrBusy, s.server.options.RequestBytes)
		return s.reply(ctx, head.stream, nil, nil, busy)
	}
	header := make([]byte, head.header)
	payload := new(Payload)
	if head.payload > 0 {
		payload.Bytes = buffers.Get(int(head.payload))
	}
	free := func() {
		payload.free()
		budget.Release(size)
	}
	if err := s.link.readBody(head, header, payload.Bytes); err != nil {
		free()
		return err
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		free()
		return ctx.Err()
	}
	callCtx, cancel := context.WithCancel(ctx)
	s.mutex.Lock()
	_, taken := s.cancels[head.stream]
	if !taken {
		s.cancels[head.stream] = cancel
	}
	s.mutex.Unlock()
	if taken {
		cancel()
		free()
		<-s.slots
		return fmt.Errorf("%w: stream %d is in use", errFrame, head.stream)
	}
	handlers.Add(1)
	go func() {
		GrowStack()
		defer handlers.Done()
		defer func() { <-s.slots }()
		reply, replyPayload, release, err := s.handler(callCtx, head.op, header, payload)
		s.mutex.Lock()
		delete(s.cancels, head.stream)
		s.mutex.Unlock()
		cancel()
		free()
		// A reply that cannot be sent closes the connection, which ends serve.
		_ = s.reply(ctx, head.stream, reply, replyPayload, err)
		if release != nil {
			release()
		}
	}()
	return nil
}

// wait takes size bytes of a budget in bounded time.
func (s *session) wait(ctx context.Context, budget *semaphore.Weighted, size int64) error {
	if budget.TryAcquire(size) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.server.options.Wait)
	defer cancel()
	return budget.Acquire(ctx, size)
}

func (s *session) reply(ctx context.Context, stream uint64, reply any, payload []byte, failure error) error {
	var head prefix
	var header []byte
	err := failure
	if err == nil {
		if header, err = encode(reply); err == nil {
			head, err = newPrefix(kindReply, 0, stream, header, payload)
		}
	}
	if err != nil {
		payload = nil
		if header, err = encode(encodeError(err)); err == nil {
			head, err = newPrefix(kindError, 0, stream, header, nil)
		}
		if err != nil {
			return err
		}
	}
	_, err = s.link.write(ctx, head, header, payload)
	return err
}

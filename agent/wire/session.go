package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/restripe/restripe/agent/budget"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/trace"
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
	quiet   time.Time                     // when the last of them began or ended
}

func newSession(server *Server, conn net.Conn, handler Handler) *session {
	s := &session{
		server: server, link: newLink(conn, new(atomic.Int64), new(atomic.Int64)), handler: handler,
		slots: make(chan struct{}, server.options.Concurrent), cancels: map[uint64]context.CancelFunc{}, quiet: time.Now(),
	}
	s.link.stall = server.options.Stall
	return s
}

// quietSince says since when the session has had no request, and whether it has none.
func (s *session) quietSince() (since time.Time, idle bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.quiet, len(s.cancels) == 0
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
	memory := s.server.budgetOf(head.op)
	held := memory.Hold(s.server.options.Wait)
	header, payload, err := s.receive(ctx, head, memory.Bytes, held)
	if err != nil {
		held.Release()
		if ctx.Err() != nil || !(errors.Is(err, ErrBusy) || errors.Is(err, ErrTooLarge)) {
			return err
		}
		return s.reply(ctx, head.stream, nil, nil, err)
	}
	free := func() {
		buffers.Put(header)
		payload.free()
		held.Release()
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
		s.cancels[head.stream], s.quiet = cancel, time.Now()
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
		handling, span := trace.BeginAnswer(callCtx, markOf(header), head.op.String())
		reply, replyPayload, release, err := s.handler(handling, head.op, header, payload)
		span.End(err)
		s.mutex.Lock()
		delete(s.cancels, head.stream)
		s.quiet = time.Now()
		s.mutex.Unlock()
		cancel()
		free()
		// What a server that closes has broken off is not answered: the end of the connection says that the outcome is unknown.
		if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
			// A reply that cannot be sent closes the connection, which ends serve.
			_ = s.reply(ctx, head.stream, reply, replyPayload, err)
		}
		if release != nil {
			release()
		}
	}()
	return nil
}

// receive reads the body of a request, holding memory for what has come and for what it decodes to. After ErrBusy and
// ErrTooLarge the whole body has been read, and the connection is good.
func (s *session) receive(ctx context.Context, head prefix, most int64, held *budget.Holding) (header []byte, payload *Payload, err error) {
	// Nothing is held before a first part is there, which has its place in the reader's buffer.
	if err := s.link.awaitBody(head); err != nil {
		return nil, nil, err
	}
	header, left, err := s.receivePart(ctx, int(head.header), int64(head.payload), held)
	if err != nil {
		return nil, nil, s.skip(ctx, left+int64(head.payload), err)
	}
	if kernel.Checksum(header) != head.headerSum { // before it is believed
		return nil, nil, fmt.Errorf("%w: checksum of the header", errFrame)
	}
	if decoded := weigh(header); decoded > most {
		refused := fmt.Errorf("%w: a header of %d bytes that may take %d in memory; ask for less", ErrTooLarge, len(header), decoded)
		return nil, nil, s.skip(ctx, int64(head.payload), refused)
	} else if err := grow(ctx, held, decoded, int64(head.payload)); err != nil {
		return nil, nil, s.skip(ctx, int64(head.payload), err)
	}
	payload = new(Payload)
	if payload.Bytes, left, err = s.receivePart(ctx, int(head.payload), 0, held); err != nil {
		return nil, nil, s.skip(ctx, left, err)
	}
	if kernel.Checksum(payload.Bytes) != head.payloadSum {
		payload.free()
		return nil, nil, fmt.Errorf("%w: checksum of the payload", errFrame)
	}
	return header, payload, nil
}

// aheadBytes is how much of a body memory is held for before it has come; of a longer one, as much as has come already.
const aheadBytes = 1 << 20

// receivePart reads size bytes of a body, which rest follow, into a buffer, nil where there are none. After ErrBusy, left of
// them are unread.
func (s *session) receivePart(ctx context.Context, size int, rest int64, held *budget.Holding) (buffer []byte, left int64, err error) {
	for have := 0; have < size; have = len(buffer) {
		next := min(size, max(2*have, aheadBytes))
		if err := grow(ctx, held, int64(next-have), int64(size-next)+rest); err != nil {
			buffers.Put(buffer)
			return nil, int64(size - have), err
		}
		larger := buffers.Get(next)
		copy(larger, buffer)
		buffers.Put(buffer)
		buffer = larger
		if err := s.link.readPayload(buffer[have:]); err != nil {
			buffers.Put(buffer)
			return nil, 0, err
		}
	}
	return buffer, 0, nil
}

// grow is held.Grow, ErrBusy where there is no room.
func grow(ctx context.Context, held *budget.Holding, bytes, rest int64) error {
	err := held.Grow(ctx, bytes, rest)
	if errors.Is(err, budget.ErrFull) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

// skip reads the rest of a body that nobody wants because of cause, which it returns unless the connection fails.
func (s *session) skip(ctx context.Context, bytes int64, cause error) error {
	if ctx.Err() != nil || !(errors.Is(cause, ErrBusy) || errors.Is(cause, ErrTooLarge)) {
		return cause
	}
	if err := s.link.discard(bytes); err != nil {
		return err
	}
	return cause
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

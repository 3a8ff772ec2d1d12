package values

import (
	"context"
	"sync"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
)

// puts are those under way. While one is, others that are like it wait, and the last of them is stored for all: each of them could have
// been first, and nobody could have read it before it was overwritten.
type puts struct {
	mutex sync.Mutex
	next  map[likePut]*sharedPut // after the one that is under way; nil: nothing waits
}

// likePut is what puts have in common that are accepted or refused alike.
type likePut struct {
	key, class string
	expires    bool
}

// sharedPut is one put on behalf of several clients.
type sharedPut struct {
	put      Put // the last
	done     chan struct{}
	revision block.Stamp
	err      error
}

// join has a put wait for the next one that is like it, or returns nil where none is under way: then this is the one, until leave.
func (p *puts) join(key likePut, put Put) *sharedPut {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.next == nil {
		p.next = map[likePut]*sharedPut{}
	}
	next, underWay := p.next[key]
	if !underWay {
		p.next[key] = nil
		return nil
	}
	if next == nil {
		next = &sharedPut{done: make(chan struct{})}
		p.next[key] = next
	}
	next.put = put
	return next
}

// leave ends a put, and returns the one after it, which is under way then.
func (p *puts) leave(key likePut) *sharedPut {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	next := p.next[key]
	if next == nil {
		delete(p.next, key)
	} else {
		p.next[key] = nil
	}
	return next
}

// Put stores a value over whatever the key has.
func (s *Session) Put(ctx context.Context, key string, put Put) (block.Stamp, error) {
	user, in, err := s.scope(ctx, access.Write)
	if err != nil {
		return block.Stamp{}, err
	}
	if err := s.checkSize(key, put.Data); err != nil {
		return block.Stamp{}, err
	}
	switch every, some := in.HasKey(key); {
	case !some:
		return block.Stamp{}, refused(user, "%s on objects is missing for key %.80q", access.Write, key)
	case !every: // then it depends on the class of what is there
		return s.put(ctx, key, put, nil)
	case len(put.Metadata) > 0: // which may be refused
		return s.store(ctx, key, put, nil)
	}
	like := likePut{key, put.Class, !put.Expires.IsZero()}
	shared := s.puts.join(like, put)
	if shared == nil {
		revision, err := s.store(ctx, key, put, nil)
		s.pass(ctx, like)
		return revision, err
	}
	select {
	case <-shared.done:
	case <-ctx.Done():
		return block.Stamp{}, api.Refuse(api.ErrUnknownOutcome, "storing %.80q: %w", key, ctx.Err())
	}
	return shared.revision, shared.err
}

// pass has the puts that wait for one that is over go on without it.
func (s *Session) pass(ctx context.Context, like likePut) {
	if next := s.puts.leave(like); next != nil {
		go func(ctx context.Context) { // whoever waits may leave before it is over
			for ; next != nil; next = s.puts.leave(like) {
				next.revision, next.err = s.store(ctx, like.key, next.put, nil)
				close(next.done)
			}
		}(context.WithoutCancel(ctx))
	}
}

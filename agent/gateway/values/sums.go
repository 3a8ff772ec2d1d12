package values

import (
	"context"
	"errors"
	"sync"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway/api"
)

// sums are changes of one key that wait for each other and are then stored by one put: each is decided on what the one before came to,
// as if it had been stored between, where nobody could have read it.
type sums struct {
	mutex   sync.Mutex
	waiting map[string][]*sum // in the order in which they came; nil: one is under way, and none waits
}

// sum is one of them.
type sum struct {
	session *Session
	decide  func(now *Value) (Change, error)
	done    chan struct{}
	changes bool
	err     error
}

// mostSums is how many are stored together: the first of them waits for all.
const mostSums = 256

// join has one wait for those that are under way, or reports that none is: then it is, until leave.
func (s *sums) join(key string, one *sum) (isFirst bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	waiting, underWay := s.waiting[key]
	if underWay {
		s.waiting[key] = append(waiting, one)
		return false
	}
	if s.waiting == nil {
		s.waiting = map[string][]*sum{}
	}
	s.waiting[key] = nil
	return true
}

// leave ends what is under way, and returns those after it, which are under way then.
func (s *sums) leave(key string) []*sum {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	waiting := s.waiting[key]
	if len(waiting) == 0 {
		delete(s.waiting, key)
		return nil
	}
	next := waiting[:min(len(waiting), mostSums)]
	s.waiting[key] = waiting[len(next):]
	return next
}

// Accumulate is Modify of what puts or leaves a value, deletes none, and does not ask for revisions: those that wait for each other are
// stored together.
func (s *Session) Accumulate(ctx context.Context, key string, decide func(now *Value) (Change, error)) error {
	for _, verb := range []access.Verb{access.Read, access.Write} {
		_, in, err := s.scope(ctx, verb)
		if err != nil {
			return err
		}
		if every, _ := in.HasKey(key); !every { // then it depends on the class, or is refused
			_, err := s.Modify(ctx, key, decide)
			return err
		}
	}
	own := &sum{session: s, decide: decide, done: make(chan struct{})}
	if s.sums.join(key, own) {
		s.addUp(ctx, key, []*sum{own})
		s.passSums(ctx, key)
		return own.err
	}
	select {
	case <-own.done:
		return own.err
	case <-ctx.Done():
		return api.Refuse(api.ErrUnknownOutcome, "changing %.80q: %w", key, ctx.Err())
	}
}

// passSums has the changes that wait for those that are over go on without them.
func (s *Session) passSums(ctx context.Context, key string) {
	if next := s.sums.leave(key); len(next) > 0 {
		go func(ctx context.Context) { // whoever waits may leave before it is over
			for ; len(next) > 0; next = s.sums.leave(key) {
				s.addUp(ctx, key, next)
				for _, one := range next {
					close(one.done)
				}
			}
		}(context.WithoutCancel(ctx))
	}
}

// addUp carries out changes together. One that is refused for itself harms no other. What fails else fails all that came after the first
// that changed something, as they were decided on it.
func (s *Session) addUp(ctx context.Context, key string, list []*sum) {
	_, err := s.Modify(ctx, key, func(now *Value) (Change, error) {
		var last Change
		for _, one := range list {
			var change Change
			if change, one.err = one.decide(now); one.err == nil && change.Put != nil {
				one.err = s.checkSize(key, change.Put.Data)
			}
			if one.changes = one.err == nil && change.Put != nil; one.changes {
				put := change.Put
				last, now = change, &Value{Data: put.Data, Class: put.Class, Expires: put.Expires, Metadata: put.Metadata}
			}
		}
		return last, nil
	})
	if err == nil {
		return
	}
	if len(list) > 1 && isOfOne(err) {
		for _, one := range list {
			_, one.err = one.session.Modify(ctx, key, one.decide)
		}
		return
	}
	failed := false
	for _, one := range list {
		if failed = failed || one.changes || one.err == nil; failed {
			one.err = err
		}
	}
}

// isOfOne reports whether an error may be that of one change of several, or of the session that carried them out.
func isOfOne(err error) bool {
	for _, refused := range []error{api.ErrBadRequest, api.ErrUnauthenticated, api.ErrForbidden, ErrNoRoom} {
		if errors.Is(err, refused) {
			return true
		}
	}
	return false
}

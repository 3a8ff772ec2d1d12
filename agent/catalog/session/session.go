// Package session has an engine take the updates of one start of a gateway alone, each once, and notices a catalog that lost some.
package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// concurrentUpdates bounds the updates of one session that are under way at a time.
const concurrentUpdates = 64

// Session is an engine as one start of a gateway has it. Each of its updates takes effect only while the gateway has no later
// start, and counts: it compares and raises the count of a lane, a record that one update at a time uses. So an update takes
// effect once at most, one of a start that another has followed never, and a catalog that has lost what it acknowledged is
// noticed by the next update, as its counts are less than those remembered here. Updates do not wait for each other.
//
// Until Begin it passes everything through.
type Session struct {
	*kv.Observed
	Owner   string        // name of the start
	Gateway string        // key of the record that says which start its gateway has at present
	Over    chan struct{} // closed when no update takes effect any more

	slots *semaphore.Weighted

	mutex sync.Mutex
	begun bool
	asked bool    // Begin was tried, with an outcome that is not known
	free  []*lane // used last, first
	lanes []*lane // all
	ended error   // why no update takes effect any more
}

// lane belongs to one update at a time, but for count.
type lane struct {
	key   string
	count atomic.Int64 // updates that are known to have taken effect
	doubt bool         // one more may have
}

// New returns the session of a start, which has not begun.
func New(engine *kv.Observed, owner string) *Session {
	gateway, _, _ := strings.Cut(owner, "/")
	return &Session{
		Observed: engine, Owner: owner, Gateway: schema.GatewayKey(gateway), Over: make(chan struct{}),
		slots: semaphore.NewWeighted(concurrentUpdates),
	}
}

// Mark is the upper half of the salts of all stamps that the session draws.
func (s *Session) Mark() uint32 { return block.Mark(s.Owner) }

// Begin makes the session the present start of its gateway, in one update that also says which stamps were drawn before there
// were sessions. None begins in a catalog that is set aside. It is a turn of retry.
func (s *Session) Begin(ctx context.Context) (done bool, err error) {
	values, err := s.Observed.Read(ctx, s.Gateway, schema.SessionKey(s.Owner), schema.KeyDrawn, schema.KeyFloor, schema.KeySchema)
	if err != nil {
		return false, err
	}
	if err := schema.AsideError(values[4]); err != nil {
		return false, err
	}
	if values[1] != nil {
		if !s.asked {
			return false, kv.Final(fmt.Errorf("%w: start %s was opened before; every start needs a name of its own", kv.ErrInUse, s.Owner))
		}
		s.mutex.Lock()
		s.begun = true
		s.mutex.Unlock()
		return true, nil
	}
	writes := []kv.Write{{Key: s.Gateway, Value: []byte(s.Owner)}, {Key: schema.SessionKey(s.Owner), Value: []byte{}}}
	checks := []kv.Check{{Key: s.Gateway, Value: values[0]}, {Key: schema.SessionKey(s.Owner)}, {Key: schema.KeySchema, Value: values[4]}}
	if values[2] == nil {
		checks = append(checks, kv.Check{Key: schema.KeyDrawn}, kv.Check{Key: schema.KeyFloor, Value: values[3]})
		writes = append(writes, kv.Write{Key: schema.KeyDrawn, Value: values[3]})
	}
	s.asked = true
	_, err = s.Observed.Update(ctx, checks, writes)
	return false, err // the next turn sees
}

// Update is the engine's, under the conditions of the session. It fails with ErrFenced once the gateway has a later start, and
// with ErrBehind once the catalog is seen to have lost updates.
func (s *Session) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	s.mutex.Lock()
	begun := s.begun
	s.mutex.Unlock()
	if !begun {
		return s.Observed.Update(ctx, checks, writes)
	}
	if err := s.slots.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer s.slots.Release(1)
	used, err := s.take(ctx)
	if err != nil {
		return nil, err
	}
	own := []kv.Check{{Key: s.Gateway, Value: []byte(s.Owner)}, used.check()}
	failed, err := s.Observed.Update(ctx, append(checks[:len(checks):len(checks)], own...),
		append(writes[:len(writes):len(writes)], kv.Write{Key: used.key, Value: codec.EncodeCount(used.count.Load() + 1)}))
	switch {
	case err != nil:
		used.doubt = true
	case len(failed) == 0:
		used.count.Add(1)
	case failed[len(failed)-1] > len(checks):
		return nil, s.end(fmt.Errorf("%w: record %s is not %d, as it was left", schema.ErrBehind, used.key, used.count.Load()))
	case failed[len(failed)-1] == len(checks):
		present, err := s.Observed.Read(ctx, s.Gateway)
		if err != nil {
			return nil, s.EndFenced([]byte{}) // by whom does not matter
		}
		return nil, s.EndFenced(present[0])
	}
	s.give(used)
	return failed, err
}

func (l *lane) check() kv.Check {
	if count := l.count.Load(); count != 0 {
		return kv.Check{Key: l.key, Value: codec.EncodeCount(count)}
	}
	return kv.Check{Key: l.key}
}

// take returns a lane that nobody else uses, whose count is known.
func (s *Session) take(ctx context.Context) (*lane, error) {
	for {
		used, err := s.next()
		if err != nil || !used.doubt {
			return used, err
		}
		values, err := s.Observed.Read(ctx, used.key)
		if err != nil {
			s.give(used)
			return nil, err
		}
		switch {
		case bytes.Equal(values[0], codec.EncodeCount(used.count.Load()+1)):
			used.count.Add(1)
			used.doubt = false
			return used, nil
		case bytes.Equal(values[0], used.check().Value):
			// What was asked may take effect yet, so this lane is not used any more.
		default:
			return nil, s.end(fmt.Errorf("%w: record %s is %q, neither %d nor one more", schema.ErrBehind, used.key, values[0], used.count.Load()))
		}
	}
}

func (s *Session) next() (*lane, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.ended != nil {
		return nil, s.ended
	}
	if last := len(s.free) - 1; last >= 0 {
		used := s.free[last]
		s.free = s.free[:last]
		return used, nil
	}
	made := &lane{key: schema.LaneKey(s.Owner, len(s.lanes)+1)}
	s.lanes = append(s.lanes, made)
	return made, nil
}

func (s *Session) give(used *lane) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.free = append(s.free, used)
}

// Counts returns how many updates are known to have taken effect, by lane.
func (s *Session) Counts() block.Counts {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	counts := make(block.Counts, len(s.lanes))
	for i, one := range s.lanes {
		counts[i] = one.count.Load()
	}
	return counts
}

// Compare ends the session if the catalog, as it was read since known was, has lost updates of it, or has some that it never
// made.
func (s *Session) Compare(known, read block.Counts) error {
	if !read.Contains(known) {
		return s.end(fmt.Errorf("%w: start %s had made %d, and it has %d", schema.ErrBehind, s.Owner, known, read))
	}
	most := s.Counts()
	for i := range most {
		most[i]++ // its outcome may not be known yet
	}
	if !most.Contains(read) {
		return s.end(fmt.Errorf("%w: somebody else works under the name of this start, %s", schema.ErrFenced, s.Owner))
	}
	return nil
}

// EndFenced ends the session as its gateway has another start, nil for none.
func (s *Session) EndFenced(present []byte) error {
	if present == nil {
		return s.end(fmt.Errorf("%w: %s", schema.ErrClaimed, s.Owner))
	}
	return s.end(fmt.Errorf("%w: %s", schema.ErrFenced, s.Owner))
}

// end has every update fail with cause, or with what ended the session before.
func (s *Session) end(cause error) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.ended == nil {
		s.ended = cause
		close(s.Over)
	}
	return s.ended
}

// IsOver reports whether err says that no update of this start takes effect any more.
func IsOver(err error) bool {
	return errors.Is(err, schema.ErrFenced) || errors.Is(err, schema.ErrBehind) || errors.Is(err, schema.ErrClaimed)
}

// Err returns why no update takes effect any more; nil while they do.
func (s *Session) Err() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.ended
}

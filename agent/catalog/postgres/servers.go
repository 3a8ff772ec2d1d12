package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// proofLength is how long after a server was asked for a proof that it is the primary still it is read from without another; half of
// it later it is asked again. Whoever promotes a standby does so this long after the standby has stopped following, or ends the old
// primary before.
const proofLength = 2 * time.Second

// How soon another server is looked for while one does not answer, how often, and how long one look may take.
const (
	suspectAfter = time.Second
	lookEvery    = time.Second
	lookLimit    = 3 * time.Second
)

// proving commits a transaction of its own that writes something, which standbys confirm where the server waits for them. They follow
// one primary at a time: so none of them had been promoted when it was asked, and they have all that could be read of the server then.
const proving = `select
	set_config('synchronous_commit', case current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end, true),
	case when current_setting('synchronous_standby_names') <> '' then pg_logical_emit_message(true, 'restripe', '') end`

// errReplaced refuses a server of a timeline that a later one has followed.
var errReplaced = errors.New("another server has taken the place of this one")

// origin is which server a connection leads to. A standby that takes over begins a new timeline.
type origin struct {
	system   string
	timeline uint64
}

// servers is what an engine knows of those that its address names. All its pools share it.
type servers struct {
	proofs *pool // of one connection, that asks for proofs
	life   context.Context
	work   *sync.WaitGroup

	mu     sync.Mutex // of the pools too
	newest origin     // of those that were met
	open   map[*connection]bool
	proved time.Time // when newest was asked for the last proof that it gave
	asked  *proof    // under way; nil: none
}

// proof is one that a server was asked for.
type proof struct {
	done chan struct{} // closed once err is set
	err  error
}

func newServers(target *target, life context.Context, work *sync.WaitGroup) *servers {
	s := &servers{open: map[*connection]bool{}, life: life, work: work}
	s.proofs = newPool(s, target.hosts, 1, false)
	return s
}

// meet takes note of a primary, unless another has taken its place. Connections to the one whose place it has taken are ended, whatever
// they wait for.
func (s *servers) meet(o origin) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.system == s.newest.system && o.timeline < s.newest.timeline {
		return fmt.Errorf("%w, which is at timeline %d, not %d", errReplaced, o.timeline, s.newest.timeline)
	}
	if o == s.newest {
		return nil
	}
	s.newest, s.proved = o, time.Time{}
	for c := range s.open {
		if c.origin != o {
			_ = c.wire.Close() // who uses it is told
		}
	}
	return nil
}

// prove takes note that a server, asked at the given time, has committed what standbys confirmed.
func (s *servers) prove(o origin, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o == s.newest && at.After(s.proved) {
		s.proved = at
	}
}

// assure returns once the server of a connection may be read from: it has proved that it was the primary, after the connection was
// made and no longer ago than proofLength. What a server has not told its standbys yet and shows all the same, as it was started
// again meanwhile, they have by then too.
func (s *servers) assure(ctx context.Context, c *connection) error {
	for {
		s.mu.Lock()
		if c.origin != s.newest {
			s.mu.Unlock()
			return errReplaced
		}
		age := time.Since(s.proved)
		enough := s.proved.After(c.made) && age < proofLength
		if enough && age < proofLength/2 {
			s.mu.Unlock()
			return nil
		}
		asked := s.ask()
		s.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-asked.done:
			if asked.err != nil {
				return fmt.Errorf("asking for a proof that the server is the primary: %w", asked.err)
			}
		case <-ctx.Done():
			return fmt.Errorf("the server has not proved that it is the primary, as its standbys do not answer it: %w", ctx.Err())
		}
	}
}

// suspect asks for a proof, by which it is noticed that another server has taken the place of one that does not answer.
func (s *servers) suspect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ask()
}

// ask has a proof asked for, unless one is. The caller holds mu.
func (s *servers) ask() *proof {
	if s.asked != nil {
		return s.asked
	}
	p := &proof{done: make(chan struct{})}
	if s.life.Err() != nil {
		p.err = kv.ErrClosed
		close(p.done)
		return p
	}
	s.asked = p
	s.work.Go(func() {
		ctx, end := context.WithCancel(s.life)
		s.work.Go(func() { s.look(ctx) })
		err := s.askOnce()
		if err != nil && s.life.Err() == nil {
			err = s.askOnce() // over another connection, perhaps to another server
		}
		end()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.asked, p.err = nil, err
		close(p.done)
	})
	return p
}

// askOnce asks for a proof over one connection, and waits as long as for an update: one that was left would wait on in the server.
func (s *servers) askOnce() error {
	c, err := s.proofs.take(s.life)
	if err != nil {
		return err
	}
	at := time.Now()
	limit := time.AfterFunc(answerLimit, func() { _ = c.wire.Close() }) // the call is told
	_, err = c.query(context.Background(), proving, &arguments{})
	limit.Stop()
	if err == nil && c.doubted {
		err = errDoubted
	}
	s.proofs.give(c, err != nil)
	if err == nil {
		s.prove(c.origin, at)
	}
	return err
}

// look meets the servers that can be reached, again and again until ctx ends, once it has taken longer than usual.
func (s *servers) look(ctx context.Context) {
	for pause := suspectAfter; ; pause = lookEvery {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		limited, cancel := context.WithTimeout(ctx, lookLimit)
		var all sync.WaitGroup
		for _, host := range s.proofs.hosts {
			all.Go(func() {
				if c, err := s.proofs.reach(limited, host); err == nil {
					_ = c.wire.Close() // it was met, which is all
				}
			})
		}
		all.Wait()
		cancel()
	}
}

//go:build ceph

package ceph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/store"
)

const (
	// incarnationKey is where a node keeps the incarnation of its store.
	incarnationKey = "restripe/incarnation"

	// witnessesName is the object that says which witnesses there should be. It is no key.
	witnessesName = "restripe witnesses"

	lookEvery     = time.Second // a look is good for so long
	lookPatience  = time.Second // reading the incarnation waits so long for a look; without monitors or OSDs none ends
	witnessBytes  = 4 << 10     // no witness is longer
	witnessWriter = 32          // witnesses read or written at once
)

// witnesses are said to be in a pool.
type witnesses struct {
	Incarnation string `json:"incarnation"`
	Groups      int    `json:"groups"` // placement groups that have one
}

// look is what was last seen of the pool.
type look struct {
	mutex   sync.Mutex
	epoch   int64         // of the OSD map of the last look that saw everything; 0: none
	ended   time.Time     // when the last look ended
	err     error         // of the last look: why the pool is no node any more
	looking chan struct{} // closed with the end of a look under way; nil: none
}

// lookAround looks whether the pool still is the node it was, once in lookEvery. It returns an error if it is none any
// more. If its contents are lost in part, the incarnation is deleted. A look that takes longer than lookPatience is not
// waited for: an OSD that does not answer has lost nothing yet, and without a quorum of monitors nothing can get lost.
func (s *Store) lookAround(ctx context.Context) error {
	l := &s.look
	l.mutex.Lock()
	if l.looking == nil && time.Since(l.ended) < lookEvery {
		defer l.mutex.Unlock()
		return l.err
	}
	if l.looking == nil {
		if err := s.begin(); err != nil {
			l.mutex.Unlock()
			return err
		}
		l.looking = make(chan struct{})
		go s.lookOnce(l.looking)
	}
	looking := l.looking
	l.mutex.Unlock()
	timer := time.NewTimer(lookPatience)
	defer timer.Stop()
	select {
	case <-looking:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.err
}

// lookOnce looks, keeps what it saw, and closes looking.
func (s *Store) lookOnce(looking chan struct{}) {
	defer s.end()
	l := &s.look
	l.mutex.Lock()
	known := l.epoch
	l.mutex.Unlock()
	epoch, err := s.inspect(s.ctx, known)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	switch {
	case err == nil:
		l.epoch, l.err = epoch, nil
	case errors.Is(err, ErrPool):
		l.epoch, l.err = 0, fmt.Errorf("%w: %w", store.ErrDown, err)
	}
	l.ended, l.looking = time.Now(), nil
	close(looking)
}

// inspect looks for all that may have changed with the map of the OSDs since the epoch known, and returns the epoch it has
// seen.
func (s *Store) inspect(ctx context.Context, known int64) (int64, error) {
	place, err := s.place(ctx)
	if err != nil {
		return 0, err
	}
	if known == place.epoch {
		return known, nil
	}
	if err := s.fetchLatest(ctx); err != nil { // librados may not have heard yet
		return 0, err
	}
	return place.epoch, s.checkWitnesses(ctx, place.pool.Groups)
}

// checkWitnesses looks for the witnesses of the incarnation, and forgets the incarnation if one is missing. Placement
// groups that are new get theirs.
func (s *Store) checkWitnesses(ctx context.Context, groups int) error {
	incarnation, err := s.readWitness(ctx, incarnationKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := s.readWitness(ctx, witnessesName)
	var said witnesses
	if err == nil && json.Unmarshal([]byte(text), &said) != nil {
		err = store.ErrCorrupt
	}
	if err == nil && said.Incarnation != incarnation {
		err = store.ErrNotFound
	}
	if err == nil {
		err = s.eachWitness(ctx, said.Groups, func(ctx context.Context, name string) error {
			found, err := s.readWitness(ctx, name)
			if err == nil && found != incarnation {
				return store.ErrNotFound
			}
			return err
		})
	}
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrCorrupt) {
		return s.delete(ctx, incarnationKey)
	}
	if err != nil || said.Groups == groups {
		return err
	}
	return s.writeWitnesses(ctx, incarnation, groups)
}

// placeWitnesses writes the witnesses of a new incarnation.
func (s *Store) placeWitnesses(ctx context.Context, incarnation string) error {
	place, err := s.place(ctx)
	if err != nil {
		return err
	}
	return s.writeWitnesses(ctx, incarnation, place.pool.Groups)
}

// writeWitnesses writes a witness into every placement group, and then that they are there.
func (s *Store) writeWitnesses(ctx context.Context, incarnation string, groups int) error {
	err := s.eachWitness(ctx, groups, func(ctx context.Context, name string) error {
		return s.write(ctx, name, []byte(incarnation), false)
	})
	if err != nil {
		return err
	}
	text, err := json.Marshal(witnesses{Incarnation: incarnation, Groups: groups})
	if err != nil {
		return err
	}
	return s.write(ctx, witnessesName, text, false)
}

// eachWitness does something with every witness, several at once. Of several errors the one that says most is returned:
// that a witness is missing.
func (s *Store) eachWitness(ctx context.Context, groups int, do func(ctx context.Context, name string) error) error {
	names := witnessNames(groups)
	errs := make([]error, len(names))
	var group errgroup.Group
	group.SetLimit(witnessWriter)
	for i, name := range names {
		group.Go(func() error {
			errs[i] = do(ctx, name)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	missing := slices.IndexFunc(errs, func(err error) bool { return errors.Is(err, store.ErrNotFound) })
	if missing >= 0 {
		return errs[missing]
	}
	return errors.Join(errs...)
}

// readWitness reads a short object.
func (s *Store) readWitness(ctx context.Context, name string) (string, error) {
	p := make([]byte, witnessBytes)
	count, err := s.readAt(ctx, name, p, 0)
	return string(p[:count]), err
}

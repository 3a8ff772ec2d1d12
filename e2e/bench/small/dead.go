package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/gateway/api"
)

// The class of the part dead, and what is aimed at: as much room as its default scheme takes, and of that what the class allows to
// be dead.
const (
	deadClass   = "default"
	deadLadder  = "rs(3,2),rep(3)"
	deadScheme  = "rs(3,2)"
	deadColumns = 3
	deadParity  = 2
	deadAim     = 1.95
	deadBound   = float64(deadColumns+deadParity) / deadColumns * (1 + float64(api.DefaultDeadAtMost)/100)

	deadSeed     = 20261128
	deadPatience = 10 * time.Minute // in which the room is to be free
	sampleEvery  = time.Second
	leastSize    = 1 << 10
	mostSize     = 8 << 10
)

// fate is what happens to an object after all were put.
type fate int

const (
	kept fate = iota
	overwritten
	deleted
)

// subject is an object of the part dead.
type subject struct {
	sizes [2]int // as it is put, and as it is overwritten
	fate  fate
}

// size is how large the object is at the end.
func (s *subject) size() int {
	switch s.fate {
	case overwritten:
		return s.sizes[1]
	case deleted:
		return 0
	}
	return s.sizes[0]
}

// newSubjects draws sizes and fates, and the order of the changes: of all objects three quarters change, a third of them by being
// deleted.
func newSubjects(count int, seed uint64) (subjects []subject, changes []int) {
	random := rand.New(rand.NewPCG(seed, 1))
	subjects = make([]subject, count)
	for i := range subjects {
		for version := range subjects[i].sizes {
			subjects[i].sizes[version] = leastSize + random.IntN(mostSize-leastSize+1)
		}
	}
	changes = random.Perm(count)[:count*3/4]
	for turn, i := range changes {
		subjects[i].fate = overwritten
		if turn%3 == 2 {
			subjects[i].fate = deleted
		}
	}
	return subjects, changes
}

func subjectKey(i int) string { return fmt.Sprintf("small/%06d", i) }

// moment is how much room is taken at one time.
type moment struct {
	when    time.Time
	at      time.Duration // since the last change; negative: before it
	objects int64         // bytes of all objects, as the gateway counts them
	stored  int64         // bytes of cells and parities of their groups, likewise
	items   int64         // bytes of all items of the stores
	groups  int64
	graves  int64 // dead blocks not deleted yet
	running bool  // compaction
}

// ratio is the room of groups over the bytes of objects.
func (m *moment) ratio() float64 { return float64(m.stored) / float64(m.objects) }

// itemRatio is the room in the stores over the bytes of objects.
func (m *moment) itemRatio() float64 { return float64(m.items) / float64(m.objects) }

// deadResults are what the part dead measured.
type deadResults struct {
	objects, overwritten, deleted int
	putting, changing             time.Duration
	put                           moment   // after the puts
	moments                       []moment // from then on
	moved, freed                  float64  // bytes
	passes                        int64    // of compaction that moved something
	worked                        time.Duration
	readBack                      int
	peak                          int64 // memory of the gateway
}

// dead puts objects, changes most of them and waits for the room of what died.
func (b *bench) dead(ctx context.Context) (results deadResults, err error) {
	c, err := b.start(ctx, "dead", []api.ClassSpec{{Name: deadClass, Ladder: deadLadder, Default: deadScheme, Prefixes: []string{""}}})
	if err != nil {
		return results, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	subjects, changes := newSubjects(b.objects, deadSeed)
	results.objects = len(subjects)
	began := time.Now()
	err = atOnce(ctx, len(subjects), func(ctx context.Context, i int) error {
		return c.put(ctx, subjectKey(i), bytesOf(i, 0, subjects[i].sizes[0]))
	})
	if err != nil {
		return results, err
	}
	results.putting = time.Since(began)
	if results.put, err = c.moment(ctx); err != nil {
		return results, err
	}
	b.say("dead: %d objects in %.1f s, ratio %.3f, in the stores %.3f", len(subjects), results.putting.Seconds(),
		results.put.ratio(), results.put.itemRatio())
	w := &watch{bench: b, cluster: c, passes: map[int64]api.Compaction{}}
	began = time.Now()
	if err := w.while(ctx, func(ctx context.Context) error {
		return atOnce(ctx, len(changes), func(ctx context.Context, turn int) error {
			i := changes[turn]
			if subjects[i].fate == deleted {
				return c.gateway.Delete(ctx, subjectKey(i))
			}
			return c.put(ctx, subjectKey(i), bytesOf(i, 1, subjects[i].sizes[1]))
		})
	}); err != nil {
		return results, err
	}
	results.changing = time.Since(began)
	for _, i := range changes {
		if subjects[i].fate == deleted {
			results.deleted++
		} else {
			results.overwritten++
		}
	}
	b.say("dead: %d overwritten and %d deleted in %.1f s", results.overwritten, results.deleted, results.changing.Seconds())
	if err := w.untilFree(ctx); err != nil {
		return results, err
	}
	results.moments = w.moments
	for _, pass := range w.passes {
		if pass.ObjectsMoved > 0 {
			results.passes++
			results.worked += time.Duration(pass.ElapsedSeconds * float64(time.Second))
		}
	}
	metrics, err := c.metrics(ctx)
	if err != nil {
		return results, err
	}
	results.moved, results.freed = metrics["restripe_compaction_moved_bytes_total"], metrics["restripe_compaction_freed_bytes_total"]
	b.say("dead: reading everything back")
	if err := c.compare(ctx, subjects); err != nil {
		return results, err
	}
	results.readBack = len(subjects)
	results.peak, err = c.peak()
	return results, err
}

// compare reads everything back, and that what was deleted is gone.
func (c *cluster) compare(ctx context.Context, subjects []subject) error {
	return atOnce(ctx, len(subjects), func(ctx context.Context, i int) error {
		one := &subjects[i]
		got, err := c.get(ctx, subjectKey(i))
		switch {
		case one.fate == deleted && errors.Is(err, api.ErrNotFound):
			return nil
		case one.fate == deleted && err == nil:
			return fmt.Errorf("%s was deleted and is there", subjectKey(i))
		case err != nil:
			return err
		case !bytes.Equal(got, bytesOf(i, int(one.fate), one.size())):
			return fmt.Errorf("%s is not what was put", subjectKey(i))
		}
		return nil
	})
}

// moment asks the gateway and the stores.
func (c *cluster) moment(ctx context.Context) (m moment, err error) {
	status, err := c.gateway.Status(ctx)
	if err != nil {
		return m, err
	}
	for _, class := range status.Classes {
		if class.Name == deadClass {
			m.objects, m.stored = class.Bytes, class.Stored
		}
	}
	if m.objects <= 0 {
		return m, errors.New("the status knows no objects")
	}
	m.groups, m.graves = status.Groups, status.Graves
	m.items, err = c.storeBytes(ctx)
	return m, err
}

// watch takes moments.
type watch struct {
	*bench
	*cluster
	quiet   time.Time // the last change
	moments []moment
	passes  map[int64]api.Compaction
}

// take takes one.
func (w *watch) take(ctx context.Context) (*moment, error) {
	at := time.Now()
	m, err := w.moment(ctx)
	if err != nil {
		return nil, err
	}
	compaction, err := w.gateway.Compaction(ctx)
	if err != nil {
		return nil, err
	}
	w.passes[compaction.Pass] = compaction
	m.running = compaction.State == api.CompactionRunning
	m.when, m.at = at, at.Sub(w.quiet)
	w.moments = append(w.moments, m)
	return &w.moments[len(w.moments)-1], nil
}

// while takes moments while something is done.
func (w *watch) while(ctx context.Context, do func(context.Context) error) error {
	both, ctx := errgroup.WithContext(ctx)
	done := make(chan struct{})
	both.Go(func() error {
		defer close(done)
		return do(ctx)
	})
	both.Go(func() error {
		ticker := time.NewTicker(sampleEvery)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return nil
			case <-ticker.C:
				if _, err := w.take(ctx); err != nil {
					return err
				}
			}
		}
	})
	err := both.Wait()
	w.quiet = time.Now()
	for i := range w.moments {
		w.moments[i].at = w.moments[i].when.Sub(w.quiet) // what was last was not known before
	}
	return err
}

// untilFree takes moments until no more room is taken than the bound and dead blocks are deleted, and for so long at most as it may
// take.
func (w *watch) untilFree(ctx context.Context) error {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	said := time.Now()
	for {
		m, err := w.take(ctx)
		if err != nil {
			return err
		}
		isFree := m.ratio() <= deadBound && !m.running && m.graves == 0
		if isFree || m.at > deadPatience || time.Since(said) > 10*time.Second {
			said = time.Now()
			w.say("dead: after %.0f s ratio %.3f, in the stores %.3f, %d groups, %d dead blocks", m.at.Seconds(),
				m.ratio(), m.itemRatio(), m.groups, m.graves)
		}
		if isFree || m.at > deadPatience {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

package catalog_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/mem"
)

// Two starts of one gateway work on one catalog: only the later takes effect.
func TestALaterStartFencesTheEarlier(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		p := w.put(t, w.a, "k")
		later := w.open(t, w.engine, "a", "2")
		is(t, p.commit(w), catalog.ErrUnknown)
		is(t, w.a.Err(), catalog.ErrFenced)
		select {
		case <-w.a.Over():
		default:
			t.Error("the earlier start is not over")
		}
		if _, err := w.a.Begin(w.ctx, catalog.KindPut, w.now, noBlocks); !errors.Is(err, catalog.ErrFenced) {
			t.Errorf("announcing by the earlier start: %v, want ErrFenced", err)
		}
		must(t, w.put(t, later, "k").commit(w))
		must(t, later.Err())
		if _, err := catalog.Open(w.ctx, w.engine, catalog.Owner("a", "2")); !errors.Is(err, kv.ErrInUse) {
			t.Errorf("opening under the name of a start that was: %v, want kv.ErrInUse", err)
		}
	})
}

func noBlocks(block.Stamp) []catalog.BlockSet { return nil }

// A catalog that goes back under a gateway that lives on is noticed by the next change, whichever it is.
func TestALossIsNoticedByTheNextChange(t *testing.T) {
	for name, change := range map[string]func(w *world, c *catalog.Catalog) error{
		"an announcement": func(w *world, c *catalog.Catalog) error {
			_, err := c.Begin(w.ctx, catalog.KindPut, w.now, noBlocks)
			return err
		},
		"the patience": func(w *world, c *catalog.Catalog) error {
			return c.PutMembership(w.ctx, catalog.Membership{OutAfter: 77_000})
		},
		"expiry": func(w *world, c *catalog.Catalog) error {
			_, err := c.Expire(w.ctx, catalog.Forever, 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			engine := mem.New()
			w := newWorld(t, engine)
			w.put(t, w.b, "active")
			copied := engine.Clone()
			must(t, w.put(t, w.a, "k").commit(w))
			w.engine.Engine = copied
			is(t, change(w, w.a), catalog.ErrBehind)
			must(t, change(w, w.b))
		})
	}
}

// unclear is an engine that carries some updates out and says that it does not know, and does not carry others out.
type unclear struct {
	kv.Engine
	mutex sync.Mutex
	turn  int
	late  []func() // what was not carried out, and may come yet
}

func (u *unclear) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	u.mutex.Lock()
	u.turn++
	turn := u.turn
	u.mutex.Unlock()
	switch turn % 5 {
	case 1:
		_, _ = u.Engine.Update(ctx, checks, writes)
		return nil, errors.New("the answer was lost")
	case 3:
		checks, writes = slices.Clone(checks), slices.Clone(writes)
		u.mutex.Lock()
		defer u.mutex.Unlock()
		u.late = append(u.late, func() { _, _ = u.Engine.Update(context.WithoutCancel(ctx), checks, writes) })
		return nil, errors.New("the request was lost")
	}
	return u.Engine.Update(ctx, checks, writes)
}

// Unclear answers, and requests that are carried out much later, are no loss, and none takes effect twice.
func TestUnclearAnswersAreNoLoss(t *testing.T) {
	w := newWorld(t, mem.New())
	engine := &unclear{Engine: w.engine}
	c := w.open(t, engine, "c", "1")
	committed := 0
	for range 40 {
		switch err := w.put(t, c, "k").commit(w); {
		case err == nil:
			committed++
		case !errors.Is(err, catalog.ErrNotActive): // as where the request was lost
			t.Fatal(err)
		}
		engine.mutex.Lock()
		late := engine.late
		engine.late = nil
		engine.mutex.Unlock()
		for _, carryOut := range late {
			carryOut()
		}
	}
	must(t, c.Err())
	must(t, c.Audit(w.ctx))
	if committed < 10 {
		t.Errorf("%d of 40 puts were committed", committed)
	}
	sessions, err := c.Sessions(w.ctx)
	must(t, err)
	i := slices.IndexFunc(sessions, func(s catalog.Session) bool { return s.Gateway == "c" })
	if i < 0 || !sessions[i].Present || sessions[i].Updates < 80 || sessions[i].Upto == 0 {
		t.Errorf("sessions are %+v", sessions)
	}
}

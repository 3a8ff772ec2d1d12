package sim

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	catalogmem "github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/gateway/api"
)

// Trouble with which catalog it is: an old one is put in the place of the catalog, or a gateway is started on a copy of it. The
// catalog that was there all the time is what all checks go by: nothing that it names may be deleted.

// stray is what there is of that.
type stray struct {
	saved   *catalogmem.Engine // a copy that was made a while ago; nil: none
	copies  []*server          // gateways on copies, alive or not
	turns   int                // times the catalog was put back or forth: odd while it is an old one
	claimed bool               // a person has said that the catalog counts, since the last of this
	any     bool               // there was any of this
	people  int                // who have opened the catalog
}

// strayed returns how often the catalog was put back or forth: it is an old copy where that is odd.
func (t *trouble) strayed() int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.stray.turns
}

// turn puts another catalog in the place of the present one, nil for the one that is checked.
func (t *trouble) turn(engine *catalogmem.Engine) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.stray.turns++
	t.stray.any, t.stray.claimed = true, false
	t.losses.ledger.astray.Store(true)
	t.links.lead(engine)
}

// putBack has the gateways work with the catalog as it was a while ago, and nobody is told; then with the right one again. Most
// agents have seen that it went on since: what nobody has seen may be lost unnoticed.
func (t *trouble) putBack(d *dice) func() {
	t.mutex.Lock()
	saved, away := t.stray.saved, t.stray.turns%2 == 1
	t.stray.saved = nil
	if saved == nil && !away {
		t.stray.saved = t.losses.ledger.engine.Clone()
	}
	t.mutex.Unlock()
	g, p := pick(d, t.cluster.servers).serving()
	if saved == nil || away || g == nil || !t.isAhead(saved) {
		return nil
	}
	since := time.Now()
	if err := through(p, func(ctx context.Context) error { _, err := g.Doctor(ctx); return err }); err != nil {
		return nil
	}
	if _, unheard := g.Starts(since); 2*len(unheard) >= len(t.cluster.agents) || t.strayed()%2 == 1 {
		return nil
	}
	t.fault(catalogName, "is as it was a while ago")
	t.turn(saved)
	return t.putForth
}

// isAhead reports whether a gateway has changed the catalog since it was saved.
func (t *trouble) isAhead(saved *catalogmem.Engine) bool {
	ctx := context.Background()
	rows, err := t.losses.ledger.engine.Scan(ctx, "v/gw", "v/gw", 1000)
	if err != nil {
		t.journal.violate(Setup, "listing sessions: %v", err)
	}
	for _, row := range rows {
		was, err := saved.Read(ctx, row.Key)
		if err != nil || !bytes.Equal(was[0], row.Value) {
			return err == nil
		}
	}
	return false
}

// putForth has the gateways work with the catalog that is checked again.
func (t *trouble) putForth() {
	if t.strayed()%2 == 0 {
		return
	}
	t.journal.write(catalogName, "is the right one again")
	t.turn(nil)
}

// copyCatalog starts a gateway on a copy of the catalog, as it is now or was a while ago, and works through it.
func (t *trouble) copyCatalog(d *dice) func() {
	origin := pick(d, t.cluster.servers)
	t.mutex.Lock()
	engine := t.losses.ledger.engine.Clone()
	if t.stray.saved != nil && d.chance(0.5) {
		engine = t.stray.saved.Clone()
	}
	t.stray.any, t.stray.claimed = true, false
	t.losses.ledger.astray.Store(true)
	ways := &links{
		journal: t.journal, network: t.network, checker: t.links.checker, dice: t.links.dice, mayLose: t.plan.forgets, astray: engine,
	}
	s := &server{
		plan: t.plan, journal: t.journal, network: t.network, links: ways, agents: t.cluster.agents,
		name: fmt.Sprintf("copy%d", len(t.stray.copies)+1), id: origin.id, skew: origin.skew,
	}
	t.stray.copies = append(t.stray.copies, s)
	t.mutex.Unlock()
	t.fault(s.name, "a gateway is started on a copy of the catalog of %s", origin.name)
	s.start()
	go t.workOn(s, d.below(1<<30))
	return func() {
		if s.isAlive() {
			s.crash()
		}
	}
}

// workOn replaces and deletes objects through the gateway of a copy for as long as it lives. What comes of it matters to nobody.
func (t *trouble) workOn(s *server, seed int) {
	d := newDice(uint64(seed), 0)
	for s.isAlive() {
		g, p := s.serving()
		if g != nil {
			o := pick(d, t.plan.keys)
			_ = through(p, func(ctx context.Context) error {
				switch d.below(3) {
				case 0:
					return g.Delete(ctx, o.key, nil)
				case 1:
					_, err := g.Sweep(ctx, api.SweepRequest{})
					return err
				}
				size := int64(o.each * segments)
				_, err := g.Put(ctx, o.key, bytes.NewReader(make([]byte, size)), api.PutOptions{Size: size})
				return err
			})
		}
		_ = wait(context.Background(), d.between(0, 200*time.Millisecond)) // its context never ends
	}
}

// endStray ends the gateways of copies and gives back the right catalog.
func (t *trouble) endStray() {
	t.putForth()
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, s := range t.stray.copies {
		if s.isAlive() {
			s.crash()
		}
	}
}

// decide says, as a person does, that the catalog counts which is checked and that the others are given up, if there were
// others, and again if some agent still knows better. It reports whether nothing is left to decide.
func (t *trouble) decide() bool {
	ctx := context.Background()
	ledger := t.losses.ledger
	alarm, err := ledger.records.Alarm(ctx)
	if err != nil {
		t.journal.violate(Setup, "reading the alarm: %v", err)
		return false
	}
	t.mutex.Lock()
	claimed, any := t.stray.claimed, t.stray.any
	t.mutex.Unlock()
	switch {
	case alarm != nil && !any:
		t.journal.violate(NoFalseAlarm, "%s found at node %s: %q, %d blocks", alarm.Gateway, alarm.Node, alarm.Refused, alarm.Blocks)
		return false
	case alarm == nil && (claimed || !any):
		return true
	}
	g, _ := t.cluster.servers[0].serving()
	if g == nil {
		return false
	}
	starts, unheard := g.Starts(time.Now().Add(-3 * time.Second))
	if len(unheard) > 0 {
		return false
	}
	err = t.asPerson(func(records *catalog.Catalog) error { return records.Claim(ctx, starts) })
	if err == nil {
		err = t.asPerson(func(records *catalog.Catalog) error { return records.Accept(ctx) })
	}
	t.journal.write("world", "the catalog is claimed and %s do not count any more: %v", starts, err)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.stray.claimed = err == nil
	return false // before the gateways have started anew
}

// asPerson does something with the catalog by itself.
func (t *trouble) asPerson(do func(records *catalog.Catalog) error) error {
	t.mutex.Lock()
	t.stray.people++
	name := catalog.Owner("person", fmt.Sprint(t.stray.people))
	t.mutex.Unlock()
	records, err := catalog.Open(context.Background(), t.losses.ledger.engine, name)
	if err != nil {
		return err
	}
	return do(records)
}

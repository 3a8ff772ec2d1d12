package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/schema"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/sim/register"
)

// Bounds of convergence, on the simulated clock.
const (
	settleTime  = 10 * time.Minute
	settlePause = time.Second
)

// settle ends all trouble and then waits until the cluster has come to rest; what must hold at rest is checked.
func (w *world) settle(seed uint64) {
	w.trouble.calm()
	d := newDice(seed, 5)
	began := time.Now()
	var cause string
	var lacks Promise
	for time.Since(began) < settleTime {
		if w.journal.violation() != "" {
			return
		}
		if lacks, cause = w.unsettled(); cause == "" {
			break
		}
		w.operator.mend(d)
		// The context never ends: the wait cannot fail.
		_ = wait(context.Background(), settlePause)
	}
	if cause != "" {
		w.journal.violate(lacks, "%s after all trouble had ended the cluster is not at rest: %s", settleTime, cause)
		return
	}
	w.journal.write("world", "at rest after %s", time.Since(began).Round(time.Millisecond))
	if err := w.ledger.records.Audit(context.Background()); err != nil {
		w.journal.violate(Agreement, "at rest: %v", err)
	}
	w.readEverything()
}

// unsettled says what is not at rest yet, nothing where all is, and which promise it breaks if that stays.
func (w *world) unsettled() (Promise, string) {
	ctx := context.Background()
	if !w.trouble.decide() {
		return Liveness, "the catalog is not claimed"
	}
	for _, s := range w.cluster.servers {
		if g, _ := s.serving(); g == nil {
			return Liveness, s.name + " does not serve"
		}
	}
	if attempts := w.ledger.attempts(); len(attempts) > 0 {
		return Liveness, fmt.Sprintf("%d attempts are under way, the first is %s", len(attempts), attempts[0])
	}
	graves, err := w.ledger.engine.Scan(ctx, "d/", "d/", 1000)
	if err != nil || len(graves) > 0 {
		return Liveness, fmt.Sprintf("%d dead blocks wait for their delete (%v)", len(graves), err)
	}
	pieces, err := w.ledger.engine.Scan(ctx, schema.PrefixPiece, schema.PrefixPiece, 1000)
	if err != nil || len(pieces) > 0 {
		return NoLeak, fmt.Sprintf("%d pieces of large objects wait for a sweep (%v)", len(pieces), err)
	}
	dropped, err := w.ledger.engine.Scan(ctx, schema.PrefixDropped, schema.PrefixDropped, 1000)
	if err != nil || len(dropped) > 0 {
		return NoLeak, fmt.Sprintf("%d earlier versions wait for a sweep (%v)", len(dropped), err)
	}
	jobs, err := w.ledger.records.Jobs(ctx)
	if err != nil {
		return Setup, err.Error()
	}
	for _, job := range jobs {
		if bytes.Contains(job.Body, []byte(`"state":"running"`)) {
			return Liveness, "transition " + job.ID + " is running"
		}
	}
	named := map[string]bool{}
	for _, view := range w.ledger.groups() {
		if view.Live == 0 {
			return NoLeak, fmt.Sprintf("group %s is empty and not freed", view.ID)
		}
		if err := w.disks.checkGroup(&view.Group, func(block.NodeID) bool { return false }); err != nil {
			return Liveness, fmt.Sprintf("group %s: %v", view.ID, err)
		}
		for slot, items := range view.Slots {
			for _, item := range items {
				named[view.Address(slot, item).String()] = true
			}
		}
	}
	for _, a := range w.disks {
		for _, key := range a.keys() {
			if name := string(a.name) + ":" + key; !named[name] {
				return NoLeak, "nobody names block " + name
			}
		}
	}
	return "", ""
}

// readEverything reads every key through every gateway. Connections made in bad times may still have to be given up, but
// every read succeeds in the end.
func (w *world) readEverything() {
	for _, o := range w.plan.keys {
		for _, s := range w.cluster.servers {
			g, p := s.serving()
			if g == nil {
				w.journal.violate(Liveness, "at rest %s does not serve", s.name)
				return
			}
			at := w.history.tick()
			value, _, err := w.clients.get(g, p, o, 0)
			for began := time.Now(); err != nil && time.Since(began) < settleTime; value, _, err = w.clients.get(g, p, o, 0) {
				w.journal.write(p.name, "get %s: %v", o.key, err)
				_ = wait(context.Background(), settlePause) // its context never ends
			}
			if err != nil {
				w.journal.violate(Readable, "at rest, reading %s through %s: %v", o.key, s.name, err)
				continue
			}
			w.history.record(p.name, register.Call{Key: o.key, Action: register.Get}, register.Answer{Value: value}, nil, at)
			w.readEarlier(g, p, o)
		}
	}
}

// readEarlier reads all versions that an object keeps.
func (w *world) readEarlier(g *gateway.Gateway, p *process, o object) {
	object, err := g.Find(context.Background(), o.key)
	if err != nil || object == nil || w.plan.keeps(o) == 0 {
		return
	}
	if kept, most := len(object.Earlier), w.plan.keeps(o); kept > most {
		w.journal.violate(NoLeak, "%s keeps %d earlier versions, %d at most", o.key, kept, most)
	}
	for _, revision := range object.Earlier {
		value, _, err := w.clients.getAt(g, p, o, revision, 0)
		for began := time.Now(); err != nil && !errors.Is(err, api.ErrNotFound) && time.Since(began) < settleTime; {
			_ = wait(context.Background(), settlePause) // its context never ends
			value, _, err = w.clients.getAt(g, p, o, revision, 0)
		}
		if err != nil && !errors.Is(err, api.ErrNotFound) { // it has expired
			w.journal.violate(Readable, "at rest, reading %s at revision %s through %s: %v", o.key, revision, p.name, err)
		}
		w.history.recalled(p.name, o.key, revision, value, err)
	}
}

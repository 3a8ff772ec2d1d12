package sim

import (
	"bytes"
	"context"
	"errors"
	"math"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/sim/register"
)

// errDied is what a client sees of a gateway that crashed before it answered.
var errDied = errors.New("the gateway crashed")

const (
	clientPatience = 20 * time.Second
	// openPerKey bounds the writes of unknown outcome per key: the check of a history takes time exponential in them.
	openPerKey = 5
	// callsPerKey bounds the history of a key.
	callsPerKey = 60
)

// client works on random keys through random gateways until ctx ends.
func (w *world) client(ctx context.Context, d *dice) {
	for wait(ctx, d.between(0, w.plan.think)) == nil {
		g, p := pick(d, w.servers).serving()
		if g == nil {
			continue
		}
		w.act(g, p, d, pick(d, w.plan.keys))
	}
}

// through calls a gateway and gives up when its process dies.
func (w *world) through(p *process, work func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), clientPatience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	select {
	case err := <-done:
		if !p.isAlive() {
			return errDied
		}
		return err
	case <-p.died:
		return errDied
	}
}

// act does one operation and records what came of it.
func (w *world) act(g *gateway.Gateway, p *process, d *dice, o object) {
	in := register.Call{Key: o.key}
	if w.isWornOut(o.key) {
		in.Action = register.Get
	} else {
		in.Action = pick(d, []register.Action{register.Get, register.Get, register.Get, register.Put, register.Put, register.Create, register.Update, register.Update, register.Update, register.Delete, register.Swap})
	}
	at := w.tick()
	var out register.Answer
	var err error
	switch in.Action {
	case register.Get:
		out.Value, _, err = w.get(g, p, o)
	case register.Put:
		in.Value, err = w.put(g, p, o, nil)
	case register.Create:
		in.Value, err = w.put(g, p, o, &block.Stamp{})
	case register.Swap:
		value, revision, readErr := w.get(g, p, o)
		w.record(p.name, register.Call{Key: o.key, Action: register.Get}, register.Answer{Value: value}, readErr, at)
		// The wait lets others write meanwhile; that it was cut short does not matter.
		_ = wait(context.Background(), d.between(0, w.plan.think))
		if readErr != nil || value == register.Absent {
			return
		}
		at, in.Over = w.tick(), value
		in.Value, err = w.put(g, p, o, &revision)
	case register.Update:
		in.First = d.below(segments)
		in.End = in.First + 1 + d.below(segments-in.First)
		in.Number = w.nextNumber()
		data := make([]byte, (in.End-in.First)*o.each)
		for i := in.First; i < in.End; i++ {
			register.Fill(o.key, i, in.Number, data[(i-in.First)*o.each:][:o.each])
		}
		err = w.through(p, func(ctx context.Context) error {
			_, err := g.Update(ctx, o.key, int64(in.First*o.each), data, nil)
			return err
		})
	case register.Delete:
		err = w.through(p, func(ctx context.Context) error { return g.Delete(ctx, o.key, nil) })
	}
	w.record(p.name, in, out, err, at)
}

// put writes an object whole, with new numbers, where a revision is given only over that one.
func (w *world) put(g *gateway.Gateway, p *process, o object, over *block.Stamp) (register.Value, error) {
	numbers := make([]uint32, segments)
	for i := range numbers {
		numbers[i] = w.nextNumber()
	}
	options := api.PutOptions{Size: int64(o.each * segments), IfRevision: over}
	return register.Of(numbers), w.through(p, func(ctx context.Context) error {
		_, err := g.Put(ctx, o.key, bytes.NewReader(register.Content(o.key, o.each*segments, numbers)), options)
		return err
	})
}

// record notes an operation by its outcome: acknowledged, refused (which promises that nothing happened), or unknown.
func (w *world) record(who string, in register.Call, out register.Answer, err error, at int64) {
	back := w.tick()
	switch {
	case err == nil:
	case errors.Is(err, catalog.ErrNoObject):
		out.Missing = true
	case errors.Is(err, api.ErrDataLoss):
		w.journal.violate("%s through %s: %v", in, who, err)
		return
	case in.Action == register.Get || isRefusal(err):
		w.journal.write(who, "%s: refused: %v", in, err)
		return
	default:
		w.journal.write(who, "%s: unknown: %v", in, err)
		out.Unknown, back = true, math.MaxInt64
	}
	if !out.Unknown {
		w.journal.write(who, "%s: %s", in, out)
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if out.Unknown {
		w.unknowns[in.Key]++
	} else {
		w.known++
	}
	w.history[in.Key] = append(w.history[in.Key], porcupine.Operation{Input: in, Output: out, Call: at, Return: back})
}

// isRefusal reports whether a write that failed has promised that it did not and will not take effect.
func isRefusal(err error) bool {
	return !errors.Is(err, errDied) && !errors.Is(err, api.ErrUnknownOutcome) && !errors.Is(err, catalog.ErrUnknown)
}

// get reads an object whole, and its revision. Bytes that are of no one version break a promise.
func (w *world) get(g *gateway.Gateway, p *process, o object) (register.Value, block.Stamp, error) {
	var data bytes.Buffer
	var revision block.Stamp
	err := w.through(p, func(ctx context.Context) error {
		reader, err := g.Open(ctx, o.key)
		if err != nil {
			return err
		}
		err = reader.WriteTo(ctx, &data, 0, reader.Size())
		revision = reader.Object().Revision
		return err
	})
	if errors.Is(err, catalog.ErrNoObject) {
		return register.Absent, block.Stamp{}, nil
	}
	if err != nil {
		return register.Absent, block.Stamp{}, err
	}
	value, err := register.Parse(o.key, segments, data.Bytes())
	if err != nil {
		w.journal.violate("a read through %s: %v", p.name, err)
	}
	return value, revision, err
}

func (w *world) isWornOut(key string) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.unknowns[key] >= openPerKey || len(w.history[key]) >= callsPerKey
}

func (w *world) nextNumber() uint32 {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.number++
	return w.number
}

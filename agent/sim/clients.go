package sim

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	objects "github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/sim/register"
)

// errDied is what a client sees of a gateway that crashed before it answered.
var errDied = errors.New("the gateway crashed")

const clientPatience = 20 * time.Second

// clients work on the objects of the plan and record what they saw.
type clients struct {
	plan    *plan
	journal *journal
	cluster *cluster
	history *history
	trouble *trouble
}

// work is one client, which sends and takes bodies slowly or at once: it works on random keys through random gateways until ctx
// ends.
func (c *clients) work(ctx context.Context, d *dice, isSlow bool) {
	for wait(ctx, d.between(0, c.plan.think)) == nil {
		g, p := pick(d, c.cluster.servers).serving()
		if g == nil {
			continue
		}
		pace := time.Duration(0)
		if isSlow {
			pace = d.between(0, pick(d, paces))
		}
		c.act(g, p, d, pick(d, c.plan.keys), pace)
	}
}

// through calls a gateway and gives up when its process dies.
func through(p *process, work func(ctx context.Context) error) error {
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

// paces are the longest that slow clients take for each piece of a body, some of them longer than dead blocks are left alone.
var paces = []time.Duration{20 * time.Millisecond, time.Second, 6 * time.Second}

// slowly sends a body in pieces, or takes what comes, and pauses before each.
type slowly struct {
	ctx   context.Context
	pace  time.Duration
	piece int // bytes
	body  *bytes.Reader
	into  *bytes.Buffer
}

func (s *slowly) Read(p []byte) (int, error) {
	if s.pace == 0 {
		return s.body.Read(p)
	}
	if err := wait(s.ctx, s.pace); err != nil {
		return 0, err
	}
	return s.body.Read(p[:min(s.piece, len(p))])
}

func (s *slowly) Write(p []byte) (int, error) {
	if s.pace > 0 {
		if err := wait(s.ctx, s.pace); err != nil {
			return 0, err
		}
	}
	return s.into.Write(p)
}

// actions are what clients do, the more often the more of it there is.
var actions = []register.Action{
	register.Get, register.Get, register.Get, register.Put, register.Put, register.Create, register.Update, register.Update, register.Update,
	register.Delete, register.Swap, register.Lend, register.Remove,
}

// act does one operation and records what came of it.
func (c *clients) act(g *gateway.Gateway, p *process, d *dice, o object, pace time.Duration) {
	in := register.Call{Key: o.key}
	if c.history.isWornOut(o.key) {
		in.Action = register.Get
	} else {
		in.Action = pick(d, actions)
	}
	at, began := c.history.tick(), c.trouble.strayed()
	var out register.Answer
	var err error
	switch in.Action {
	case register.Get:
		if c.plan.keeps(o) > 0 && d.chance(0.3) {
			c.recall(g, p, d, o, pace, began)
			return
		}
		out.Value, _, err = c.get(g, p, o, pace)
	case register.Put:
		if c.plan.repeats {
			in.Value, out.Revision, err = c.putOnce(g, p, d, o)
		} else {
			in.Value, out.Revision, err = c.put(g, p, o, api.PutOptions{}, pace)
		}
	case register.Create:
		in.Value, out.Revision, err = c.put(g, p, o, api.PutOptions{IfRevision: &block.Stamp{}}, pace)
	case register.Swap:
		value, revision, readErr := c.get(g, p, o, 0)
		c.note(p.name, register.Call{Key: o.key, Action: register.Get}, register.Answer{Value: value}, readErr, at, began)
		// The wait lets others write meanwhile; that it was cut short does not matter.
		_ = wait(context.Background(), d.between(0, c.plan.think))
		if readErr != nil || value == register.Absent || c.trouble.strayed() != began {
			return
		}
		at, in.Over = c.history.tick(), value
		in.Value, out.Revision, err = c.put(g, p, o, api.PutOptions{IfRevision: &revision}, pace)
	case register.Update:
		in.First = d.below(segments)
		in.End = in.First + 1 + d.below(segments-in.First)
		in.Number = c.history.nextNumber()
		data := make([]byte, (in.End-in.First)*o.each)
		for i := in.First; i < in.End; i++ {
			register.Fill(o.key, i, in.Number, data[(i-in.First)*o.each:][:o.each])
		}
		err = through(p, func(ctx context.Context) error {
			object, err := g.Update(ctx, o.key, int64(in.First*o.each), data, nil)
			out.Revision = object.Revision
			return err
		})
	case register.Delete:
		err = through(p, func(ctx context.Context) error { return g.Delete(ctx, o.key, nil) })
	case register.Lend:
		span := d.between(0, c.plan.length/4)
		in.Value, out.Revision, err = c.put(g, p, o, api.PutOptions{Expires: p.now().Add(span)}, pace)
		go c.expire(o, in.Value, time.Now().Add(span), began)
	case register.Remove:
		c.together(g, p, d, o, at, began)
		return
	}
	c.note(p.name, in, out, err, at, began)
}

// errAstray is what is made of the answer of a gateway that may have worked with an old copy of the catalog.
var errAstray = fmt.Errorf("%w: the catalog was another for a while", api.ErrUnknownOutcome)

// note records an operation that began when the catalog had been put back or forth so many times. What came of it is not known
// if that was so meanwhile: what a catalog that is given up later acknowledged is lost with it, and its revisions with its numbers.
func (c *clients) note(who string, in register.Call, out register.Answer, err error, at int64, began int) {
	if c.trouble.strayed() != began || began%2 == 1 {
		if in.Action == register.Get {
			return
		}
		err, out.Revision = errAstray, block.Stamp{}
	}
	c.history.record(who, in, out, err, at)
}

// numbers are new ones for all segments of an object.
func (c *clients) numbers() []uint32 {
	numbers := make([]uint32, segments)
	for i := range numbers {
		numbers[i] = c.history.nextNumber()
	}
	return numbers
}

// expire notes that what was put has expired, once it has by every clock. A gateway may believe for a moment that it is another time.
func (c *clients) expire(o object, value register.Value, at time.Time, began int) {
	if wait(context.Background(), time.Until(at)+2*c.plan.mostSkew()) != nil || c.trouble.strayed() != began {
		return
	}
	c.note("clocks", register.Call{Key: o.key, Action: register.Expire, Value: value}, register.Answer{}, nil, c.history.tick(), began)
}

// together puts an object and removes or puts another, in one transaction, which is noted as what became of each.
func (c *clients) together(g *gateway.Gateway, p *process, d *dice, o object, at int64, began int) {
	numbers := c.numbers()
	calls := []register.Call{{Key: o.key, Action: register.Put, Value: register.Of(numbers)}}
	writes := []objects.Write{{Key: o.key, Data: register.Content(o.key, o.each*segments, numbers)}}
	if other := pick(d, c.plan.keys); other.key != o.key && !c.history.isWornOut(other.key) {
		calls = append(calls, register.Call{Key: other.key, Action: register.Remove})
		writes = append(writes, objects.Write{Key: other.key, Delete: true})
	}
	err := through(p, func(ctx context.Context) error { return g.Apply(ctx, writes, nil) })
	for _, in := range calls {
		c.note(p.name, in, register.Answer{}, err, at, began)
	}
}

// put writes an object whole, with new numbers. It returns its revision.
func (c *clients) put(
	g *gateway.Gateway, p *process, o object, options api.PutOptions, pace time.Duration,
) (value register.Value, revision block.Stamp, err error) {
	numbers := c.numbers()
	options.Size = int64(o.each * segments)
	err = through(p, func(ctx context.Context) error {
		body := &slowly{ctx: ctx, pace: pace, piece: o.each, body: bytes.NewReader(register.Content(o.key, o.each*segments, numbers))}
		object, err := g.Put(ctx, o.key, body, options)
		if err == nil {
			revision = object.Revision
		}
		return err
	})
	return register.Of(numbers), revision, err
}

// putOnce writes an object whole, and asks for the same again through other gateways while it does not know what came of it.
func (c *clients) putOnce(
	g *gateway.Gateway, p *process, d *dice, o object,
) (value register.Value, revision block.Stamp, err error) {
	numbers := c.numbers()
	options := api.PutOptions{Size: int64(o.each * segments), Request: api.NewRequest(time.Now(), func(b []byte) {
		for i := range b {
			b[i] = byte(d.below(256))
		}
	})}
	data := register.Content(o.key, o.each*segments, numbers)
	var unknown error
	for range repeats {
		err = through(p, func(ctx context.Context) error {
			object, err := g.Put(ctx, o.key, bytes.NewReader(data), options)
			revision = object.Revision
			return err
		})
		if err == nil {
			return register.Of(numbers), revision, nil
		}
		if !isRefusal(err) {
			unknown = err
		}
		// The wait lets others write meanwhile; that it was cut short does not matter.
		_ = wait(context.Background(), d.between(0, c.plan.think))
		if g, p = pick(d, c.cluster.servers).serving(); g == nil {
			break
		}
	}
	return register.Of(numbers), block.Stamp{}, cmp.Or(unknown, err) // a refusal says nothing of those before it
}

// repeats is how often a client asks for the same put.
const repeats = 4

// recall reads one of the earlier versions that an object keeps, which is what was put under its revision, or is gone by now.
func (c *clients) recall(g *gateway.Gateway, p *process, d *dice, o object, pace time.Duration, began int) {
	var kept []block.Stamp
	err := through(p, func(ctx context.Context) error {
		reader, err := g.Open(ctx, o.key)
		if err == nil {
			kept = reader.Object().Earlier
		}
		return err
	})
	if err != nil || len(kept) == 0 {
		return
	}
	revision := pick(d, kept)
	value, _, err := c.getAt(g, p, o, revision, pace)
	if err == nil && value == register.Absent {
		c.journal.write(p.name, "%s at revision %s: deleted meanwhile, with all of its versions", o.key, revision)
		return
	}
	if c.trouble.strayed() == began && began%2 == 0 {
		c.history.recalled(p.name, o.key, revision, value, err)
	}
}

// get reads an object whole, and its revision. Bytes that are of no one version break a promise.
func (c *clients) get(g *gateway.Gateway, p *process, o object, pace time.Duration) (register.Value, block.Stamp, error) {
	return c.getAt(g, p, o, block.Stamp{}, pace)
}

// getAt is get of an earlier version, or of what there is now, for the zero stamp.
func (c *clients) getAt(g *gateway.Gateway, p *process, o object, at block.Stamp, pace time.Duration) (register.Value, block.Stamp, error) {
	var data bytes.Buffer
	var revision block.Stamp
	err := through(p, func(ctx context.Context) error {
		var reader *objects.Reader
		var err error
		if at.IsZero() {
			reader, err = g.Open(ctx, o.key)
		} else {
			reader, err = objects.OpenRevision(ctx, g.Objects, o.key, at)
		}
		if err != nil {
			return err
		}
		if err := wait(ctx, pace); err != nil {
			return err
		}
		err = reader.WriteTo(ctx, &slowly{ctx: ctx, pace: pace, into: &data}, 0, reader.Size())
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
		c.journal.violate(NoMixture, "a read through %s: %v", p.name, err)
	}
	return value, revision, err
}

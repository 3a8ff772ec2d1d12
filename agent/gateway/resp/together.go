package resp

import (
	"slices"
	"time"

	"github.com/restripe/restripe/agent/gateway/values"
)

// mostTogether is how many reads of one connection are made together.
const mostTogether = mostAtOnce / 2

// together is reads of values of one connection that came together, and that nothing hinders.
type together []*call

// gather keeps a call until it is seen what comes after it, if both may be read together. It reports whether it did.
func (c *connection) gather(x *call) bool {
	if x.entry.now == nil || len(c.watched) > 0 || len(c.gathered) == 0 && !c.reader.waiting() || x.allowed() != nil {
		return false
	}
	if c.gathered = append(c.gathered, x); len(c.gathered) == mostTogether || !c.reader.waiting() {
		c.carryGathered()
	}
	return true
}

// carryGathered has those calls carried out that were kept.
func (c *connection) carryGathered() {
	calls := c.gathered
	switch len(calls) {
	case 0:
		return
	case 1:
		c.lines.add(calls[0])
	default:
		c.lines.enter(calls...)
		free := make(together, 0, len(calls))
		for _, x := range calls {
			if len(x.after) > 0 {
				c.server.workers.run(x)
			} else {
				free = append(free, x)
			}
		}
		if len(free) > 0 {
			c.server.workers.run(free)
		}
	}
	clear(calls)
	c.gathered = calls[:0]
}

// work carries the calls out. Those that cannot be carried out together are by themselves.
func (t together) work() {
	keys := make([]string, len(t))
	for i, x := range t {
		keys[i] = x.key(1)
	}
	t[0].client.ahead.GetTogether(t[0].ctx, keys, func(some []values.Got) {
		for _, got := range slices.Backward(some) { // so that the first that is waited for is the last to be done
			x := t[got.Index]
			if !got.Known {
				x.begun = got.Begun
				x.client.server.workers.run(x)
				continue
			}
			x.reply.value(got.Value)
			x.wasDone()
			close(x.done)
		}
	})
}

// wasDone takes note that the call was carried out, without an error.
func (x *call) wasDone() {
	x.client.server.metrics.observe(x.entry, nil, time.Since(x.began))
	x.client.server.commands.Add(1)
	if x.silent {
		x.reply.clear()
	}
}

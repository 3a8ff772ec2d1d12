package resp

import (
	"errors"
	"sync/atomic"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/values"
)

// Bounds on transactions.
const (
	transactionTries = 100
	queueMost        = 100_000  // commands
	queueBytes       = 64 << 20 // of commands
	queueFree        = 64 << 10 // bytes that take nothing of the budget
	replyMost        = 64 << 20 // bytes of the replies of one
	watchedMost      = 1000     // keys
)

// queue is what a client has sent since MULTI.
type queue struct {
	calls   []*call
	bytes   int64
	free    []func()
	spoiled bool // one was refused, so that none is carried out
}

func (c *connection) dropQueue() {
	if c.queue == nil {
		return
	}
	c.queue.clear()
	c.queue = nil
}

// clear gives memory back.
func (q *queue) clear() {
	for _, x := range q.calls {
		x.command.clear()
	}
	for _, free := range q.free {
		free()
	}
	q.calls, q.free = nil, nil
}

func doMulti(x *call) error {
	if x.client.queue != nil {
		return errNested
	}
	x.client.queue = &queue{}
	x.reply.ok()
	return nil
}

func doDiscard(x *call) error {
	if x.client.queue == nil {
		return errDiscardAlone
	}
	x.client.dropQueue()
	x.client.watched = nil
	x.reply.ok()
	return nil
}

// enqueue keeps the command for EXEC.
func (x *call) enqueue() error {
	if x.entry.outside {
		return redisError("ERR Command not allowed inside a transaction")
	}
	q := x.client.queue
	q.bytes += x.size
	if len(q.calls) == queueMost || q.bytes > queueBytes {
		return api.Refuse(api.ErrBadRequest, "a transaction has at most %d commands and %d bytes", queueMost, queueBytes)
	}
	if x.reserved == 0 && q.bytes > queueFree { // else the command has taken it already
		free, room := x.client.server.limits.memory.Try(x.size)
		if !room {
			return errNoMemory
		}
		q.free = append(q.free, free)
	}
	q.calls = append(q.calls, &call{command: x.command, client: x.client, entry: x.entry})
	x.command = command{}
	x.reply.status("QUEUED")
	return nil
}

func doWatch(x *call) error {
	if x.client.queue != nil {
		return errWatchInside
	}
	if len(x.client.watched)+len(x.arguments)-1 > watchedMost {
		return api.Refuse(api.ErrBadRequest, "a client watches at most %d keys", watchedMost)
	}
	for i := 1; i < len(x.arguments); i++ {
		key := x.key(i)
		if _, is := x.client.watched[key]; is {
			continue
		}
		revision, err := x.revisionOf(key)
		if err != nil {
			return err
		}
		if x.client.watched == nil {
			x.client.watched, x.client.broken = map[string]block.Stamp{}, new(atomic.Bool)
		}
		x.client.watched[key] = revision
	}
	x.reply.ok()
	return nil
}

// revisionOf is the revision of a key's value, zero where there is none.
func (x *call) revisionOf(key string) (block.Stamp, error) {
	info, err := x.session.Look(x.ctx, key)
	if info == nil || err != nil {
		return block.Stamp{}, err
	}
	return info.Revision, nil
}

func doUnwatch(x *call) error {
	if x.transaction == nil { // in a transaction it says nothing about what was watched before
		x.client.watched = nil
	}
	x.reply.ok()
	return nil
}

// doExec has everything since MULTI take effect together, unless a watched key was changed: then the answer is null.
func doExec(x *call) error {
	c := x.client
	q := c.queue
	if q == nil {
		return errExecAlone
	}
	watched, isBroken := c.watched, len(c.watched) > 0 && c.broken.Load()
	c.queue, c.watched = nil, nil
	defer q.clear()
	if q.spoiled {
		return errAborted
	}
	if isBroken {
		x.reply.noArray()
		return nil
	}
	bytes, large := x.reply.mark()
	for try := range transactionTries {
		err := x.run(q.calls, watched)
		if err == nil {
			return nil
		}
		x.reply.back(bytes, large)
		if !errors.Is(err, api.ErrConflict) {
			return err
		}
		for key, revision := range watched {
			now, err := x.revisionOf(key)
			if err != nil {
				return err
			}
			if now != revision {
				x.reply.noArray()
				return nil
			}
		}
		if err := values.Pause(x.ctx, try); err != nil {
			return err
		}
	}
	return api.Refuse(api.ErrBusy, "others changed the same keys first %d times; nothing was changed, try again", transactionTries)
}

// run carries calls out in a transaction, and commits it. A call that the client is to blame for fails alone; for any other error the
// transaction does.
func (x *call) run(calls []*call, watched map[string]block.Stamp) error {
	t := x.session.Begin()
	for key, revision := range watched {
		t.Expect(key, revision)
	}
	x.reply.array(len(calls))
	for _, queued := range calls {
		queued.ctx, queued.keys, queued.transaction = x.ctx, t, t
		queued.session, queued.into = x.session, x.client.class
		queued.reply, x.reply = x.reply, reply{}
		err := queued.execute()
		if err != nil && outcomeOf(err) != "failed" {
			queued.fail(err)
			err = nil
		}
		x.reply, queued.reply = queued.reply, reply{}
		if err != nil {
			return err
		}
		if x.reply.size() > replyMost {
			return api.Refuse(api.ErrBadRequest, "the answers of the transaction have more than %d bytes; nothing was changed", replyMost)
		}
	}
	return t.Commit(x.ctx)
}

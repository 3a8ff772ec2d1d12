package resp

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/values"
)

func doGet(x *call) error {
	get := x.keys.Get
	if x.begun != (values.Begun{}) { // which it is of no transaction, and where no key is watched
		get = func(ctx context.Context, key string) (*values.Value, error) {
			return x.session.GetBegun(ctx, key, x.begun)
		}
	}
	value, err := get(x.ctx, x.key(1))
	if err == nil {
		x.reply.value(value)
	}
	return err
}

// getNow is doGet where the value is in memory.
func getNow(x *call) bool {
	value, known := x.session.GetNow(x.ctx, x.key(1))
	if known {
		x.reply.value(value)
	}
	return known
}

func doLength(x *call) error {
	info, err := x.keys.Look(x.ctx, x.key(1))
	switch {
	case err != nil:
	case info == nil:
		x.reply.integer(0)
	default:
		x.reply.integer(info.Size)
	}
	return err
}

func doGetMany(x *call) error {
	var found []*values.Value
	if x.transaction == nil {
		keys := make([]string, len(x.arguments)-1)
		for i := range keys {
			keys[i] = x.key(i + 1)
		}
		some, err := x.session.GetMany(x.ctx, keys)
		if err != nil {
			return err
		}
		found = some
		for i, value := range found {
			x.client.saw(keys[i], revisionAt(value))
		}
	}
	x.reply.array(len(x.arguments) - 1)
	for _, value := range found {
		x.reply.value(value)
	}
	if x.transaction == nil {
		return nil
	}
	for i := range x.arguments[1:] {
		value, err := x.transaction.Get(x.ctx, x.key(i+1))
		if err != nil {
			return err
		}
		x.reply.value(value)
	}
	return nil
}

// setting is what a command says about how a value is stored.
type setting struct {
	expiry
	ifNone, ifSome bool
	returns        bool // what was there
}

// doSet is SET key value [NX|XX] [GET] [EX|PX|EXAT|PXAT time|KEEPTTL].
func doSet(x *call) error {
	if len(x.arguments) == 3 {
		return x.store(2, setting{})
	}
	var s setting
	for i := 3; i < len(x.arguments); i++ {
		switch {
		case x.is(i, "nx") && !s.ifSome:
			s.ifNone = true
		case x.is(i, "xx") && !s.ifNone:
			s.ifSome = true
		case x.is(i, "get"):
			s.returns = true
		case x.is(i, "keepttl") && !s.given():
			s.keep = true
		default:
			used, err := s.read(x, i)
			if err != nil {
				return err
			}
			i += used
		}
	}
	if err := s.settle(x.entry.name); err != nil {
		return err
	}
	return x.store(2, s)
}

func doSetSeconds(x *call) error { return x.setFor(time.Second) }
func doSetMillis(x *call) error  { return x.setFor(time.Millisecond) }

func (x *call) setFor(unit time.Duration) error {
	s := setting{expiry: expiry{unit: unit, number: x.arguments[2]}}
	if err := s.settle(x.entry.name); err != nil {
		return err
	}
	return x.store(3, s)
}

func doGetSet(x *call) error { return x.store(2, setting{returns: true, expiry: expiry{}}) }

// store puts an argument as the value of the key, and replies.
func (x *call) store(argument int, s setting) error {
	key, data := x.key(1), x.command.take(argument)
	if !s.ifNone && !s.ifSome && !s.returns && !s.keep {
		err := x.putUntil(key, data, s.at)
		if err == nil {
			x.reply.ok()
		}
		return err
	}
	var old *values.Value
	there, done := false, false
	_, err := x.keys.Modify(x.ctx, key, func(now *values.Value) (values.Change, error) {
		there, done = now != nil, false
		if s.returns {
			keep(&old, now)
		}
		if there && s.ifNone || !there && s.ifSome {
			return values.Change{}, nil
		}
		done = true
		until := s.at
		if s.keep && now != nil {
			until = now.Expires
		}
		return x.until(x.put(data, until)), nil
	})
	switch {
	case err != nil:
		old.Release()
	case s.returns:
		x.reply.value(old)
	case !done:
		x.reply.null()
	default:
		x.reply.ok()
	}
	return err
}

// keep keeps a value that is there while it is decided what becomes of it, for the answer, in place of one that was there before.
func keep(kept **values.Value, now *values.Value) {
	(*kept).Release()
	if *kept = nil; now != nil {
		*kept = now.Keep()
	}
}

// kept replies with what was kept, unless there was an error.
func (x *call) kept(value *values.Value, err error) error {
	if err != nil {
		value.Release()
		return err
	}
	x.reply.value(value)
	return nil
}

// putUntil puts a value, or deletes it where it would be gone already.
func (x *call) putUntil(key string, data []byte, at time.Time) error {
	if isOver(at) {
		_, err := x.keys.Delete(x.ctx, key)
		return err
	}
	_, err := x.keys.Put(x.ctx, key, x.put(data, at))
	return err
}

// until is that a value is put, or deleted where it would be gone already.
func (x *call) until(put values.Put) values.Change {
	if isOver(put.Expires) {
		return values.Change{Delete: true}
	}
	return values.Change{Put: &put}
}

func doSetNew(x *call) error {
	done := false
	data := x.command.take(2)
	_, err := x.keys.Modify(x.ctx, x.key(1), func(now *values.Value) (values.Change, error) {
		done = now == nil
		if !done {
			return values.Change{}, nil
		}
		put := x.put(data, time.Time{})
		return values.Change{Put: &put}, nil
	})
	if err == nil {
		x.reply.yes(done)
	}
	return err
}

// doGetExpire is GETEX key [EX|PX|EXAT|PXAT time|PERSIST].
func doGetExpire(x *call) error {
	var e expiry
	persist := false
	for i := 2; i < len(x.arguments); i++ {
		if x.is(i, "persist") && !e.given() && !persist {
			persist = true
			continue
		}
		used, err := e.read(x, i)
		if err != nil || persist {
			return errors.Join(err, errWhere(persist, errSyntax))
		}
		i += used
	}
	if err := e.settle(x.entry.name); err != nil {
		return err
	}
	if !persist && !e.given() {
		return doGet(x)
	}
	var is *values.Value
	_, err := x.keys.Modify(x.ctx, x.key(1), func(now *values.Value) (values.Change, error) {
		keep(&is, now)
		if now == nil {
			return values.Change{}, nil
		}
		if persist && now.Expires.IsZero() {
			return values.Change{}, nil
		}
		return x.until(values.Put{Data: now.Data, Class: now.Class, Expires: e.at, Metadata: now.Metadata}), nil
	})
	return x.kept(is, err)
}

func errWhere(is bool, err error) error {
	if is {
		return err
	}
	return nil
}

func doGetDelete(x *call) error {
	var was *values.Value
	_, err := x.keys.Modify(x.ctx, x.key(1), func(now *values.Value) (values.Change, error) {
		keep(&was, now)
		return values.Change{Delete: true}, nil
	})
	return x.kept(was, err)
}

// doSetMany is MSET.
func doSetMany(x *call) error {
	if len(x.arguments)%2 == 0 {
		return wrongCount(x.entry.name)
	}
	if len(x.arguments) == 3 { // which goes with what others put
		return x.store(2, setting{})
	}
	err := x.together(x.putAll)
	if err == nil {
		x.reply.ok()
	}
	return err
}

func (x *call) putAll(t *values.Transaction) error {
	for i := 1; i < len(x.arguments); i += 2 {
		if _, err := t.Put(x.ctx, x.key(i), x.put(x.arguments[i+1], time.Time{})); err != nil {
			return err
		}
	}
	return nil
}

// doSetManyNew is MSETNX.
func doSetManyNew(x *call) error {
	if len(x.arguments)%2 == 0 {
		return wrongCount(x.entry.name)
	}
	none := true
	err := x.together(func(t *values.Transaction) error {
		none = true
		for i := 1; i < len(x.arguments); i += 2 {
			there, err := t.Look(x.ctx, x.key(i))
			if err != nil {
				return err
			}
			none = none && there == nil
		}
		if !none {
			return nil
		}
		return x.putAll(t)
	})
	if err == nil {
		x.reply.yes(none)
	}
	return err
}

// doGetRange is GETRANGE key start end, both counted from the end where they are negative.
func doGetRange(x *call) error {
	start, err := x.integer(2)
	if err != nil {
		return err
	}
	end, err := x.integer(3)
	if err != nil {
		return err
	}
	value, err := x.keys.Get(x.ctx, x.key(1))
	if err != nil {
		return err
	}
	if value == nil {
		x.reply.text("")
		return nil
	}
	value.Data = cut(value.Data, start, end)
	x.reply.value(value)
	return nil
}

// cut is the bytes from start to end, with that one, both counted from the end where they are negative.
func cut(data []byte, start, end int64) []byte {
	length := int64(len(data))
	if start < 0 && end < 0 && start > end {
		return nil
	}
	if start < 0 {
		start = max(start+length, 0)
	}
	if end < 0 {
		end = max(end+length, 0)
	}
	end = min(end, length-1)
	if start > end || length == 0 {
		return nil
	}
	return data[start : end+1]
}

// doSetRange is SETRANGE key offset value.
func doSetRange(x *call) error {
	offset, err := x.integer(2)
	if err != nil {
		return err
	}
	if offset < 0 {
		return errOffset
	}
	data := x.arguments[3]
	most := x.client.server.store.MaxBytes()
	if len(data) > 0 && (offset > math.MaxInt64-int64(len(data)) || offset+int64(len(data)) > most) {
		return errTooLong
	}
	return x.rewrite(func(now []byte) ([]byte, error) {
		if len(data) == 0 {
			return nil, nil
		}
		next := make([]byte, max(len(now), int(offset)+len(data)))
		copy(next, now)
		copy(next[offset:], data)
		return next, nil
	})
}

func doAppend(x *call) error {
	return x.rewrite(func(now []byte) ([]byte, error) {
		if int64(len(now)+len(x.arguments[2])) > x.client.server.store.MaxBytes() {
			return nil, errTooLong
		}
		return append(append(make([]byte, 0, len(now)+len(x.arguments[2])), now...), x.arguments[2]...), nil
	})
}

// rewrite has other bytes take the place of a value, unless they are nil, and replies with how many it has then.
func (x *call) rewrite(next func(now []byte) ([]byte, error)) error {
	length := 0
	_, err := x.keys.Modify(x.ctx, x.key(1), func(now *values.Value) (values.Change, error) {
		var data []byte
		if now != nil {
			data = now.Data
		}
		length = len(data)
		changed, err := next(data)
		if err != nil || changed == nil {
			return values.Change{}, err
		}
		length = len(changed)
		return x.changed(now, changed), nil
	})
	if err == nil {
		x.reply.count(length)
	}
	return err
}

// together has changes take effect at one instant: those of the transaction that the call is in, or of one of its own.
func (x *call) together(change func(*values.Transaction) error) error {
	if x.transaction != nil {
		return change(x.transaction)
	}
	bytes, large := x.reply.mark()
	for try := range transactionTries {
		t := x.session.Begin()
		err := change(t)
		if err == nil {
			err = t.Commit(x.ctx)
		}
		if !errors.Is(err, api.ErrConflict) {
			return err
		}
		x.reply.back(bytes, large)
		if err := values.Pause(x.ctx, try); err != nil {
			return err
		}
	}
	return api.Refuse(api.ErrBusy, "others changed the same keys first %d times; try again", transactionTries)
}

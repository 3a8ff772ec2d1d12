package memcache

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/values"
)

// metaGet carries out `mg <key> <flags>*`.
func (c *connection) metaGet(words []string) {
	if !c.metaWords(commandMetaGet, words) {
		return
	}
	m, wrong := parseMeta(words, 2)
	if wrong != "" {
		c.say(commandMetaGet, wrong, outcomeClientError)
		return
	}
	j := &job{call: &call{name: commandMetaGet, began: time.Now()}, key: m.key, last: true}
	j.do = func(ctx context.Context, j *job) { c.client.visit(ctx, j, m) }
	c.do(j, !m.quiet)
}

// visit does what mg asks for. What was changed by it once is only read again where there was no memory to keep it.
func (c *client) visit(ctx context.Context, j *job, m *meta) {
	now := time.Now()
	seen, err := c.seen(ctx, m)
	if err == nil {
		if v := m.visit(seen.item, now); v.changes {
			seen.value.Release()
			seen, err = c.changed(ctx, m)
		}
	}
	if err != nil {
		c.complain(j, err)
		return
	}
	c.server.stats.gets.note(seen.item != nil && !seen.visit.isNew)
	if m.touches {
		c.server.stats.touches.note(seen.item != nil)
	}
	if seen.item == nil {
		if j.outcome = outcomeMiss; !m.quiet {
			j.line = append(m.addAsked(append(j.line, "EN"...)), lineEnd...)
		}
		return
	}
	c.tellVisit(j, m, seen, now)
	j.again = func(ctx context.Context, j *job) {
		if seen.visit.changes {
			c.visitAgain(ctx, j, m, seen, now)
		} else {
			c.visit(ctx, j, m)
		}
	}
}

// errGone says that what a client was to be sent is not there any more.
var errGone = api.Refuse(api.ErrBusy, "the value was changed before there was memory to send it; try again")

// visitAgain reads again what mg has changed.
func (c *client) visitAgain(ctx context.Context, j *job, m *meta, before seen, now time.Time) {
	again, err := c.seen(ctx, m)
	if err == nil && (again.item == nil || again.item.cas != before.item.cas) {
		again.value.Release()
		err = errGone
	}
	if err != nil {
		c.complain(j, err)
		return
	}
	again.was, again.visit = before.was, before.visit
	c.tellVisit(j, m, again, now)
}

// seen is a value as mg saw it.
type seen struct {
	was   *item // before it was changed; nil: there was none
	item  *item // as it is; nil: there is none
	value *values.Value
	data  []byte
	visit visit
}

// seen reads what mg is to tell of.
func (c *client) seen(ctx context.Context, m *meta) (s seen, err error) {
	if m.value {
		if s.value, err = c.session.Get(ctx, m.key); s.value != nil {
			s.item, s.data = itemOfValue(s.value), s.value.Data
		}
	} else {
		var info *values.Info
		if info, err = c.session.Look(ctx, m.key); info != nil {
			s.item = itemOf(info.Size, info.Revision, info.Expires, info.Metadata)
		}
	}
	if s.item != nil {
		s.was, s.visit.expires = s.item, s.item.expires
	}
	return s, err
}

// changed changes a value as mg asks for.
func (c *client) changed(ctx context.Context, m *meta) (s seen, err error) {
	revision, err := c.session.Modify(ctx, m.key, func(value *values.Value) (values.Change, error) {
		s = seen{was: itemOfValue(value)}
		if s.visit = m.visit(s.was, time.Now()); s.was == nil && !s.visit.isNew {
			return values.Change{}, nil
		}
		put := &values.Put{}
		if value != nil {
			put = putOf(value)
		}
		if s.data = put.Data; !s.visit.changes {
			return values.Change{}, nil
		}
		put.Expires, put.Metadata = s.visit.expires, marked(put.Metadata, wonName, s.visit.won || s.was != nil && s.was.won)
		return values.Change{Put: put}, nil
	})
	if err != nil || s.was == nil && !s.visit.isNew {
		return s, err
	}
	now := item{}
	if s.was != nil {
		now = *s.was
	}
	now.cas = casOf(revision)
	s.item = &now
	return s, nil
}

// tellVisit is the reply of mg.
func (c *client) tellVisit(j *job, m *meta, s seen, now time.Time) {
	isValue := m.value && !(m.hasCAS && s.was != nil && m.cas == s.was.cas)
	if isValue {
		j.line = strconv.AppendInt(append(j.line, "VA "...), s.item.size, 10)
		j.value, j.data, j.tail = s.value, s.data, lineEnd
	} else {
		j.line = append(j.line, "HD"...)
		s.value.Release()
	}
	was := s.item.expires
	if s.was != nil {
		was = s.was.expires
	}
	j.line = m.addTold(j.line, s.item, was, s.visit.isNew, now)
	j.line = append(s.visit.addMarks(j.line, s.was), lineEnd...)
}

// metaSet carries out `ms <key> <datalen> <flags>*`.
func (c *connection) metaSet(words []string) error {
	if !c.metaWords(commandMetaSet, words) {
		return nil
	}
	if len(words) == 2 {
		c.say(commandMetaSet, badFormat, outcomeClientError)
		return nil
	}
	length, isNumber := parseNumber(words[2])
	if !isNumber || length < 0 || length > math.MaxInt32-2 {
		c.say(commandMetaSet, badFormat, outcomeClientError)
		return nil
	}
	m, wrong := parseMeta(words, 3)
	s, wrongMode := m.storage(length)
	if wrong == "" {
		wrong = wrongMode
	}
	if wrong != "" {
		c.say(commandMetaSet, wrong, outcomeClientError)
		return c.in.swallow(length + 2)
	}
	data, held, wrong, err := c.value(length)
	if err != nil {
		return err
	}
	if wrong != "" {
		c.say(commandMetaSet, wrong, outcomeOf(wrong))
		return nil
	}
	c.askMeta(commandMetaSet, m, func(ctx context.Context) (string, outcome, error) {
		defer held.Release()
		result, revision, size, err := c.client.put(ctx, &s, data)
		if err != nil || result == stored && m.quiet {
			return "", outcomeDone, err
		}
		if result != stored {
			revision, size = block.Stamp{}, 0
		}
		return string(m.addStored([]byte(resultMeta[result]), revision, size)), result.outcome(), nil
	})
	return nil
}

// addStored adds the flags that ms asks for, and ends the line.
func (m *meta) addStored(line []byte, revision block.Stamp, size int) []byte {
	for _, flag := range m.flags {
		switch flag[0] {
		case 'k':
			line = m.addKey(line)
		case 'O':
			line = append(append(line, ' '), flag...)
		case 'c':
			line = strconv.AppendUint(append(line, " c"...), casOf(revision), 10)
		case 's':
			line = strconv.AppendInt(append(line, " s"...), int64(size), 10)
		}
	}
	return append(line, lineEnd...)
}

// askMeta has a meta command done whose reply may be empty.
func (c *connection) askMeta(name command, m *meta, do func(ctx context.Context) (reply string, outcome outcome, err error)) {
	j := &job{call: &call{name: name, began: time.Now()}, key: m.key, last: true}
	j.do = func(ctx context.Context, j *job) {
		reply, outcome, err := do(ctx)
		if err != nil {
			reply = c.client.failed(name, err)
			outcome = outcomeOf(reply)
		}
		j.outcome, j.line = outcome, append(j.line, reply...)
	}
	c.do(j, !m.quiet)
}

// metaDelete carries out `md <key> <flags>*`.
func (c *connection) metaDelete(words []string) {
	if !c.metaWords(commandMetaDelete, words) {
		return
	}
	m, wrong := parseMeta(words, 2)
	if wrong != "" {
		c.say(commandMetaDelete, wrong, outcomeClientError)
		return
	}
	c.askMeta(commandMetaDelete, m, func(ctx context.Context) (string, outcome, error) {
		result, err := c.client.removed(ctx, m)
		if err != nil {
			return "", outcomeDone, err
		}
		c.server.stats.deletes.note(result == stored)
		if result == stored && m.quiet {
			return "", outcomeDone, nil
		}
		return string(append(m.addAsked([]byte(resultMeta[result])), lineEnd...)), result.outcome(), nil
	})
}

// removed deletes a value, or empties it, or declares it stale.
func (c *client) removed(ctx context.Context, m *meta) (result result, err error) {
	if !m.hasCAS && !m.stale && !m.empties {
		existed, err := c.session.Delete(ctx, m.key)
		if !existed {
			return notFound, err
		}
		return stored, err
	}
	decide := func(now *values.Value) (values.Change, error) {
		switch result = stored; {
		case now == nil:
			result = notFound
			return values.Change{}, errNothing
		case m.hasCAS && m.cas != casOf(now.Revision):
			result = exists
			return values.Change{}, errNothing
		case !m.stale && !m.empties:
			return values.Change{Delete: true}, nil
		}
		put := putOf(now)
		if m.empties {
			put.Data, put.Metadata = nil, withoutFlags(put.Metadata)
		}
		if m.stale {
			put.Metadata = marked(marked(put.Metadata, staleName, true), wonName, false)
			if m.touches {
				put.Expires = expiry(m.touched, time.Now())
			}
		}
		return values.Change{Put: put}, nil
	}
	if m.stale && !m.empties {
		_, err = c.session.Modify(ctx, m.key, decide)
	} else {
		_, err = c.session.Replace(ctx, m.key, unread(decide))
	}
	if errors.Is(err, errNothing) {
		err = nil
	}
	return result, err
}

// metaArithmetic carries out `ma <key> <flags>*`.
func (c *connection) metaArithmetic(words []string) {
	if !c.metaWords(commandMetaArithmetic, words) {
		return
	}
	m, wrong := parseMeta(words, 2)
	isUp, wrongMode := m.isUp()
	if wrong == "" {
		wrong = wrongMode
	}
	if wrong != "" {
		c.say(commandMetaArithmetic, wrong, outcomeClientError)
		return
	}
	c.askMeta(commandMetaArithmetic, m, func(ctx context.Context) (string, outcome, error) {
		t, err := c.client.tally(ctx, m, isUp)
		if err != nil {
			return "", outcomeDone, err
		}
		c.server.stats.counted(isUp, t.result == stored && !t.isNew)
		if t.result != stored {
			return string(append(m.addAsked([]byte(resultMeta[t.result])), lineEnd...)), t.result.outcome(), nil
		}
		if m.quiet && !t.isNew {
			return "", outcomeDone, nil
		}
		line := []byte("HD")
		if m.value {
			line = strconv.AppendInt([]byte("VA "), t.item.size, 10)
		}
		line = append(m.addTold(line, &t.item, t.item.expires, t.isNew, time.Now()), lineEnd...)
		if m.value {
			line = append(append(line, t.text...), lineEnd...)
		}
		return string(line), outcomeDone, nil
	})
}

// tally is what ma came to.
type tally struct {
	result result
	isNew  bool
	text   []byte
	item   item // with the time to live that it had before
}

// tally counts as ma asks for.
func (c *client) tally(ctx context.Context, m *meta, isUp bool) (t tally, err error) {
	revision, err := c.session.Modify(ctx, m.key, func(now *values.Value) (values.Change, error) {
		t = tally{}
		put := &values.Put{}
		switch {
		case now == nil && !m.vivifies:
			t.result = notFound
			return values.Change{}, errNothing
		case now == nil:
			t.isNew, t.text = true, strconv.AppendUint(nil, m.initial, 10)
		case m.cas != 0 && m.cas != casOf(now.Revision):
			t.result = exists
			return values.Change{}, errNothing
		default:
			was, isCounter := parseCounter(now.Data)
			if !isCounter {
				return values.Change{}, refusal(notNumeric)
			}
			t.text, put = strconv.AppendUint(nil, count(was, m.delta, isUp), 10), putOf(now)
			t.item = *itemOfValue(now)
		}
		put.Data, t.item.size = t.text, int64(len(t.text))
		for _, flag := range m.flags {
			switch {
			case flag[0] == 'T':
				put.Expires = expiry(m.touched, time.Now())
			case flag[0] == 'N' && t.isNew:
				put.Expires = expiry(m.vivified, time.Now())
			}
		}
		return values.Change{Put: put}, nil
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	t.item.cas = casOf(revision)
	return t, err
}

// metaDebug carries out `me <key> [b]`.
func (c *connection) metaDebug(words []string) {
	if len(words) < 2 {
		c.say(commandMetaDebug, badFormat, outcomeClientError)
		return
	}
	m, wrong := parseMeta(words, 2)
	if wrong != "" {
		c.say(commandMetaDebug, wrong, outcomeClientError)
		return
	}
	c.askMeta(commandMetaDebug, m, func(ctx context.Context) (string, outcome, error) {
		info, err := c.client.session.Look(ctx, m.key)
		if err != nil || info == nil {
			return "EN\r\n", outcomeMiss, err
		}
		return debugLine(m, itemOf(info.Size, info.Revision, info.Expires, info.Metadata), info.Class, time.Now()), outcomeDone, nil
	})
}

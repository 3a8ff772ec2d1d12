package memcache

import (
	"context"
	"errors"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/budget"
	"github.com/restripe/restripe/agent/gateway/values"
)

// result is what became of a value that was to be stored.
type result int

// The results, in the words of both protocols.
const (
	stored result = iota
	notStored
	exists
	notFound
)

var (
	resultText = [...]string{stored: "STORED\r\n", notStored: "NOT_STORED\r\n", exists: "EXISTS\r\n", notFound: "NOT_FOUND\r\n"}
	resultMeta = [...]string{stored: "HD", notStored: "NS", exists: "EX", notFound: "NF"}
)

func (r result) outcome() outcome {
	if r == stored {
		return outcomeDone
	}
	return outcomeMiss
}

// errNothing ends a change that is not to be made.
var errNothing = errors.New("nothing is changed")

// store carries out `set|add|replace|append|prepend <key> <flags> <exptime> <bytes> [noreply]`, and cas with its number before noreply.
func (c *connection) store(name command, how storing, words []string) error {
	fewest := 5
	if how == storeCAS {
		fewest = 6
	}
	if len(words) < fewest || len(words) > fewest+1 {
		c.say(name, errorReply, outcomeClientError)
		return nil
	}
	s, wrong := parseStorage(how, words)
	if wrong != "" {
		c.complain(name, s.quiet, wrong)
		if s.length >= 0 {
			return c.in.swallow(s.length + 2)
		}
		return nil
	}
	data, held, wrong, err := c.value(s.length)
	if err != nil {
		return err
	}
	if wrong != "" {
		c.complain(name, s.quiet, wrong)
		return nil
	}
	c.ask(name, s.key, s.quiet, func(ctx context.Context) (string, outcome, error) {
		defer held.Release()
		result, _, _, err := c.client.put(ctx, &s, data)
		return resultText[result], result.outcome(), err
	})
	return nil
}

// value takes the value that comes after the line of a command. Where it cannot be stored wrong says why, and it was swallowed. The
// holding is of its memory.
func (c *connection) value(length int64) (data []byte, held *budget.Holding, wrong string, err error) {
	if length > c.server.options.MaxItemBytes {
		return nil, nil, tooLarge, c.in.swallow(length + 2)
	}
	held = c.server.incoming.Hold(memoryPatience)
	data, isWhole, left, err := c.in.block(c.working, held, length)
	switch {
	case errors.Is(err, budget.ErrFull):
		held.Release()
		return nil, nil, noMemory, c.in.swallow(left)
	case err != nil:
		held.Release()
		return nil, nil, "", err
	case !isWhole:
		held.Release()
		return nil, nil, "CLIENT_ERROR bad data chunk\r\n", nil
	}
	return data, held, "", nil
}

// put stores a value as a command says.
func (c *client) put(ctx context.Context, s *storage, data []byte) (result result, revision block.Stamp, size int, err error) {
	c.server.stats.sets.Add(1)
	expires := expiry(s.seconds, time.Now())
	if s.how == storeSet {
		revision, err = c.session.Put(ctx, s.key, values.Put{Data: data, Expires: expires, Metadata: metadataOf(s.flags)})
		return stored, revision, len(data), err
	}
	decide := func(now *values.Value) (values.Change, error) {
		put, decided := s.over(now, data, expires)
		if result = decided; put == nil {
			return values.Change{}, errNothing
		}
		if size = len(put.Data); int64(size) > c.server.options.MaxItemBytes {
			return values.Change{}, refusal(tooLarge)
		}
		return values.Change{Put: put}, nil
	}
	if s.how == storeAppend || s.how == storePrepend {
		revision, err = c.session.Modify(ctx, s.key, decide)
	} else {
		revision, err = c.session.Replace(ctx, s.key, unread(decide))
	}
	if errors.Is(err, errNothing) {
		err = nil
	}
	if s.how == storeCAS && err == nil {
		c.server.stats.compared(result)
	}
	return result, revision, size, err
}

// unread is a decision that needs no bytes of the value that is there.
func unread(decide func(now *values.Value) (values.Change, error)) func(now *values.Info) (values.Change, error) {
	return func(now *values.Info) (values.Change, error) {
		if now == nil {
			return decide(nil)
		}
		return decide(&values.Value{Class: now.Class, Revision: now.Revision, Expires: now.Expires, Metadata: now.Metadata})
	}
}

// over is what a command makes of the value that is there, nil where it stores nothing. What replaces a value is put anew, but in the
// class that it is of; what is added to one leaves all else as it is.
func (s *storage) over(now *values.Value, data []byte, expires time.Time) (*values.Put, result) {
	fresh := &values.Put{Data: data, Expires: expires, Metadata: metadataOf(s.flags)}
	if now == nil {
		switch {
		case s.how == storeSet, s.how == storeAdd:
			return fresh, stored
		case s.how == storeCAS:
			return nil, notFound
		case s.vivifies && (s.how == storeAppend || s.how == storePrepend):
			fresh.Expires = expiry(s.vivified, time.Now())
			return fresh, stored
		}
		return nil, notStored
	}
	fresh.Class = now.Class
	is := casOf(now.Revision)
	switch s.how {
	case storeSet, storeReplace:
		return fresh, stored
	case storeCAS:
		if s.cas == is {
			return fresh, stored
		}
		if s.isStaleLower && s.cas != 0 && s.cas < is {
			fresh.Expires = now.Expires
			fresh.Metadata = marked(marked(fresh.Metadata, staleName, true), wonName, now.Metadata[wonName] != "")
			return fresh, stored
		}
		return nil, exists
	case storeAppend, storePrepend:
		if s.cas != 0 && s.cas != is {
			return nil, exists
		}
		return s.joined(now, data), stored
	}
	return nil, notStored
}

// joined is a value with data behind, or before, what is there.
func (s *storage) joined(now *values.Value, data []byte) *values.Put {
	put := putOf(now)
	put.Metadata = marked(marked(put.Metadata, staleName, false), wonName, false)
	before, behind := now.Data, data
	if s.how == storePrepend {
		before, behind = behind, before
	}
	put.Data = append(append(make([]byte, 0, len(before)+len(behind)), before...), behind...)
	return put
}

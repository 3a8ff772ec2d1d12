package memcache

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/gateway/values"
)

var (
	lineEnd  = []byte("\r\n")
	lastEnd  = []byte("\r\nEND\r\n")
	replyEnd = []byte("END\r\n")
)

// get carries out `get|gets <key>*`: each key is a job of its own.
func (c *connection) get(name command, keys string, withCAS bool) {
	c.read(name, keys, withCAS, nil)
}

// getAndTouch carries out `gat|gats <exptime> <key>*`.
func (c *connection) getAndTouch(name command, rest string, withCAS bool) {
	word, keys := nextWord(rest)
	switch first, _ := nextWord(keys); {
	case word == "":
		c.say(name, errorReply, outcomeClientError)
		return
	case first == "":
		c.say(name, string(replyEnd), outcomeMiss)
		return
	}
	seconds, isTime := parseTime(word)
	if !isTime {
		c.say(name, "CLIENT_ERROR invalid exptime argument\r\n", outcomeClientError)
		return
	}
	c.read(name, keys, withCAS, func(ctx context.Context, key string) (*values.Value, error) {
		return c.client.touched(ctx, key, seconds)
	})
}

// read has the values of keys read, and written in their order: side by side by touch, if there is one, else together, those in memory at
// once, where nothing is under way.
func (c *connection) read(
	name command, keys string, withCAS bool, touch func(ctx context.Context, key string) (*values.Value, error),
) {
	first, rest := nextWord(keys)
	if first == "" {
		c.say(name, errorReply, outcomeClientError)
		return
	}
	for key, others := first, rest; key != ""; key, others = nextWord(others) {
		if !isKey(key) {
			c.say(name, badFormat, outcomeClientError)
			return
		}
	}
	of := &call{name: name, began: time.Now()}
	isAlone := strings.TrimLeft(rest, " ") == ""
	for key := first; key != ""; {
		var next string
		next, rest = nextWord(rest)
		if !isAlone {
			key = strings.Clone(key) // the line may be long, and go away before the key
		}
		j := &job{call: of, key: key, last: next == ""}
		if touch == nil && c.isQuiet() {
			if value, known := c.client.session.GetNow(c.working, key); known {
				c.client.readInto(j, value, nil, withCAS)
				c.write(j)
				key = next
				continue
			}
		}
		j.again = func(ctx context.Context, j *job) {
			value, err := j.get(ctx, c.client.session)
			c.client.readInto(j, value, err, withCAS)
		}
		if j.do = j.again; touch != nil {
			j.do = func(ctx context.Context, j *job) {
				value, err := touch(ctx, j.key)
				c.client.readInto(j, value, err, withCAS)
			}
		}
		switch {
		case touch == nil && !(isAlone && isLast(c)):
			gather(c, j)
		case isAlone:
			c.do(j, true)
		default:
			c.start(j)
		}
		key = next
	}
	if c.in.isEmpty() {
		carryGathered(c)
	}
}

// get returns the value of the job's key: what was got of it together with others, once.
func (j *job) get(ctx context.Context, session *values.Session) (*values.Value, error) {
	got := j.got
	if j.got = (values.Got{}); got.Known {
		return got.Value, nil
	}
	return session.GetBegun(ctx, j.key, got.Begun)
}

// readInto is the reply for one key of several.
func (c *client) readInto(j *job, value *values.Value, err error, withCAS bool) {
	switch {
	case err != nil:
		c.complain(j, err)
		j.failed = true
		return
	case value == nil:
		c.server.stats.read(j.call.name, false)
		j.outcome = outcomeMiss
		if j.last {
			j.line = append(j.line, replyEnd...)
		}
		return
	}
	c.server.stats.read(j.call.name, true)
	if j.line == nil {
		j.line = make([]byte, 0, len(j.key)+64)
	}
	j.line = append(append(j.line, "VALUE "...), j.key...)
	j.line = strconv.AppendUint(append(j.line, ' '), uint64(flagsOf(value.Metadata)), 10)
	j.line = strconv.AppendInt(append(j.line, ' '), int64(len(value.Data)), 10)
	if withCAS {
		j.line = strconv.AppendUint(append(j.line, ' '), casOf(value.Revision), 10)
	}
	j.line = append(j.line, lineEnd...)
	j.value, j.data, j.tail = value, value.Data, lineEnd
	if j.last {
		j.tail = lastEnd
	}
}

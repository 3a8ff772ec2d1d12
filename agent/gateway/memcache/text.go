package memcache

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/gateway/values"
)

const errorReply = "ERROR\r\n"

// command carries out one command. It reports whether others may follow; an error ends the connection.
func (c *connection) command(line string) (goesOn bool, err error) {
	name, rest := nextWord(line)
	switch name {
	case "get", "bget":
		c.get(commandGet, rest, false)
		return true, nil
	case "gets":
		c.get(commandGets, rest, true)
		return true, nil
	case "gat":
		c.getAndTouch(commandGat, rest, false)
		return true, nil
	case "gats":
		c.getAndTouch(commandGats, rest, true)
		return true, nil
	}
	var array [mostWords + 1]string
	words := words(line, array[:0])
	if len(name) < 2 {
		c.say(commandOther, errorReply, outcomeClientError)
		return true, nil
	}
	switch name {
	case "set":
		return true, c.store(commandSet, storeSet, words)
	case "add":
		return true, c.store(commandAdd, storeAdd, words)
	case "replace":
		return true, c.store(commandReplace, storeReplace, words)
	case "append":
		return true, c.store(commandAppend, storeAppend, words)
	case "prepend":
		return true, c.store(commandPrepend, storePrepend, words)
	case "cas":
		return true, c.store(commandCAS, storeCAS, words)
	case "ms":
		return true, c.metaSet(words)
	case "mg":
		c.metaGet(words)
	case "md":
		c.metaDelete(words)
	case "ma":
		c.metaArithmetic(words)
	case "me":
		c.metaDebug(words)
	case "mn":
		c.say(commandMetaNoop, "MN\r\n", outcomeDone)
	case "delete":
		c.delete(words)
	case "incr":
		c.count(commandIncr, true, words)
	case "decr":
		c.count(commandDecr, false, words)
	case "touch":
		c.touch(words)
	case "quit":
		return false, nil
	default:
		return c.administer(name, words)
	}
	return true, nil
}

// administer carries out commands that have nothing to do with keys.
func (c *connection) administer(name string, words []string) (goesOn bool, err error) {
	switch name {
	case "version":
		c.say(commandVersion, "VERSION "+Version+"\r\n", outcomeDone)
	case "stats":
		c.tell(words)
	case "flush_all":
		c.flushAll(words)
	case "verbosity":
		c.setVerbosity(words)
	case "shutdown":
		c.say(commandOther, "ERROR: shutdown not enabled\r\n", outcomeClientError)
	default:
		if strings.HasPrefix(words[len(words)-1], "HTTP/") { // a browser that was sent here says in what follows what others want
			return false, nil
		}
		c.say(commandOther, errorReply, outcomeClientError)
	}
	return true, nil
}

// Version is what the server says it is: the memcached whose protocol it speaks.
const Version = "1.6.18-restripe"

// ask has a command of one key done whose reply is one line, which is not sent where the client wants none.
func (c *connection) ask(name command, key string, isQuiet bool, do func(ctx context.Context) (reply string, outcome outcome, err error)) {
	j := &job{call: &call{name: name, began: time.Now()}, key: key, last: true}
	j.do = func(ctx context.Context, j *job) {
		reply, outcome, err := do(ctx)
		if err != nil {
			reply = c.client.failed(name, err)
			outcome = outcomeOf(reply)
		}
		if j.outcome = outcome; !isQuiet {
			j.line = append(j.line, reply...)
		}
	}
	c.do(j, !isQuiet)
}

// isNoreply reports whether the last word asks for no reply.
func isNoreply(words []string) bool { return words[len(words)-1] == "noreply" }

// delete carries out `delete <key> [0] [noreply]`.
func (c *connection) delete(words []string) {
	if len(words) < 2 || len(words) > 4 {
		c.say(commandDelete, errorReply, outcomeClientError)
		return
	}
	isQuiet := len(words) > 2 && isNoreply(words)
	isValid := len(words) == 2 || len(words) == 3 && (isQuiet || words[2] == "0") || len(words) == 4 && isQuiet && words[2] == "0"
	switch {
	case !isValid:
		c.complain(commandDelete, isQuiet, "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n")
		return
	case !isKey(words[1]):
		c.complain(commandDelete, isQuiet, badFormat)
		return
	}
	key := words[1]
	c.ask(commandDelete, key, isQuiet, func(ctx context.Context) (string, outcome, error) {
		existed, err := c.client.session.Delete(ctx, key)
		c.server.stats.deletes.note(existed)
		if !existed {
			return "NOT_FOUND\r\n", outcomeMiss, err
		}
		return "DELETED\r\n", outcomeDone, nil
	})
}

// complain says what is wrong with a command, where the client wants a reply.
func (c *connection) complain(name command, isQuiet bool, line string) {
	if isQuiet {
		line = ""
	}
	c.say(name, line, outcomeClientError)
}

// count carries out `incr|decr <key> <delta> [noreply]`.
func (c *connection) count(name command, isUp bool, words []string) {
	if len(words) < 3 || len(words) > 4 {
		c.say(name, errorReply, outcomeClientError)
		return
	}
	isQuiet := isNoreply(words)
	delta, isNumber := parseUint(words[2])
	switch {
	case !isKey(words[1]):
		c.complain(name, isQuiet, badFormat)
		return
	case !isNumber:
		c.complain(name, isQuiet, "CLIENT_ERROR invalid numeric delta argument\r\n")
		return
	}
	key := words[1]
	c.ask(name, key, isQuiet, func(ctx context.Context) (string, outcome, error) {
		var counter uint64
		var has bool
		err := c.client.session.Accumulate(ctx, key, func(now *values.Value) (values.Change, error) {
			if has = now != nil; !has {
				return values.Change{}, nil
			}
			was, isCounter := parseCounter(now.Data)
			if !isCounter {
				return values.Change{}, refusal(notNumeric)
			}
			counter = count(was, delta, isUp)
			put := putOf(now)
			put.Data = strconv.AppendUint(nil, counter, 10)
			return values.Change{Put: put}, nil
		})
		if err != nil {
			return "", outcomeServerError, err
		}
		c.server.stats.counted(isUp, has)
		if !has {
			return "NOT_FOUND\r\n", outcomeMiss, nil
		}
		return strconv.FormatUint(counter, 10) + "\r\n", outcomeDone, nil
	})
}

// touch carries out `touch <key> <exptime> [noreply]`.
func (c *connection) touch(words []string) {
	if len(words) < 3 || len(words) > 4 {
		c.say(commandTouch, errorReply, outcomeClientError)
		return
	}
	isQuiet := isNoreply(words)
	seconds, isTime := parseTime(words[2])
	switch {
	case !isKey(words[1]):
		c.complain(commandTouch, isQuiet, badFormat)
		return
	case !isTime:
		c.complain(commandTouch, isQuiet, "CLIENT_ERROR invalid exptime argument\r\n")
		return
	}
	key := words[1]
	c.ask(commandTouch, key, isQuiet, func(ctx context.Context) (string, outcome, error) {
		touched, err := c.client.touched(ctx, key, seconds)
		if err != nil {
			return "", outcomeServerError, err
		}
		if touched == nil {
			return "NOT_FOUND\r\n", outcomeMiss, nil
		}
		return "TOUCHED\r\n", outcomeDone, nil
	})
}

// touched gives a value another time to live, and returns it as it is then; nil: there is none. Its bytes are nobody's to release.
func (c *client) touched(ctx context.Context, key string, seconds int64) (*values.Value, error) {
	var touched *values.Value
	revision, err := c.session.Modify(ctx, key, func(now *values.Value) (values.Change, error) {
		if touched = nil; now == nil {
			return values.Change{}, nil
		}
		put := putOf(now)
		put.Expires = expiry(seconds, time.Now())
		touched = &values.Value{Data: put.Data, Class: put.Class, Expires: put.Expires, Metadata: put.Metadata}
		return values.Change{Put: put}, nil
	})
	if err != nil {
		return nil, err
	}
	c.server.stats.touches.note(touched != nil)
	if touched != nil {
		touched.Revision = revision
	}
	return touched, nil
}

// setVerbosity carries out `verbosity <level> [noreply]`: from 1 on, commands that clients are refused are logged, too.
func (c *connection) setVerbosity(words []string) {
	if len(words) < 2 || len(words) > 3 {
		c.say(commandVerbosity, errorReply, outcomeClientError)
		return
	}
	isQuiet := isNoreply(words)
	level, isNumber := parseFlags(words[1])
	if !isNumber {
		c.complain(commandVerbosity, isQuiet, badFormat)
		return
	}
	c.server.verbosity.Store(level)
	c.ask(commandVerbosity, "", isQuiet, func(context.Context) (string, outcome, error) { return "OK\r\n", outcomeDone, nil })
}

const flushRefused = "SERVER_ERROR flush_all is refused: it would delete objects that other clients and other protocols stored; " +
	"delete keys one by one, or start the gateway with --memcached-flush\r\n"

// flushPage is how many keys are deleted at a time.
const flushPage = 256

// flushAll carries out `flush_all [delay] [noreply]`, where that is allowed: it deletes all objects that the client may list and delete.
func (c *connection) flushAll(words []string) {
	if len(words) > 3 {
		c.say(commandFlushAll, errorReply, outcomeClientError)
		return
	}
	isQuiet := len(words) > 1 && isNoreply(words)
	delay, isNumber := int64(0), true
	if len(words) == 3 || len(words) == 2 && !isQuiet {
		delay, isNumber = parseNumber(words[1])
	}
	switch {
	case !c.server.options.AllowFlush:
		c.complain(commandFlushAll, isQuiet, flushRefused)
		return
	case !isNumber:
		c.complain(commandFlushAll, isQuiet, "CLIENT_ERROR invalid exptime argument\r\n")
		return
	case delay > 0:
		c.complain(commandFlushAll, isQuiet, "SERVER_ERROR flush_all with a delay is not supported; send it when it is due\r\n")
		return
	}
	drain(c) // it comes after all before it, and all others come after it
	c.ask(commandFlushAll, "", isQuiet, func(ctx context.Context) (string, outcome, error) {
		return "OK\r\n", outcomeDone, c.client.deleteAll(ctx)
	})
	drain(c)
}

func (c *client) deleteAll(ctx context.Context) error {
	for after, more := "", true; more; {
		keys, next, err := c.session.List(ctx, "", after, flushPage)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if _, err := c.session.Delete(ctx, key); err != nil {
				return err
			}
		}
		after, more = next, next != ""
	}
	c.server.stats.flushes.Add(1)
	return nil
}

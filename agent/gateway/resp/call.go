package resp

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/gateway/values"
)

// call is one command of a client, while it is carried out.
type call struct {
	command
	client *connection
	ctx    context.Context
	entry  *entry // nil: there is no such command
	reply  reply
	began  time.Time
	silent bool // the client wants no answer

	// What the command works with. They are those of the connection, or of its transaction.
	keys        values.Keyspace
	session     *values.Session
	transaction *values.Transaction // nil: it is in none
	into        string              // the class that values are put into; empty: by their keys
	begun       values.Begun        // of GET

	// How it goes with others of a pipeline.
	isAhead bool     // its session is
	hashes  []uint64 // hashes of its keys
	every   bool     // it has too many keys to be compared
	after   []chan struct{}
	done    chan struct{}
}

// mostPlaces is how many keys of commands of a pipeline are compared.
const mostPlaces = 8

// prepare makes a call ready to be carried out, of the connection as it is now.
func (x *call) prepare(ctx context.Context) {
	x.ctx, x.began = ctx, time.Now()
	if len(x.arguments) > 0 {
		x.entry = x.client.server.entryOf(x.arguments[0])
	}
	x.session, x.into = x.client.session, x.client.class
	x.reply.version = x.client.version
	x.silent = x.client.replies != replyOn
	if x.client.replies == replySkip {
		x.client.replies = replyOn
	}
}

// locate says which keys the call has.
func (x *call) locate() {
	x.hashes, x.every, x.after = x.hashes[:0], false, x.after[:0]
	x.entry.each(len(x.arguments), func(i int) bool {
		if len(x.hashes) == mostPlaces {
			x.every = true
			return false
		}
		x.hashes = append(x.hashes, maphash.Bytes(x.client.server.seed, x.arguments[i]))
		return true
	})
}

// hinders reports whether another one has to wait until this one is done.
func (x *call) hinders(other *call) bool {
	if !x.entry.writes && !other.entry.writes {
		return false
	}
	return x.every || other.every || slices.ContainsFunc(x.hashes, func(hash uint64) bool { return slices.Contains(other.hashes, hash) })
}

// carryOut runs the command and makes its reply.
func (x *call) carryOut() {
	server := x.client.server
	err := x.allowed()
	queued := false
	if err == nil && x.client.queue != nil && !x.entry.unqueued {
		queued = true
		err = x.enqueue()
	} else if err == nil {
		x.keys = x.keyspace()
		err = x.execute()
	}
	if err != nil && x.client.queue != nil && (queued || x.entry == nil || !x.entry.unqueued) {
		x.client.queue.spoiled = true
	}
	x.fail(err)
	server.metrics.observe(x.entry, err, time.Since(x.began))
	server.commands.Add(1)
	if x.silent {
		x.reply.clear()
	}
}

// carryOutAhead is carryOut for a call of a pipeline, whose answer is sent after those of others.
func (x *call) carryOutAhead() {
	x.session, x.isAhead = x.client.ahead, true
	x.carryOut()
}

// execute runs the command. After an error its reply is empty.
func (x *call) execute() error {
	bytes, large := x.reply.mark()
	err := x.entry.run(x)
	if err != nil {
		x.reply.back(bytes, large)
	}
	if x.isAhead && errors.Is(err, values.ErrNoRoom) {
		x.client.lines.await(x)
		x.session, x.isAhead = x.client.session, false
		x.keys = x.keyspace()
		return x.execute()
	}
	return err
}

func (x *call) fail(err error) {
	if err != nil {
		x.reply.fail(textOf(err))
	}
}

// allowed says why the call is not carried out.
func (x *call) allowed() error {
	if x.refusal != nil {
		return x.refusal
	}
	if x.entry == nil {
		return unknown(x.arguments)
	}
	if len(x.arguments) > 1 && x.entry.parts != nil {
		part := x.entry.part(x.arguments[1])
		if part == nil {
			return redisError("ERR unknown subcommand '" + clip(x.arguments[1], 128) + "'. Try " + strings.ToUpper(x.entry.name) + " HELP.")
		}
		x.entry = part
	}
	if !x.entry.takes(len(x.arguments)) {
		return wrongCount(x.entry.name)
	}
	if x.session.NeedsLogin() && !x.entry.anybody {
		return errLogin
	}
	return nil
}

func wrongCount(name string) error {
	return redisError("ERR wrong number of arguments for '" + name + "' command")
}

func unknown(arguments [][]byte) error {
	var text strings.Builder
	text.WriteString("ERR unknown command '" + clip(arguments[0], 128) + "', with args beginning with: ")
	begin := text.Len()
	for _, argument := range arguments[1:] {
		left := 128 - (text.Len() - begin)
		if left <= 0 {
			break
		}
		text.WriteString("'" + clip(argument, left) + "' ")
	}
	return redisError(text.String())
}

func clip(text []byte, most int) string { return string(text[:min(len(text), most)]) }

// finish gives back what the call holds.
func (x *call) finish() {
	x.reply.clear()
	x.drop()
}

// drop makes the call one for any other command.
func (x *call) drop() {
	x.command.clear()
	*x = call{command: x.command, reply: reply{bytes: x.reply.bytes, large: x.reply.large[:0]}, hashes: x.hashes[:0], after: x.after[:0]}
	calls.Put(x)
}

// key is an argument as a key.
func (x *call) key(i int) string { return string(x.arguments[i]) }

// is reports whether an argument is a word, in any case.
func (x *call) is(i int, word string) bool { return isWord(x.arguments[i], word) }

func isWord(text []byte, word string) bool {
	return len(text) == len(word) && strings.EqualFold(string(text), word)
}

// integer is an argument as a number.
func (x *call) integer(i int) (int64, error) {
	number, is := parseInteger(x.arguments[i])
	if !is {
		return 0, errInteger
	}
	return number, nil
}

// put is a new value of a key.
func (x *call) put(data []byte, expires time.Time) values.Put {
	return values.Put{Data: data, Class: x.into, Expires: expires}
}

// changed is a value with other bytes.
func (x *call) changed(now *values.Value, data []byte) values.Change {
	if now == nil {
		put := x.put(data, time.Time{})
		return values.Change{Put: &put}
	}
	return values.Change{Put: &values.Put{Data: data, Class: now.Class, Expires: now.Expires, Metadata: now.Metadata}}
}

func decimal(number int64) []byte { return strconv.AppendInt(nil, number, 10) }

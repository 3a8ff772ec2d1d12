package resp

import (
	"math/rand/v2"
	"time"

	"github.com/restripe/restripe/agent/gateway/values"
)

// doDelete is DEL and UNLINK.
func doDelete(x *call) error {
	if len(x.arguments) == 2 {
		existed, err := x.keys.Delete(x.ctx, x.key(1))
		if err == nil {
			x.reply.yes(existed)
		}
		return err
	}
	gone := 0
	err := x.together(func(t *values.Transaction) error {
		gone = 0
		for i := 1; i < len(x.arguments); i++ {
			existed, err := t.Delete(x.ctx, x.key(i))
			if err != nil {
				return err
			}
			if existed {
				gone++
			}
		}
		return nil
	})
	if err == nil {
		x.reply.count(gone)
	}
	return err
}

// doExists is EXISTS and TOUCH: how many of the keys have a value.
func doExists(x *call) error {
	there := 0
	for i := 1; i < len(x.arguments); i++ {
		info, err := x.keys.Look(x.ctx, x.key(i))
		if err != nil {
			return err
		}
		if info != nil {
			there++
		}
	}
	x.reply.count(there)
	return nil
}

func doTypeOf(x *call) error {
	info, err := x.keys.Look(x.ctx, x.key(1))
	if err != nil {
		return err
	}
	if info == nil {
		x.reply.status("none")
	} else {
		x.reply.status("string")
	}
	return nil
}

func doRename(x *call) error {
	_, err := x.transfer(transfer{over: true, moves: true})
	if err == nil {
		x.reply.ok()
	}
	return err
}

func doRenameNew(x *call) error {
	done, err := x.transfer(transfer{moves: true})
	if err == nil {
		x.reply.yes(done)
	}
	return err
}

// doCopy is COPY source destination [DB database] [REPLACE].
func doCopy(x *call) error {
	var t transfer
	for i := 3; i < len(x.arguments); i++ {
		switch {
		case x.is(i, "replace"):
			t.over = true
		case x.is(i, "db") && i+1 < len(x.arguments):
			i++
			if number, is := parseInteger(x.arguments[i]); !is {
				return errInteger
			} else if number != 0 {
				return errDatabase
			}
		default:
			return errSyntax
		}
	}
	if x.key(1) == x.key(2) {
		return redisError("ERR source and destination objects are the same")
	}
	done, err := x.transfer(t)
	if err == nil {
		x.reply.yes(done)
	}
	return err
}

// transfer is what becomes of a value under two keys.
type transfer struct {
	over  bool // what the second key has
	moves bool // so that the first key has nothing afterwards
}

// transfer stores the value of the first key under the second, with its class, expiry and metadata. It reports whether it did.
func (x *call) transfer(how transfer) (done bool, err error) {
	from, to := x.key(1), x.key(2)
	err = x.together(func(t *values.Transaction) error {
		done = false
		value, err := t.Get(x.ctx, from)
		if err != nil {
			return err
		}
		defer value.Release()
		if value == nil && how.moves {
			return errNoKey
		}
		if value == nil {
			return nil
		}
		if from == to {
			done = how.over
			return nil
		}
		there, err := t.Look(x.ctx, to)
		if err != nil || there != nil && !how.over {
			return err
		}
		put := values.Put{Data: value.Data, Class: value.Class, Expires: value.Expires, Metadata: value.Metadata}
		if _, err := t.Put(x.ctx, to, put); err != nil {
			return err
		}
		done = true
		if how.moves {
			_, err = t.Delete(x.ctx, from)
		}
		return err
	})
	return done, err
}

// longestEmbedded is the length up to which Redis keeps a text beside what it knows of it.
const longestEmbedded = 44

// doEncoding is OBJECT ENCODING: how Redis would keep the value.
func doEncoding(x *call) error {
	value, err := x.keys.Get(x.ctx, x.key(2))
	if err != nil {
		return err
	}
	defer value.Release()
	if value == nil {
		x.reply.null()
		return nil
	}
	_, number := parseInteger(value.Data)
	switch {
	case number:
		x.reply.text("int")
	case len(value.Data) <= longestEmbedded:
		x.reply.text("embstr")
	default:
		x.reply.text("raw")
	}
	return nil
}

// doReferences is OBJECT REFCOUNT.
func doReferences(x *call) error {
	info, err := x.keys.Look(x.ctx, x.key(2))
	switch {
	case err != nil:
	case info == nil:
		x.reply.null()
	default:
		x.reply.integer(1)
	}
	return err
}

// Bounds on what one command lists.
const (
	scanAtFirst = 10
	scanMost    = 1000
	keysMost    = 100_000
	keysBytes   = 16 << 20
	randomMost  = 1000
	pageSize    = 1000
)

// each calls do with every key that begins with a prefix, until it says no.
func (x *call) each(prefix string, do func(key string) bool) error {
	after := ""
	for {
		keys, next, err := x.session.List(x.ctx, prefix, after, pageSize)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if !do(key) {
				return nil
			}
		}
		if next == "" {
			return nil
		}
		after = next
	}
}

// doKeysLike is KEYS pattern.
func doKeysLike(x *call) error {
	pattern := x.arguments[1]
	var found []string
	bytes, tooMany := 0, false
	err := x.each(literal(pattern), func(key string) bool {
		if matches(pattern, key) {
			found = append(found, key)
			bytes += len(key)
		}
		tooMany = len(found) > keysMost || bytes > keysBytes
		return !tooMany
	})
	if err != nil {
		return err
	}
	if tooMany {
		return redisError("ERR more keys match than are listed at once, 100000 or 16 MiB; walk through them with SCAN")
	}
	x.reply.array(len(found))
	for _, key := range found {
		x.reply.text(key)
	}
	return nil
}

// doRandomKey is one of the first keys.
func doRandomKey(x *call) error {
	keys, _, err := x.session.List(x.ctx, "", "", randomMost)
	switch {
	case err != nil:
		return err
	case len(keys) == 0:
		x.reply.null()
	default:
		x.reply.text(keys[rand.IntN(len(keys))])
	}
	return nil
}

// doCountKeys is DBSIZE: how many keys the client may see.
func doCountKeys(x *call) error {
	all, known, err := x.session.Count(x.ctx, false)
	if known {
		x.reply.integer(all)
	}
	if known || err != nil {
		return err
	}
	count := 0
	err = x.each("", func(string) bool {
		count++
		return true
	})
	if err == nil {
		x.reply.count(count)
	}
	return err
}

// doScan is SCAN cursor [MATCH pattern] [COUNT count] [TYPE type].
func doScan(x *call) error {
	after, err := x.client.server.cursors.after(x.arguments[1])
	if err != nil {
		return err
	}
	count, pattern, ofType := int64(scanAtFirst), []byte("*"), true
	for i := 2; i < len(x.arguments); i += 2 {
		if i+1 == len(x.arguments) {
			return errSyntax
		}
		switch {
		case x.is(i, "match"):
			pattern = x.arguments[i+1]
		case x.is(i, "type"):
			ofType = x.is(i+1, "string")
		case x.is(i, "count"):
			if count, err = x.integer(i + 1); err != nil {
				return err
			}
			if count < 1 {
				return errSyntax
			}
		default:
			return errSyntax
		}
	}
	keys, next, err := x.session.List(x.ctx, literal(pattern), after, int(min(count, scanMost)))
	if err != nil {
		return err
	}
	cursor := uint64(0)
	if next != "" {
		cursor = x.client.server.cursors.make(next)
	}
	found := keys[:0]
	for _, key := range keys {
		if ofType && matches(pattern, key) {
			found = append(found, key)
		}
	}
	x.reply.array(2)
	x.reply.text(string(appendUnsigned(nil, cursor)))
	x.reply.array(len(found))
	for _, key := range found {
		x.reply.text(key)
	}
	return nil
}

// doTime is the clock: seconds and microseconds since 1970.
func doTime(x *call) error {
	now := time.Now().UnixMicro()
	x.reply.array(2)
	x.reply.bulk(decimal(now / 1e6))
	x.reply.bulk(decimal(now % 1e6))
	return nil
}

package resp

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// doAuth is AUTH token, or AUTH id secret of an access key. The name default counts for nothing.
func doAuth(x *call) error {
	switch len(x.arguments) {
	case 2:
		return x.login("", x.key(1), true)
	case 3:
		return x.login(x.key(1), x.key(2), true)
	}
	return errSyntax
}

func (x *call) login(name, secret string, replies bool) error {
	if name == "default" {
		name = ""
	}
	session, err := x.client.server.store.Login(x.ctx, name, secret)
	if errors.Is(err, api.ErrUnauthenticated) {
		return errPassword
	}
	if err != nil {
		return err
	}
	x.client.become(session)
	if replies {
		x.reply.ok()
	}
	return nil
}

// doHello is HELLO [version [AUTH name secret] [SETNAME name]].
func doHello(x *call) error {
	version := int64(x.client.version)
	if len(x.arguments) > 1 {
		number, is := parseInteger(x.arguments[1])
		if !is {
			return redisError("ERR Protocol version is not an integer or out of range")
		}
		if number != 2 && number != 3 {
			return errVersion
		}
		version = number
	}
	name, named := "", false
	for i := 2; i < len(x.arguments); i++ {
		switch left := len(x.arguments) - i - 1; {
		case x.is(i, "auth") && left >= 2:
			if err := x.login(x.key(i+1), x.key(i+2), false); err != nil {
				return err
			}
			i += 2
		case x.is(i, "setname") && left >= 1:
			name, named = x.key(i+1), true
			if !isName(name) {
				return errNameOfClient
			}
			i++
		default:
			return redisError("ERR Syntax error in HELLO option '" + x.key(i) + "'")
		}
	}
	if x.client.session.NeedsLogin() {
		return errLoginHello
	}
	if named {
		x.client.name = name
	}
	x.client.version, x.reply.version = int(version), int(version)
	r := &x.reply
	r.pairs(7)
	r.text("server")
	r.text("redis")
	r.text("version")
	r.text(redisVersion)
	r.text("proto")
	r.integer(version)
	r.text("id")
	r.integer(x.client.number)
	r.text("mode")
	r.text("standalone")
	r.text("role")
	r.text("master")
	r.text("modules")
	r.array(0)
	return nil
}

// longestClientName is how many bytes a client may call itself by.
const longestClientName = 1024

func isName(name string) bool {
	return len(name) <= longestClientName && !strings.ContainsFunc(name, func(c rune) bool { return c < '!' || c > '~' })
}

// doSelectClass is SELECT: 0 has values go into classes by their keys, the name of a class has them go into that one.
func doSelectClass(x *call) error {
	name := x.key(1)
	if number, is := parseInteger(x.arguments[1]); is {
		if number != 0 {
			return errDatabase
		}
		name = ""
	} else if err := x.client.server.store.CheckClass(name); err != nil {
		return err
	}
	x.client.class = name
	x.reply.ok()
	return nil
}

func doLeave(x *call) error {
	x.client.quit = true
	x.reply.ok()
	return nil
}

func doReset(x *call) error {
	x.client.reset()
	x.reply.version = x.client.version
	x.silent = false
	x.reply.status("RESET")
	return nil
}

func doPing(x *call) error {
	switch len(x.arguments) {
	case 1:
		x.reply.status("PONG")
	case 2:
		x.reply.bulk(x.arguments[1])
	default:
		return wrongCount(x.entry.name)
	}
	return nil
}

func doEcho(x *call) error {
	x.reply.bulk(x.arguments[1])
	return nil
}

func doClientID(x *call) error {
	x.reply.integer(x.client.number)
	return nil
}

func doClientName(x *call) error {
	if x.client.name == "" {
		x.reply.null()
	} else {
		x.reply.text(x.client.name)
	}
	return nil
}

func doClientSetName(x *call) error {
	name := x.key(2)
	if !isName(name) {
		return errNameOfClient
	}
	x.client.name = name
	x.reply.ok()
	return nil
}

// doClientInfo is CLIENT INFO, and CLIENT LIST, which shows no other clients.
func doClientInfo(x *call) error {
	x.reply.verbatim(x.client.describe())
	return nil
}

// doClientNoEvict is CLIENT NO-EVICT: no client is ever disconnected to save memory.
func doClientNoEvict(x *call) error {
	if !x.is(2, "on") && !x.is(2, "off") {
		return errSyntax
	}
	x.reply.ok()
	return nil
}

// doClientSetInfo is CLIENT SETINFO LIB-NAME name, or LIB-VER version.
func doClientSetInfo(x *call) error {
	value := x.key(3)
	if !isName(value) {
		return redisError("ERR " + strings.ToLower(x.key(2)) + " cannot contain spaces, newlines or special characters.")
	}
	switch {
	case x.is(2, "lib-name"):
		x.client.library[0] = value
	case x.is(2, "lib-ver"):
		x.client.library[1] = value
	default:
		return redisError("ERR Unrecognized option '" + x.key(2) + "'")
	}
	x.reply.ok()
	return nil
}

// doClientReply is CLIENT REPLY ON, OFF or SKIP, of which only the first is answered.
func doClientReply(x *call) error {
	c := x.client
	switch {
	case x.is(2, "on"):
		c.replies, x.silent = replyOn, false
		x.reply.ok()
	case x.is(2, "off"):
		c.replies, x.silent = replyOff, true
	case x.is(2, "skip"):
		if c.replies != replyOff {
			c.replies = replySkip
		}
		x.silent = true
	default:
		return errSyntax
	}
	return nil
}

// describe is the connection in a line, in the words of Redis.
func (c *connection) describe() string {
	age := int64(time.Since(c.since).Seconds())
	multi := -1
	if c.queue != nil {
		multi = len(c.queue.calls)
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s name=%s age=%d idle=0 flags=N db=0 sub=0 psub=0 multi=%d cmd=client resp=%d "+
		"lib-name=%s lib-ver=%s\n",
		c.number, c.conn.RemoteAddr(), c.conn.LocalAddr(), c.name, age, multi, c.version, c.library[0], c.library[1])
}

func doWhoAmI(x *call) error {
	name, err := x.session.User(x.ctx)
	if err == nil {
		x.reply.text(name)
	}
	return err
}

package resp

import (
	"math"
	"time"

	"github.com/restripe/restripe/agent/gateway/values"
)

// expiry is when a value is to be gone, as a client says it.
type expiry struct {
	number   []byte        // nil: not said
	unit     time.Duration // of the number
	absolute bool          // it counts from 1970, not from now
	keep     bool          // what was said before stays

	at time.Time // once it is settled
}

// given reports whether the client has said something.
func (e *expiry) given() bool { return e.number != nil || e.keep }

// read takes EX, PX, EXAT or PXAT with a number, and returns how many arguments more than one that are.
func (e *expiry) read(x *call, i int) (used int, err error) {
	if e.given() || i+1 >= len(x.arguments) {
		return 0, errSyntax
	}
	switch {
	case x.is(i, "ex"):
		e.unit = time.Second
	case x.is(i, "px"):
		e.unit = time.Millisecond
	case x.is(i, "exat"):
		e.unit, e.absolute = time.Second, true
	case x.is(i, "pxat"):
		e.unit, e.absolute = time.Millisecond, true
	default:
		return 0, errSyntax
	}
	e.number = x.arguments[i+1]
	return 1, nil
}

// settle says when it is.
func (e *expiry) settle(command string) error {
	if e.number == nil {
		return nil
	}
	number, is := parseInteger(e.number)
	if !is {
		return errInteger
	}
	millis, is := millisOf(number, e.unit, e.absolute)
	if !is || number <= 0 {
		return invalidExpiry(command)
	}
	e.at = time.UnixMilli(millis)
	return nil
}

func invalidExpiry(command string) error {
	return redisError("ERR invalid expire time in '" + command + "' command")
}

// millisOf is an instant in milliseconds since 1970.
func millisOf(number int64, unit time.Duration, absolute bool) (millis int64, is bool) {
	if factor := int64(unit / time.Millisecond); factor > 1 {
		if number > math.MaxInt64/factor || number < math.MinInt64/factor {
			return 0, false
		}
		number *= factor
	}
	if absolute {
		return number, true
	}
	now := time.Now().UnixMilli()
	if number > math.MaxInt64-now {
		return 0, false
	}
	return now + number, true
}

// isOver reports whether an instant has come; the zero time never does.
func isOver(at time.Time) bool { return !at.IsZero() && !time.Now().Before(at) }

func doExpire(x *call) error         { return x.setExpiry(time.Second, false) }
func doExpireMillis(x *call) error   { return x.setExpiry(time.Millisecond, false) }
func doExpireAt(x *call) error       { return x.setExpiry(time.Second, true) }
func doExpireAtMillis(x *call) error { return x.setExpiry(time.Millisecond, true) }

// conditions are NX, XX, GT and LT of EXPIRE: only where the value had no expiry, had one, or had a smaller or a greater one.
type conditions struct{ none, some, greater, less bool }

func (x *call) conditions() (c conditions, err error) {
	for i := 3; i < len(x.arguments); i++ {
		switch {
		case x.is(i, "nx"):
			c.none = true
		case x.is(i, "xx"):
			c.some = true
		case x.is(i, "gt"):
			c.greater = true
		case x.is(i, "lt"):
			c.less = true
		default:
			return c, redisError("ERR Unsupported option " + string(x.arguments[i]))
		}
	}
	switch {
	case c.none && (c.some || c.greater || c.less):
		return c, redisError("ERR NX and XX, GT or LT options at the same time are not compatible")
	case c.greater && c.less:
		return c, redisError("ERR GT and LT options at the same time are not compatible")
	}
	return c, nil
}

// hold reports whether the conditions allow an expiry in place of another one, the zero time for none.
func (c conditions) hold(was, next time.Time) bool {
	never := was.IsZero()
	switch {
	case c.none && !never, c.some && never,
		c.greater && (never || !next.After(was)),
		c.less && !never && !next.Before(was):
		return false
	}
	return true
}

func (x *call) setExpiry(unit time.Duration, absolute bool) error {
	conditions, err := x.conditions()
	if err != nil {
		return err
	}
	number, err := x.integer(2)
	if err != nil {
		return err
	}
	millis, is := millisOf(number, unit, absolute)
	if !is {
		return invalidExpiry(x.entry.name)
	}
	at := time.UnixMilli(millis)
	return x.changeExpiry(func(was time.Time) (time.Time, bool) { return at, conditions.hold(was, at) })
}

func doPersist(x *call) error {
	return x.changeExpiry(func(was time.Time) (time.Time, bool) { return time.Time{}, !was.IsZero() })
}

// changeExpiry rewrites a value with another expiry, where decide says so, and replies with whether it did.
func (x *call) changeExpiry(decide func(was time.Time) (time.Time, bool)) error {
	done := false
	_, err := x.keys.Modify(x.ctx, x.key(1), func(now *values.Value) (values.Change, error) {
		done = false
		if now == nil {
			return values.Change{}, nil
		}
		at, is := decide(now.Expires)
		if done = is; !is {
			return values.Change{}, nil
		}
		return x.until(values.Put{Data: now.Data, Class: now.Class, Expires: at, Metadata: now.Metadata}), nil
	})
	if err == nil {
		x.reply.yes(done)
	}
	return err
}

func doTtl(x *call) error {
	return x.expiryIn(func(at time.Time) int64 { return (time.Until(at).Milliseconds() + 500) / 1000 })
}

func doTtlMillis(x *call) error {
	return x.expiryIn(func(at time.Time) int64 { return time.Until(at).Milliseconds() })
}

func doExpireTime(x *call) error {
	return x.expiryIn(func(at time.Time) int64 { return (at.UnixMilli() + 500) / 1000 })
}

func doExpireTimeMillis(x *call) error { return x.expiryIn(time.Time.UnixMilli) }

// expiryIn replies with the expiry of a value: -1 where it has none, -2 where there is no value.
func (x *call) expiryIn(unit func(time.Time) int64) error {
	info, err := x.keys.Look(x.ctx, x.key(1))
	switch {
	case err != nil:
	case info == nil:
		x.reply.integer(-2)
	case info.Expires.IsZero():
		x.reply.integer(-1)
	default:
		x.reply.integer(max(unit(info.Expires), 0))
	}
	return err
}

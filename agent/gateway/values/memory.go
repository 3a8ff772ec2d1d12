package values

import (
	"context"
	"errors"

	"github.com/restripe/restripe/agent/gateway/api"
)

// ErrNoRoom says that other values that are read have all the memory there is for them. It is api.ErrBusy, and nothing was changed.
var ErrNoRoom = errors.New("values that are read and not yet sent have all the memory there is for them; try again in a moment")

// reserving takes memory for a value.
type reserving func(ctx context.Context, bytes int64) (free func(), err error)

// reserve takes memory, and waits for it a while.
func (s *Session) reserve(ctx context.Context, bytes int64) (free func(), err error) {
	free, err = s.reserveNow(ctx, bytes)
	if err == nil || s.isAhead {
		return free, err
	}
	patient, done := context.WithTimeout(ctx, s.parts.Patience)
	defer done()
	free, err = s.memory.Reserve(patient, bytes)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, noRoom()
	}
	return free, nil
}

// reserveNow takes memory if there is some.
func (s *Session) reserveNow(_ context.Context, bytes int64) (free func(), err error) {
	memory := s.memory
	if s.isAhead {
		memory = s.ahead
	}
	free, room := memory.Try(bytes)
	if !room {
		return nil, noRoom()
	}
	return free, nil
}

func noRoom() error { return api.Refuse(api.ErrBusy, "%w", ErrNoRoom) }

// Ahead returns the same session for commands whose answers are sent after those of others: it has a memory of its own for the values
// that it reads, a quarter of that of all others, and does not wait for it. After ErrNoRoom the command is carried out anew, by the
// session itself, once its answer is the next one. Else all memory might be that of answers which wait for those that have none.
func (s *Session) Ahead() *Session {
	ahead := *s
	ahead.isAhead = true
	return &ahead
}

// Keep returns the value as one of its own, whose Release is due in place of this one's. It is for what decides in Modify.
func (v *Value) Keep() *Value {
	kept := *v
	v.free = nil
	return &kept
}

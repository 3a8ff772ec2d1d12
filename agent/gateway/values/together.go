package values

import (
	"context"
	"slices"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/gateway/object"
)

// Got is what became of one of several keys, whose index it has: it is known which value it has, nil for none, or Get is to be asked, or
// GetBegun with what was begun.
type Got struct {
	Index int
	Value *Value
	Known bool
	Begun Begun
}

// Begun is a read of a value that others were read without. The zero value is none.
type Begun struct{ reader *object.Reader }

// GetTogether gets the values of keys, each as Get does, but with one read of the catalog for all, and with one of each store for the small
// ones. tell is called with what came of them, in their order: once for all, but for what comes late, and for what is to be got otherwise,
// which is told of first. All are told of before it returns.
func (s *Session) GetTogether(ctx context.Context, keys []string, tell func(some []Got)) {
	getTogether(ctx, s, keys, s.reserveNow, tell)
}

func getTogether(ctx context.Context, s *Session, keys []string, reserve reserving, tell func(some []Got)) {
	got := make([]Got, len(keys))
	for i := range got {
		got[i].Index = i
	}
	_, in, err := s.scope(ctx, access.Read)
	if err != nil {
		tell(got)
		return
	}
	var told, others []Got
	var readers []*object.Reader
	var of []int
	opened, known := object.OpenEach(ctx, s.parts.Objects, keys)
	for i, reader := range opened {
		_, some := in.HasKey(keys[i])
		switch {
		case !known[i] || !some:
			others = append(others, got[i])
		case reader == nil:
			got[i].Known = true
			told = append(told, got[i])
		default:
			is := reader.Record()
			if !in.Has(keys[i], is.Class) || is.Size > s.parts.MaxBytes {
				others = append(others, got[i])
			} else if data := reader.Kept(); data != nil {
				got[i].Value, got[i].Known = valueOf(is, data, nil), true
				told = append(told, got[i])
			} else {
				readers, of = append(readers, reader), append(of, i)
			}
		}
	}
	if len(others) > 0 {
		tell(others)
	}
	object.ReadTogether(ctx, s.parts.Objects, readers, func(some []object.Whole) {
		for _, whole := range some {
			is, g := readers[whole.Index].Record(), got[of[whole.Index]]
			if whole.Data == nil {
				g.Begun = Begun{readers[whole.Index]}
			} else if free, err := reserve(ctx, is.Size); err != nil {
				whole.Free()
			} else {
				g.Value, g.Known = valueOf(is, whole.Data, func() { free(); whole.Free() }), true
			}
			told = append(told, g)
		}
		slices.SortFunc(told, func(a, b Got) int { return a.Index - b.Index })
		tell(told)
		told = nil
	})
	if len(told) > 0 {
		tell(told)
	}
}

// GetBegun is Get of a key whose read was begun.
func (s *Session) GetBegun(ctx context.Context, key string, begun Begun) (*Value, error) {
	return s.get(ctx, key, begun.reader, s.reserve)
}

package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// Ahead is how far above all known stamps those begin that are drawn after a catalog was claimed or rebuilt: 72 minutes, as others
// may have drawn some that are not known.
const Ahead = 1 << 32

// ErrAlarm says that the catalog was found to have gone back in time, or that a copy of it is at work: nothing is deleted
// before a person has said what counts.
var ErrAlarm = errors.New("the catalog is behind what its nodes hold")

// Alarm says how a catalog was found to be behind.
type Alarm struct {
	Gateway string       `cbor:"1,keyasint" json:"gateway"`           // who found it
	At      int64        `cbor:"2,keyasint" json:"at"`                // Unix milliseconds
	Node    block.NodeID `cbor:"3,keyasint" json:"node"`              // where
	Blocks  int          `cbor:"4,keyasint" json:"blocks"`            // that no session of this catalog has drawn
	Stamp   block.Stamp  `cbor:"5,keyasint" json:"stamp"`             // the greatest of theirs
	Refused string       `cbor:"6,keyasint,omitempty" json:"refused"` // why the node obeys this catalog not, where that is how it was found
}

// Session is what a catalog knows of one start of a gateway.
type Session struct {
	Gateway string `json:"gateway"`
	Start   string `json:"start"`
	Updates int64  `json:"updates"` // that took effect
	Upto    uint64 `json:"upto"`    // number of the last stamp that it drew; 0: none
	Present bool   `json:"present"` // the gateway has no later start
}

// Sessions returns the starts of gateways that the catalog knows.
func (a *auditor) Sessions(ctx context.Context) ([]Session, error) {
	var sessions []Session
	err := a.each(ctx, schema.PrefixSession, func(record kv.Record) error {
		gateway, rest, _ := strings.Cut(record.Key[len(schema.PrefixSession):], "/")
		start, _, isLane := strings.Cut(rest, "/")
		if !isLane {
			sessions = append(sessions, Session{Gateway: gateway, Start: start})
			return nil
		}
		count, err := codec.DecodeCount(record.Key, record.Value)
		if last := len(sessions) - 1; err == nil && last >= 0 && sessions[last].Gateway == gateway && sessions[last].Start == start {
			sessions[last].Updates += count
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing sessions: %w", err)
	}
	drawn, err := a.drawn(ctx)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(sessions))
	for i := range sessions {
		keys[i] = schema.GatewayKey(sessions[i].Gateway)
	}
	present, err := a.engine.Read(ctx, keys...)
	if err != nil {
		return nil, fmt.Errorf("listing sessions: %w", err)
	}
	for i := range sessions {
		s := &sessions[i]
		owner := Owner(s.Gateway, s.Start)
		s.Upto, s.Present = drawn.owners[owner], string(present[i]) == owner
	}
	return sessions, nil
}

// drawn says which stamps the sessions of a catalog have drawn.
type drawn struct {
	below  uint64            // all below count as drawn
	upto   map[uint32]uint64 // by the mark of the session
	owners map[string]uint64 // by its name
}

func (a *auditor) drawn(ctx context.Context) (*drawn, error) {
	values, err := a.engine.Read(ctx, schema.KeyDrawn)
	if err != nil {
		return nil, fmt.Errorf("reading which stamps were drawn: %w", err)
	}
	below, err := codec.DecodeCount(schema.KeyDrawn, values[0])
	if err != nil {
		return nil, err
	}
	d := &drawn{below: uint64(below), upto: map[uint32]uint64{}, owners: map[string]uint64{}}
	err = a.each(ctx, schema.PrefixUpto, func(record kv.Record) error {
		last, err := codec.DecodeCount(record.Key, record.Value)
		owner := record.Key[len(schema.PrefixUpto):]
		d.owners[owner] = uint64(last)
		d.upto[block.Mark(owner)] = max(d.upto[block.Mark(owner)], uint64(last))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading which stamps were drawn: %w", err)
	}
	return d, nil
}

// has reports whether a session of this catalog has drawn a stamp.
func (d *drawn) has(stamp block.Stamp) bool {
	return stamp.Sequence < d.below || stamp.Sequence <= d.upto[stamp.Mark()]
}

// last returns the greatest number that any session has drawn.
func (d *drawn) last() uint64 {
	return max(d.below, slices.Max(append(slices.Collect(maps.Values(d.upto)), 0)))
}

// RaiseAlarm takes note that the catalog is behind. Blocks below what Claim keeps were told of before: they raise none.
func (a *auditor) RaiseAlarm(ctx context.Context, alarm Alarm) error {
	err := a.retry(ctx, func(ctx context.Context) (bool, error) {
		values, err := a.engine.Read(ctx, schema.KeyAlarm, schema.KeyKept)
		if err != nil || values[0] != nil {
			return err == nil, err
		}
		kept, err := codec.DecodeCount(schema.KeyKept, values[1])
		if err != nil || alarm.Refused == "" && alarm.Stamp.Sequence < uint64(kept) {
			return err == nil, err
		}
		checks := []kv.Check{{Key: schema.KeyAlarm}, {Key: schema.KeyKept, Value: values[1]}}
		failed, err := a.engine.Update(ctx, checks, []kv.Write{{Key: schema.KeyAlarm, Value: codec.Encode(alarm)}})
		return err == nil && len(failed) == 0, err
	})
	if err != nil {
		return fmt.Errorf("raising the alarm: %w", err)
	}
	return nil
}

// Alarm returns how the catalog was found to be behind, nil if it was not or if a person has settled it.
func (a *auditor) Alarm(ctx context.Context) (*Alarm, error) {
	values, err := a.engine.Read(ctx, schema.KeyAlarm)
	if err != nil || values[0] == nil {
		return nil, err
	}
	alarm, err := codec.Decode[Alarm](schema.KeyAlarm, values[0])
	return &alarm, err
}

// CheckAlarm returns an ErrAlarm that says what was found and what to do, if the catalog is behind.
func (a *auditor) CheckAlarm(ctx context.Context) error {
	alarm, err := a.Alarm(ctx)
	if err != nil || alarm == nil {
		return err
	}
	found := fmt.Sprintf("holds %d blocks that it never drew", alarm.Blocks)
	if alarm.Refused != "" {
		found = alarm.Refused
	}
	return fmt.Errorf("%w: gateway %s found at %s that node %s %s: see `restripe catalog lineage`; nothing is deleted until then",
		ErrAlarm, alarm.Gateway, time.UnixMilli(alarm.At).UTC().Format(time.DateTime), alarm.Node, found)
}

// Claim says that this catalog counts, and no other timeline of it (rule 28). The alarm ends, and stamps go on far above all
// that were drawn. The starts of gateways that it knows, or that are named as agents told of them, count no more: those that
// are at work, the caller's too, end with ErrClaimed, and agents obey the ones after them. What was drawn before, here or there, is
// kept, dead or not, until Accept: so another timeline can be claimed instead, and what this one lacks can be brought back.
func (a *auditor) Claim(ctx context.Context, starts []string) error {
	err := a.retry(ctx, func(ctx context.Context) (bool, error) {
		values, err := a.engine.Read(ctx, schema.KeyFloor, schema.KeyAlarm, schema.KeyKept, schema.KeyDisowned)
		if err != nil {
			return false, err
		}
		floor, err := codec.DecodeCount(schema.KeyFloor, values[0])
		if err != nil {
			return false, err
		}
		drawn, err := a.drawn(ctx)
		if err != nil {
			return false, err
		}
		above := max(uint64(floor), drawn.last(), a.clock())
		if values[1] != nil {
			alarm, err := codec.Decode[Alarm](schema.KeyAlarm, values[1])
			if err != nil {
				return false, err
			}
			above = max(above, alarm.Stamp.Sequence)
		}
		above += Ahead
		checks := []kv.Check{
			{Key: schema.KeyFloor, Value: values[0]}, {Key: schema.KeyAlarm, Value: values[1]},
			{Key: schema.KeyKept, Value: values[2]}, {Key: schema.KeyDisowned, Value: values[3]},
		}
		writes := []kv.Write{
			{Key: schema.KeyFloor, Value: codec.EncodeCount(above)}, {Key: schema.KeyKept, Value: codec.EncodeCount(above)},
			{Key: schema.KeyAlarm, Kind: kv.Remove},
		}
		var present []kv.Record
		err = a.each(ctx, schema.PrefixGateway, func(record kv.Record) error {
			present = append(present, record)
			checks = append(checks, kv.Check(record))
			writes = append(writes, kv.Write{Key: record.Key, Kind: kv.Remove})
			return nil
		})
		if err != nil {
			return false, err
		}
		disowned, err := disown(values[3], present, starts)
		if err != nil {
			return false, err
		}
		failed, err := a.engine.Update(ctx, checks, append(writes, disowned))
		return err == nil && len(failed) == 0, err
	})
	if err != nil && !errors.Is(err, ErrClaimed) { // as asked, if by an update whose answer was lost
		return fmt.Errorf("claiming the catalog: %w", err)
	}
	return nil
}

// Accept says that a catalog that was rebuilt or claimed has all that is wanted. What other timelines drew is given up, and
// blocks that nobody names are deleted from then on, as ever. It fails with ErrAlarm while the catalog is behind.
func (a *auditor) Accept(ctx context.Context) error {
	err := a.retry(ctx, func(ctx context.Context) (bool, error) {
		values, err := a.engine.Read(ctx, schema.KeyKept, schema.KeyDrawn, schema.KeyAlarm)
		if err != nil {
			return false, err
		}
		if values[2] != nil {
			return false, kv.Final(a.CheckAlarm(ctx))
		}
		if values[0] == nil {
			return true, nil
		}
		kept, err := codec.DecodeCount(schema.KeyKept, values[0])
		if err != nil {
			return false, err
		}
		below, err := codec.DecodeCount(schema.KeyDrawn, values[1])
		if err != nil {
			return false, err
		}
		checks := []kv.Check{{Key: schema.KeyKept, Value: values[0]}, {Key: schema.KeyDrawn, Value: values[1]}, {Key: schema.KeyAlarm}}
		failed, err := a.engine.Update(ctx, checks, []kv.Write{
			{Key: schema.KeyKept, Kind: kv.Remove}, {Key: schema.KeyDrawn, Value: codec.EncodeCount(max(below, kept))},
		})
		return err == nil && len(failed) == 0, err
	})
	if err != nil {
		return fmt.Errorf("accepting the catalog: %w", err)
	}
	return nil
}

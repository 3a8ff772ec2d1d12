package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// Start returns the name of the start of a gateway that has the catalog open, as Owner made it.
func (c *Catalog) Start() string { return c.session.Owner }

// MayLose reports whether the engine may lose updates that it has acknowledged.
func (c *Catalog) MayLose() bool {
	return c.session.MayLose()
}

// Counts returns how many updates of this start are known to have taken effect, by lane.
func (c *Catalog) Counts() block.Counts { return c.session.Counts() }

// Timeline reads how far the catalog has come, also by the starts named, as far as it has them. All that had taken effect
// before the call is in it. It fails, and the session ends, if the gateway has a later start (ErrFenced), if the catalog was
// claimed (ErrClaimed), and if it has less than this start remembers (ErrBehind).
func (c *Catalog) Timeline(ctx context.Context, starts []string) (*block.Timeline, error) {
	t, err := c.timeline(ctx, starts)
	if err != nil {
		return nil, fmt.Errorf("reading how far the catalog has come: %w", err)
	}
	return t, nil
}

func (c *Catalog) timeline(ctx context.Context, starts []string) (*block.Timeline, error) {
	if err := c.Err(); err != nil {
		return nil, err
	}
	s := c.session
	known := s.Counts() // before the catalog is asked
	values, err := c.engine.Read(ctx, schema.KeyDisowned, s.Gateway)
	if err != nil {
		return nil, err
	}
	if string(values[1]) != s.Owner {
		return nil, s.EndFenced(values[1])
	}
	t := &block.Timeline{Sessions: map[string]block.Counts{}, Ended: map[string]block.Counts{}}
	if values[0] != nil {
		if t.Disowned, err = codec.Decode[[]string](schema.KeyDisowned, values[0]); err != nil {
			return nil, err
		}
	}
	err = c.auditor.each(ctx, schema.PrefixGateway, func(record kv.Record) error {
		t.Sessions[string(record.Value)] = nil
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := c.findEnded(ctx, t, starts); err != nil {
		return nil, err
	}
	for _, part := range []map[string]block.Counts{t.Sessions, t.Ended} {
		for start := range part {
			if part[start], err = c.lanes(ctx, start); err != nil {
				return nil, err
			}
		}
	}
	return t, s.Compare(known, t.Sessions[s.Owner])
}

// findEnded adds those of the starts that the catalog has, and whose gateways have later ones.
func (c *Catalog) findEnded(ctx context.Context, t *block.Timeline, starts []string) error {
	var keys []string
	for _, start := range starts {
		keys = append(keys, schema.SessionKey(start))
	}
	if len(keys) == 0 {
		return nil
	}
	rows, err := c.engine.Read(ctx, keys...)
	if err != nil {
		return err
	}
	for i, start := range starts {
		if _, isLast := t.Sessions[start]; !isLast && rows[i] != nil {
			t.Ended[start] = nil
		}
	}
	return nil
}

// lanes reads the counts of a start. A lane that was never used has none.
func (c *Catalog) lanes(ctx context.Context, start string) (counts block.Counts, err error) {
	prefix := schema.SessionKey(start) + "/"
	err = c.auditor.each(ctx, prefix, func(record kv.Record) error {
		lane, err := strconv.ParseUint(strings.TrimPrefix(record.Key, prefix), 16, 16)
		if err != nil || lane == 0 {
			return fmt.Errorf("record %q: %w: it names no lane", record.Key, ErrCorrupt)
		}
		count, err := codec.DecodeCount(record.Key, record.Value)
		for len(counts) < int(lane) {
			counts = append(counts, 0)
		}
		counts[lane-1] = count
		return err
	})
	return counts, err
}

// disown returns the record of starts that do not count from a claim on: those of before, the last of each gateway, and
// those that agents told of.
func disown(was []byte, present []kv.Record, told []string) (kv.Write, error) {
	var disowned []string
	if was != nil {
		before, err := codec.Decode[[]string](schema.KeyDisowned, was)
		if err != nil {
			return kv.Write{}, err
		}
		disowned = before
	}
	all := map[string]bool{}
	for _, start := range slices.Concat(disowned, told) {
		all[start] = true
	}
	for _, record := range present {
		all[string(record.Value)] = true
	}
	return kv.Write{Key: schema.KeyDisowned, Value: codec.Encode(slices.Sorted(maps.Keys(all)))}, nil
}

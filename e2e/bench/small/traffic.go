package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// The parts codes, keys and batches count what puts, gets and a compaction send, in mode batch and in place. In place is mode at-once
// with one client, so that every object goes alone: what an update of one block of a stripe and of its m parities sends.
const (
	trafficSize = 4 << 10
	trafficSeed = 20261129
)

// traffic is a run of puts, of as many gets, and of a compaction, in a class of its own.
type traffic struct {
	name    string // of the class, unique
	scheme  string
	k, m    int
	mode    api.PackMode
	clients int
	keys    distribution
	mixed   bool // sizes of leastSize to mostSize instead of trafficSize
	loaded  bool // every key is put once before, uncounted

	puts               int
	putBytes           float64 // of objects put
	putWire, getWire   float64 // sent for them
	blocks, groups     float64
	refused            float64 // groups that were sent, and then written anew as one of their keys was put again meanwhile
	moved, compactWire float64 // objects that the compaction moved, and what it sent
	rate               float64 // puts in a second
}

// distribution is how keys are drawn: the first is drawn most, by a Zipf distribution, or all alike.
type distribution struct {
	name  string
	theta float64 // 0: uniform
	space float64 // keys, for one put
}

// draw draws so many keys.
func (d distribution) draw(random *rand.Rand, puts int) (drawn []int) {
	space := max(1, int(d.space*float64(puts)))
	order, cumulative, sum := random.Perm(space), make([]float64, space), 0.0
	for i := range cumulative {
		sum += math.Pow(float64(i+1), -d.theta)
		cumulative[i] = sum
	}
	for range puts {
		at, _ := slices.BinarySearch(cumulative, random.Float64()*sum)
		drawn = append(drawn, order[min(at, space-1)])
	}
	return drawn
}

// inPlace is the peer of a run in mode batch.
func (t traffic) inPlace() traffic {
	t.name, t.mode, t.clients = t.name+"-in-place", api.PackAtOnce, 1
	return t
}

// spec declares the class. Nothing in it is compacted before that is asked for.
func (t *traffic) spec() api.ClassSpec {
	never := api.NeverCompact
	return api.ClassSpec{
		Name: t.name, Ladder: t.scheme, Prefixes: []string{t.name + "/"}, PackMode: t.mode, DeadAtMost: &never,
	}
}

// measure has a class put to, read and compacted.
func (b *bench) measure(ctx context.Context, c *cluster, t *traffic) error {
	random := rand.New(rand.NewPCG(trafficSeed, 7))
	keys := t.keys.draw(random, t.puts)
	sizes := make([]int, len(keys))
	for i := range sizes {
		sizes[i] = trafficSize
		if t.mixed {
			sizes[i] = leastSize + random.IntN(mostSize-leastSize+1)
		}
	}
	key := func(i int) string { return fmt.Sprintf("%s/%06d", t.name, keys[i]) }
	if t.loaded {
		distinct := slices.Compact(slices.Sorted(slices.Values(keys)))
		if err := byClients(ctx, t.clients, len(distinct), func(ctx context.Context, i int) error {
			return c.put(ctx, fmt.Sprintf("%s/%06d", t.name, distinct[i]), bytesOf(distinct[i], 1, trafficSize))
		}); err != nil {
			return err
		}
	}
	putting := func(ctx context.Context) error {
		return byClients(ctx, t.clients, len(keys), func(ctx context.Context, i int) error {
			return c.put(ctx, key(i), bytesOf(i, 0, sizes[i]))
		})
	}
	before, err := c.metrics(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if t.putWire, err = c.counted(ctx, putting); err != nil {
		return err
	}
	t.rate = float64(len(keys)) / time.Since(began).Seconds()
	after, err := c.metrics(ctx)
	if err != nil {
		return err
	}
	t.putBytes = after["restripe_packing_bytes_total"] - before["restripe_packing_bytes_total"]
	t.blocks = after["restripe_packing_blocks_total"] - before["restripe_packing_blocks_total"]
	t.groups = after["restripe_packing_wait_seconds_count"] - before["restripe_packing_wait_seconds_count"]
	t.refused = after["restripe_packing_refused_total"] - before["restripe_packing_refused_total"]
	packed := after["restripe_packing_objects_total"] - before["restripe_packing_objects_total"]
	if int(packed) != len(keys) || t.groups <= 0 {
		return fmt.Errorf("%s: of %d objects put the gateway packed %.0f, into %.0f groups", t.name, len(keys), packed, t.groups)
	}
	if t.getWire, err = c.counted(ctx, func(ctx context.Context) error {
		return atOnce(ctx, len(keys), func(ctx context.Context, i int) error { _, err := c.get(ctx, key(i)); return err })
	}); err != nil {
		return err
	}
	if t.moved, t.compactWire, err = c.compacted(ctx, t); err != nil {
		return err
	}
	b.say("%s: %s by %d clients: puts sent %.3f, gets %.3f, compaction %.3f bytes for one put; %d objects in %.0f groups, "+
		"%.0f anew; %.0f a second",
		t.name, t.mode, t.clients, t.putWire/t.putBytes, t.getWire/t.putBytes, t.compactWire/t.putBytes, len(keys), t.groups, t.refused, t.rate)
	return nil
}

// compacted gives back all that is dead of the class, and of no other.
func (c *cluster) compacted(ctx context.Context, t *traffic) (moved, sent float64, err error) {
	spec, allowed := t.spec(), api.MinDeadAtMost
	spec.DeadAtMost = &allowed
	if _, err := c.gateway.PutClass(ctx, spec); err != nil {
		return 0, 0, err
	}
	before, err := c.metrics(ctx)
	if err != nil {
		return 0, 0, err
	}
	sent, err = c.counted(ctx, func(ctx context.Context) error {
		_, err := c.compactAll(ctx)
		return err
	})
	after, failed := c.metrics(ctx)
	_, undone := c.gateway.PutClass(ctx, t.spec())
	by := func(name string) float64 { return after[name] - before[name] }
	return by("restripe_compaction_moved_bytes_total"), sent, errors.Join(err, failed, undone)
}

// runAll measures pairs of runs in one cluster.
func (b *bench) runAll(ctx context.Context, name string, runs []traffic) (_ []traffic, err error) {
	var classes []api.ClassSpec
	for i := range runs {
		classes = append(classes, runs[i].spec())
	}
	c, err := b.start(ctx, name, classes)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	for i := range runs {
		if err := b.measure(ctx, c, &runs[i]); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// saved says how much less is sent than in place, for a put, for a put and a get, and with the compaction too, which is not counted
// in place: there is none where blocks are updated.
func (t *traffic) saved(peer *traffic) (puts, gets, all float64) {
	one := func(part, whole float64) float64 { return 1 - (part/t.putBytes)/(whole/peer.putBytes) }
	return one(t.putWire, peer.putWire), one(t.putWire+t.getWire, peer.putWire+peer.getWire),
		one(t.putWire+t.getWire+t.compactWire, peer.putWire+peer.getWire)
}

// formula says how much less than in place is sent by it: 1 + m/k instead of 1 + m for a byte put, and 1 for one that is read.
func (t *traffic) formula() (puts, gets float64) {
	k, m := float64(t.k), float64(t.m)
	return 1 - (1+m/k)/(1+m), 1 - (2+m/k)/(2+m)
}

// trafficTable has a row for each run in mode batch, which is followed by its peer.
func trafficTable(runs []traffic, first string, name func(*traffic) string, last string, paper func(*traffic) string) string {
	var text strings.Builder
	say := func(format string, values ...any) { fmt.Fprintf(&text, format+"\n", values...) }
	say("| %s | objects a group | groups sent anew, batch | blocks a put, batch | in place | sent for 1 byte put, batch | in place | read "+
		"| compaction, batch | in place | saved of puts | with gets | with gets and compaction | by the formula, puts | with gets | %s |",
		first, last)
	say("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	for i := 0; i+1 < len(runs); i += 2 {
		one, peer := &runs[i], &runs[i+1]
		puts, gets, all := one.saved(peer)
		byPuts, byGets := one.formula()
		say("| %s | %.1f | %.0f %% | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.0f %% | %.0f %% | %.0f %% | %.0f %% | %.0f %% | %s |",
			name(one), float64(one.puts)/one.groups, 100*one.refused/one.groups, one.blocks/float64(one.puts), peer.blocks/float64(peer.puts),
			one.putWire/one.putBytes, peer.putWire/peer.putBytes, one.getWire/one.putBytes, one.compactWire/one.putBytes,
			peer.compactWire/peer.putBytes, 100*puts, 100*gets, 100*all, 100*byPuts, 100*byGets, paper(one))
	}
	return text.String()
}

package etcd

import (
	"context"
	"hash/maphash"
	"slices"
)

// How many counters share a place, and how many are known in it, about.
const (
	places    = 256
	knownMost = 32
)

// counters are those who increment counters in this process, and what they last knew of them: that saves reading, and whether it is
// still so is a condition of what they do. Counters that share a place are incremented one after the other.
type counters struct {
	seed   maphash.Seed
	places [places]place
}

type place struct {
	taken chan struct{}
	known map[string][]byte // nil: there is none
}

func (c *counters) begin() {
	c.seed = maphash.MakeSeed()
	for i := range c.places {
		c.places[i] = place{taken: make(chan struct{}, 1), known: map[string][]byte{}}
	}
}

func (c *counters) index(key string) int { return int(maphash.String(c.seed, key) % places) }

// take waits until nobody else of this process increments these counters.
func (c *counters) take(ctx context.Context, keys []string) (release func(), err error) {
	indices := make([]int, len(keys))
	for i, key := range keys {
		indices[i] = c.index(key)
	}
	slices.Sort(indices) // nobody waits for one who waits
	indices = slices.Compact(indices)
	held := 0
	release = func() {
		for _, index := range indices[:held] {
			<-c.places[index].taken
		}
	}
	for _, index := range indices {
		select {
		case c.places[index].taken <- struct{}{}:
			held++
			if known := c.places[index].known; len(known) > knownMost {
				clear(known)
			}
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
	return release, nil
}

// What follows is for who has taken the counters.

func (c *counters) known(key string) []byte { return c.places[c.index(key)].known[key] }

func (c *counters) isKnown(key string) bool {
	_, known := c.places[c.index(key)].known[key]
	return known
}

func (c *counters) learn(key string, value []byte) {
	c.places[c.index(key)].known[key] = value
}

func (c *counters) forget(keys []string) {
	for _, key := range keys {
		delete(c.places[c.index(key)].known, key)
	}
}

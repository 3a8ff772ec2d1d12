package sim

import (
	"math/rand/v2"
	"sync"
	"time"
)

// dice is randomness of the seed, for one concern: what one asks does not change what another gets.
type dice struct {
	mutex  sync.Mutex
	source *rand.Rand
}

func newDice(seed, concern uint64) *dice {
	return &dice{source: rand.New(rand.NewPCG(seed, concern))}
}

// below returns a number of [0, n).
func (d *dice) below(n int) int {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.source.IntN(n)
}

// chance is true with probability p.
func (d *dice) chance(p float64) bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.source.Float64() < p
}

// between returns a duration of [from, to).
func (d *dice) between(from, to time.Duration) time.Duration {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return from + time.Duration(d.source.Int64N(int64(to-from)))
}

// late is how long a message is late that comes again or by another way: it may meet what it belongs to, or come long after
// it.
func (d *dice) late() time.Duration {
	return d.between(0, pick(d, []time.Duration{2 * time.Millisecond, 50 * time.Millisecond, lateness}))
}

// pick returns one of a list.
func pick[T any](d *dice, list []T) T { return list[d.below(len(list))] }

package stripe

import "sync"

// boundedCache keeps values until their weights exceed a limit, then forgets the oldest. Safe for concurrent use.
type boundedCache[K comparable, V any] struct {
	limit int // largest sum of weights kept

	mutex  sync.Mutex
	values map[K]weighted[V]
	order  []K // oldest first
	weight int
}

type weighted[V any] struct {
	value  V
	weight int
}

func newBoundedCache[K comparable, V any](limit int) *boundedCache[K, V] {
	return &boundedCache[K, V]{limit: limit, values: make(map[K]weighted[V])}
}

func (c *boundedCache[K, V]) get(key K) (V, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	entry, found := c.values[key]
	return entry.value, found
}

// add keeps value unless key has one already, and returns the one kept, so that all callers share it.
func (c *boundedCache[K, V]) add(key K, value V, weight int) V {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if entry, found := c.values[key]; found {
		return entry.value
	}
	if weight > c.limit {
		return value
	}
	for c.weight+weight > c.limit {
		c.weight -= c.values[c.order[0]].weight
		delete(c.values, c.order[0])
		c.order = c.order[1:]
	}
	c.values[key] = weighted[V]{value, weight}
	c.order = append(c.order, key)
	c.weight += weight
	return value
}

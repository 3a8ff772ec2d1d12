package node

import (
	"sync"

	"github.com/restripe/restripe/agent/wire"
)

// counters sums up the work since the start.
type counters struct {
	mutex sync.Mutex
	sum   wire.Counters
}

func (c *counters) add(more wire.Counters) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.sum.Add(more)
}

func (c *counters) read() wire.Counters {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.sum
}

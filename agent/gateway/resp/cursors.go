package resp

import (
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/restripe/restripe/agent/gateway/api"
)

// mostCursors is how many walks by SCAN a server remembers.
const mostCursors = 10_000

// cursors are where walks through the keys go on. The oldest are forgotten.
type cursors struct {
	mutex sync.Mutex
	first uint64   // number of the oldest
	keys  []string // by number less the first, in a ring
	begin int
}

// make remembers a key, and returns the cursor of what comes after it, which is never 0.
func (c *cursors) make(key string) uint64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.first == 0 { // by chance, so that cursors of another start are told from these
		c.first = 1 + rand.Uint64N(1<<62)
	}
	if len(c.keys) < mostCursors {
		c.keys = append(c.keys, key)
		return c.first + uint64(len(c.keys)-1)
	}
	c.keys[c.begin] = key
	c.begin = (c.begin + 1) % mostCursors
	c.first++
	return c.first + mostCursors - 1
}

// after is the key that a walk goes on after.
func (c *cursors) after(text []byte) (string, error) {
	cursor, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return "", errCursor
	}
	if cursor == 0 {
		return "", nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.first == 0 || cursor < c.first || cursor-c.first >= uint64(len(c.keys)) {
		return "", api.Refuse(api.ErrBadRequest,
			"invalid cursor: this gateway has not given it, or has forgotten it for %d others since; begin with cursor 0", mostCursors)
	}
	return c.keys[(c.begin+int(cursor-c.first))%len(c.keys)], nil
}

func appendUnsigned(to []byte, number uint64) []byte { return strconv.AppendUint(to, number, 10) }

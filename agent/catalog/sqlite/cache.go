package sqlite

import (
	"bytes"
	"sync"
)

// Bounds of a cache, in bytes of keys and values and what is kept beside them.
const (
	cacheBytes   = 32 << 20
	cacheBeside  = 128      // for each record
	cacheLargest = 64 << 10 // value
)

// cache has records as they are in the database, which nobody else writes: so what was read or committed last is what is there. Keys
// that a commit under way writes are not in it: until that has ended only the database knows which value they have. A lookup of several
// keys is of one instant, and so is what it has of them with what the database has of the others, as long as no commit begins between.
//
// It has two generations. What is used is in the younger one, or moves there; when that has half of the bytes the older one is
// forgotten.
type cache struct {
	mutex   sync.RWMutex
	young   map[string][]byte // nil: there is no such record
	old     map[string][]byte
	bytes   int64             // of young
	limit   int64             // of both
	writing map[string][]byte // what the commit under way writes
	begun   uint64            // commits that have begun
	commits uint64            // that have ended
	written map[string]uint64 // by which commit last
	floor   uint64            // what was written by commits before this one is not in written
}

func newCache(limit int64) *cache {
	return &cache{young: map[string][]byte{}, limit: limit, written: map[string]uint64{}}
}

// moment is a time between commits, for what is read then.
type moment struct{ begun, commits uint64 }

// get returns the values of keys as far as it has them, which the caller owns, and which keys it has not, by their indices.
func (c *cache) get(keys []string) (values [][]byte, missing []int, at moment) {
	values = make([][]byte, len(keys))
	var aged []string
	c.mutex.RLock()
	at = moment{c.begun, c.commits}
	for i, key := range keys {
		value, has := c.young[key]
		if !has {
			if value, has = c.old[key]; !has {
				missing = append(missing, i)
				continue
			}
			aged = append(aged, key)
		}
		values[i] = value
	}
	c.mutex.RUnlock()
	for i, value := range values { // which nobody changes
		values[i] = bytes.Clone(value)
	}
	if len(aged) > 0 {
		c.renew(aged)
	}
	return values, missing, at
}

// isSince reports whether no commit has begun since a moment: what was read of the database meanwhile goes together with what get
// returned then.
func (c *cache) isSince(at moment) bool {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	return c.begun == at.begun
}

// one is get of one key, of which the caller does not keep or change the value.
func (c *cache) one(key string) (value []byte, found bool) {
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	if value, found = c.young[key]; !found {
		value, found = c.old[key]
	}
	return value, found
}

// all is get of keys that it has all of, of which the caller does not keep or change the values. Those that were not used for long it does
// not say: get renews them.
func (c *cache) all(keys []string) (values [][]byte, found bool) {
	values = make([][]byte, len(keys))
	c.mutex.RLock()
	defer c.mutex.RUnlock()
	for i, key := range keys {
		if values[i], found = c.young[key]; !found {
			return nil, false
		}
	}
	return values, true
}

// renew moves keys that were used into the younger generation.
func (c *cache) renew(keys []string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, key := range keys {
		if value, has := c.old[key]; has { // it may have been written or forgotten since
			delete(c.old, key)
			c.put(key, value)
		}
	}
}

// fill takes in values that were read from the database since a moment, but for those that somebody has written since. It keeps copies.
func (c *cache) fill(keys []string, values [][]byte, since moment) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if since.commits < c.floor {
		return
	}
	for i, key := range keys {
		if _, changes := c.writing[key]; !changes && c.written[key] <= since.commits {
			c.put(key, bytes.Clone(values[i]))
		}
	}
}

// put keeps a value. The caller holds the mutex.
func (c *cache) put(key string, value []byte) {
	if len(value) > cacheLargest {
		return
	}
	if _, has := c.young[key]; has { // it was filled by two readers at once
		return
	}
	delete(c.old, key)
	c.young[key] = value
	if c.bytes += int64(len(key) + len(value) + cacheBeside); c.bytes > c.limit/2 {
		c.old, c.young, c.bytes = c.young, map[string][]byte{}, 0
	}
}

// begin forgets what a commit is about to write, which nobody changes any more. One commit is under way at a time.
func (c *cache) begin(writes map[string][]byte) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.writing = writes
	c.begun++
	for key := range writes {
		if value, has := c.young[key]; has {
			delete(c.young, key)
			c.bytes -= int64(len(key) + len(value) + cacheBeside)
		}
		delete(c.old, key)
	}
}

// cacheWritten is how many keys are known at least that were written lately.
const cacheWritten = 1 << 14

// end takes in what the commit under way has written, unless it is not known that it has.
func (c *cache) end(made bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.commits++
	if len(c.written) > cacheWritten {
		c.written, c.floor = map[string]uint64{}, c.commits
	}
	for key, value := range c.writing {
		c.written[key] = c.commits
		if made {
			c.put(key, value)
		}
	}
	c.writing = nil
}

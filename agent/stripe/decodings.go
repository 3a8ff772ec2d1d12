package stripe

import (
	"encoding/binary"
	"sync"
)

// maxDecodings bounds how many answers of Decode are kept: at most some 8 MiB of them for the widest stripes.
const maxDecodings = 4096

// decodingCache keeps answers of Decode by what was asked, and forgets the oldest when it is full. Safe for concurrent
// use. Nodes fail for longer than a read takes, so that the same erasure patterns come again and again.
type decodingCache struct {
	mutex sync.Mutex
	parts map[string][]Part
	order [maxDecodings]string // a ring
	next  int
	count CacheCounts
}

// CacheCounts are what a cache was asked for since the process began: how often it had it, how often not, and how many it forgot for
// want of room.
type CacheCounts struct{ Hits, Misses, Evictions int64 }

var decodings decodingCache

// DecodingCache counts what Decode found ready.
func DecodingCache() CacheCounts {
	decodings.mutex.Lock()
	defer decodings.mutex.Unlock()
	return decodings.count
}

func (c *decodingCache) get(question []byte) (parts []Part, known bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	parts, known = c.parts[string(question)]
	if known {
		c.count.Hits++
	} else {
		c.count.Misses++
	}
	return parts, known
}

func (c *decodingCache) put(question []byte, parts []Part) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.parts == nil {
		c.parts = map[string][]Part{}
	}
	if _, known := c.parts[string(question)]; known {
		return
	}
	if oldest := c.order[c.next]; oldest != "" {
		delete(c.parts, oldest)
		c.count.Evictions++
	}
	c.order[c.next] = string(question)
	c.parts[c.order[c.next]] = parts
	c.next = (c.next + 1) % maxDecodings
}

// appendQuestion appends what Decode is asked, unambiguously.
func appendQuestion(buffer []byte, scheme Scheme, columns []int, wanted int, data, parities []int) []byte {
	for _, number := range []int{scheme.K, scheme.M, wanted, len(columns), len(data)} {
		buffer = binary.AppendVarint(buffer, int64(number))
	}
	for _, list := range [][]int{columns, data, parities} {
		for _, number := range list {
			buffer = binary.AppendVarint(buffer, int64(number))
		}
	}
	return buffer
}

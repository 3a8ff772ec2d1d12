package kernel

import (
	"container/list"
	"slices"
	"sync"
)

const (
	// maxCachedTerms bounds the entries of all cached matrices together: some 16 MiB.
	maxCachedTerms = 1 << 17
	// maxCachedMatrixTerms is how many entries, rows and columns a matrix may have to be kept at all.
	maxCachedMatrixTerms = 1 << 14
)

// shape is what makes matrices with the same entries differ.
type shape struct {
	outputs, inputs int
	path            path
}

// matrixCache keeps the matrices compiled last. Safe for concurrent use.
type matrixCache struct {
	mutex   sync.Mutex
	entries map[uint64]*list.Element
	recent  list.List // of *cachedMatrix, the latest used first
	terms   int
	count   CacheCounts
}

// CacheCounts are what a cache was asked for since the process began: how often it had it, how often not, which counts what is too
// large for it too, and how many it forgot for want of room.
type CacheCounts struct{ Hits, Misses, Evictions int64 }

// MatrixCache counts what was found ready of the matrices that were wanted.
func MatrixCache() CacheCounts {
	compiled.mutex.Lock()
	defer compiled.mutex.Unlock()
	return compiled.count
}

type cachedMatrix struct {
	hash   uint64
	shape  shape
	terms  []Term
	matrix *Matrix
}

var compiled matrixCache

// get returns the matrix of these entries; it calls make if it is not there.
func (c *matrixCache) get(s shape, terms []Term, make func(shape, []Term) (*Matrix, error)) (*Matrix, error) {
	if len(terms)+s.outputs+s.inputs > maxCachedMatrixTerms {
		c.mutex.Lock()
		c.count.Misses++
		c.mutex.Unlock()
		return make(s, terms)
	}
	hash := hashTerms(s, terms)
	c.mutex.Lock()
	if element := c.entries[hash]; element != nil {
		if found := element.Value.(*cachedMatrix); found.shape == s && slices.Equal(found.terms, terms) {
			c.recent.MoveToFront(element)
			c.count.Hits++
			c.mutex.Unlock()
			return found.matrix, nil
		}
	}
	c.count.Misses++
	c.mutex.Unlock()
	m, err := make(s, terms)
	if err != nil {
		return nil, err
	}
	c.put(&cachedMatrix{hash, s, slices.Clone(terms), m})
	return m, nil
}

func (c *matrixCache) put(m *cachedMatrix) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.entries == nil {
		c.entries = map[uint64]*list.Element{}
	}
	if element := c.entries[m.hash]; element != nil {
		c.remove(element)
	}
	c.entries[m.hash] = c.recent.PushFront(m)
	for c.terms += m.size(); c.terms > maxCachedTerms; {
		c.remove(c.recent.Back())
		c.count.Evictions++
	}
}

func (c *matrixCache) remove(element *list.Element) {
	m := c.recent.Remove(element).(*cachedMatrix)
	delete(c.entries, m.hash)
	c.terms -= m.size()
}

// size counts an empty matrix and the empty rows and columns of others too, so that the bound holds for them.
func (m *cachedMatrix) size() int { return len(m.terms) + m.shape.outputs + m.shape.inputs }

func hashTerms(s shape, terms []Term) uint64 {
	const multiplier = 0x9e3779b97f4a7c15
	hash := (uint64(s.outputs)<<32|uint64(s.inputs))*multiplier + uint64(s.path)
	for _, t := range terms {
		hash = (hash ^ hash>>29 ^ uint64(t.Output)<<34 ^ uint64(t.Input)<<8 ^ uint64(t.Coefficient)) * multiplier
	}
	return hash ^ hash>>32
}

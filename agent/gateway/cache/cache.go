// Package cache keeps the bytes of small objects that clients read in the gateway's memory. It says nothing of what an object is: whoever
// asks has read its record in the catalog, and gets the bytes of exactly the revision that is there.
package cache

import (
	"github.com/maypok86/otter/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/block"
)

const (
	// Largest is how many bytes an object has at most that is kept.
	Largest = 64 << 10
	// beside is what an object costs beside its key and its bytes, about.
	beside = 256
)

// Cache keeps bytes of objects, of each under one revision. Which of them stay when there is no room for all is decided by how often and
// how lately they were read. It is safe for concurrent use.
type Cache struct {
	objects *otter.Cache[string, kept] // nil: nothing is kept
	reads   *prometheus.CounterVec
	hits    prometheus.Counter
	misses  prometheus.Counter
	bytes   *prometheus.Desc
}

// kept is the bytes of an object, which nobody changes.
type kept struct {
	revision block.Stamp
	data     []byte
}

// New returns a cache of so many bytes, keys and what is beside them included, about. One of none keeps nothing.
func New(limit int64) *Cache {
	reads := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "restripe_gateway_cache_reads_total",
		Help: "Reads of small objects by clients, by whether the gateway had their bytes in memory: hit, miss.",
	}, []string{"outcome"})
	c := &Cache{
		reads: reads, hits: reads.WithLabelValues("hit"), misses: reads.WithLabelValues("miss"),
		bytes: prometheus.NewDesc("restripe_gateway_cache_bytes", "Memory that the small objects take which the gateway keeps.", nil, nil),
	}
	if limit > 0 {
		c.objects = otter.Must(&otter.Options[string, kept]{
			MaximumWeight: uint64(limit),
			Weigher:       func(key string, value kept) uint32 { return uint32(len(key) + len(value.data) + beside) },
			Executor:      func(work func()) { work() },
		})
	}
	return c
}

// Takes reports whether an object of so many bytes may be kept.
func (c *Cache) Takes(bytes int64) bool { return c.objects != nil && bytes > 0 && bytes <= Largest }

// Has reports whether something is kept of an object, perhaps of another revision than the one that it has now.
func (c *Cache) Has(key string) bool {
	if c.objects == nil {
		return false
	}
	_, has := c.objects.GetEntryQuietly(key)
	return has
}

// Get returns the bytes of an object at a revision, nil if they are not kept. Nobody may change them.
func (c *Cache) Get(key string, revision block.Stamp) []byte {
	if c.objects == nil {
		return nil
	}
	if found, has := c.objects.GetIfPresent(key); has && found.revision == revision {
		c.hits.Inc()
		return found.data
	}
	c.misses.Inc()
	return nil
}

// Put keeps the bytes of an object at a revision. They are the cache's from now on, and nobody may change them.
func (c *Cache) Put(key string, revision block.Stamp, data []byte) {
	if c.Takes(int64(len(data))) {
		c.objects.Set(key, kept{revision, data})
	}
}

// Describe describes the metrics.
func (c *Cache) Describe(out chan<- *prometheus.Desc) {
	c.reads.Describe(out)
	out <- c.bytes
}

// Collect shows the metrics.
func (c *Cache) Collect(out chan<- prometheus.Metric) {
	c.reads.Collect(out)
	weight := uint64(0)
	if c.objects != nil {
		weight = c.objects.WeightedSize()
	}
	out <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(weight))
}

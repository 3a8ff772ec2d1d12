package group

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/stripe"
)

// Caches shows how often what decodes was at hand (TriEC Section 5.3.2, calculator cache). It is a collector of metrics.
type Caches struct{}

var cacheLookups = prometheus.NewDesc("restripe_code_cache_total",
	"What this process asked its caches of codes for and they had (hit) or not (miss), and what they forgot for want of room (evict): "+
		"decodings are the coefficients for a pattern of losses, matrices are made ready for the processor.",
	[]string{"cache", "event"}, nil)

// Describe implements prometheus.Collector.
func (Caches) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- cacheLookups }

// Collect implements prometheus.Collector.
func (Caches) Collect(metrics chan<- prometheus.Metric) {
	decodings, matrices := stripe.DecodingCache(), kernel.MatrixCache()
	for _, count := range []struct {
		cache, event string
		n            int64
	}{
		{"decodings", "hit", decodings.Hits}, {"decodings", "miss", decodings.Misses}, {"decodings", "evict", decodings.Evictions},
		{"matrices", "hit", matrices.Hits}, {"matrices", "miss", matrices.Misses}, {"matrices", "evict", matrices.Evictions},
	} {
		metrics <- prometheus.MustNewConstMetric(cacheLookups, prometheus.CounterValue, float64(count.n), count.cache, count.event)
	}
}

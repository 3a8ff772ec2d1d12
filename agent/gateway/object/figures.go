package object

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/repair"
	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/stripe"
)

// ReadRepairs counts the repairs that reads asked for. It is a collector of metrics.
type ReadRepairs struct {
	repairs *prometheus.CounterVec
	waits   prometheus.Histogram
	lates   prometheus.Counter
}

const (
	modeFirst api.RepairOnRead = "first" // the request wants nothing decoded that can be rebuilt

	outcomeWoken repair.ReadOutcome = "woken" // the repair was told of the group
	outcomeBusy  repair.ReadOutcome = "busy"  // too many groups were rebuilt for reads; the repair was told
)

func newReadRepairs() *ReadRepairs {
	c := &ReadRepairs{
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "restripe_read_repairs_total", Help: "Losses in a group that a read met and had repaired, by what the class or the request " +
				"wants (wait, wake, first) and what came of it: repaired, limited (by the limits of repair, or a pause), busy (too many at a " +
				"time), failed; woken where the repair was told of it.",
		}, []string{"mode", "outcome"}),
		waits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "restripe_read_repair_wait_seconds", Help: "Time that reads waited for the repair that another read had begun.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 12),
		}),
		lates: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_read_repair_late_total", Help: "Reads that waited for a repair in vain and decoded, as it took too long.",
		}),
	}
	for _, outcome := range []repair.ReadOutcome{repair.ReadRepaired, repair.ReadLimited, repair.ReadFailed, outcomeBusy} {
		c.repairs.WithLabelValues(string(api.RepairWait), string(outcome))
	}
	for _, mode := range []api.RepairOnRead{api.RepairWait, api.RepairWake} {
		c.repairs.WithLabelValues(string(mode), string(outcomeWoken))
	}
	for _, outcome := range []repair.ReadOutcome{repair.ReadRepaired, repair.ReadFailed} {
		c.repairs.WithLabelValues(string(modeFirst), string(outcome))
	}
	return c
}

// repair counts a loss that a read met and what came of it.
func (c *ReadRepairs) repair(mode api.RepairOnRead, outcome repair.ReadOutcome) {
	if mode == "" {
		mode = api.RepairWake
	}
	c.repairs.WithLabelValues(string(mode), string(outcome)).Inc()
}

func (c *ReadRepairs) waited(long time.Duration) { c.waits.Observe(long.Seconds()) }

func (c *ReadRepairs) late() { c.lates.Inc() }

// Describe implements prometheus.Collector.
func (c *ReadRepairs) Describe(descriptions chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(c, descriptions)
}

// Collect implements prometheus.Collector.
func (c *ReadRepairs) Collect(metrics chan<- prometheus.Metric) {
	c.repairs.Collect(metrics)
	c.waits.Collect(metrics)
	c.lates.Collect(metrics)
}

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

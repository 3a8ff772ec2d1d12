package repair

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/gateway/api"
)

// ReadRepairs counts the repairs that reads asked for. It is a collector of metrics.
type ReadRepairs struct {
	repairs *prometheus.CounterVec
	waits   prometheus.Histogram
	lates   prometheus.Counter
}

// ReadFirst is the mode of a request that wants nothing decoded that can be rebuilt.
const ReadFirst api.RepairOnRead = "first"

// More of what becomes of a loss that a read met.
const (
	ReadWoken ReadOutcome = "woken" // the repair was told of the group
	ReadBusy  ReadOutcome = "busy"  // too many groups were rebuilt for reads; the repair was told
)

// NewReadRepairs returns counters at 0.
func NewReadRepairs() *ReadRepairs {
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
	for _, outcome := range []ReadOutcome{ReadRepaired, ReadLimited, ReadFailed, ReadBusy} {
		c.repairs.WithLabelValues(string(api.RepairWait), string(outcome))
	}
	for _, mode := range []api.RepairOnRead{api.RepairWait, api.RepairWake} {
		c.repairs.WithLabelValues(string(mode), string(ReadWoken))
	}
	for _, outcome := range []ReadOutcome{ReadRepaired, ReadFailed} {
		c.repairs.WithLabelValues(string(ReadFirst), string(outcome))
	}
	return c
}

// Repair counts a loss that a read met and what came of it.
func (c *ReadRepairs) Repair(mode api.RepairOnRead, outcome ReadOutcome) {
	if mode == "" {
		mode = api.RepairWake
	}
	c.repairs.WithLabelValues(string(mode), string(outcome)).Inc()
}

// Waited takes note of how long a read waited for the repair that another had begun.
func (c *ReadRepairs) Waited(long time.Duration) { c.waits.Observe(long.Seconds()) }

// Late counts a read that waited in vain.
func (c *ReadRepairs) Late() { c.lates.Inc() }

func (c *ReadRepairs) all() []prometheus.Collector {
	return []prometheus.Collector{c.repairs, c.waits, c.lates}
}

// Describe implements prometheus.Collector.
func (c *ReadRepairs) Describe(descriptions chan<- *prometheus.Desc) {
	for _, one := range c.all() {
		one.Describe(descriptions)
	}
}

// Collect implements prometheus.Collector.
func (c *ReadRepairs) Collect(metrics chan<- prometheus.Metric) {
	for _, one := range c.all() {
		one.Collect(metrics)
	}
}

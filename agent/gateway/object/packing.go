package object

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/arrange"
)

// Packing counts how small objects were packed. It is a collector of metrics.
type Packing struct {
	waited   *prometheus.HistogramVec
	objects  *prometheus.CounterVec
	bytes    prometheus.Counter
	attempts *prometheus.CounterVec
	refused  prometheus.Counter
	groups   *prometheus.CounterVec
	writes   *prometheus.HistogramVec
	into     *prometheus.CounterVec
	blocks   prometheus.Counter
}

func newPacking() *Packing {
	p := &Packing{
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "restripe_packing_wait_seconds", Help: "Time that the first small object of a group waited until the group was written, " +
				"for others (batch) or for its turn alone (at-once).",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
		}, []string{"mode"}),
		objects: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "restripe_packing_objects_total", Help: "Small objects that were written, by whether the first of their group waited for others.",
		}, []string{"mode"}),
		groups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "restripe_packing_groups_total", Help: "Batches of small objects that were put: each into one group (all), or the objects whose " +
				"keys are written most (popular) and the others apart.",
		}, []string{"part"}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_packing_bytes_total", Help: "Bytes of small objects that were written.",
		}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "restripe_packing_attempts_total", Help: "Attempts to write a group of small objects, by whether they were " +
				"announced ahead or when they were written.",
		}, []string{"announced"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_packing_refused_total", Help: "Groups of small objects by attempts that were announced ahead that were written anew, " +
				"because one of their objects had been written or deleted under a later number.",
		}),
		writes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "restripe_packing_write_bytes", Help: "Bytes of small objects that one write of a group took together, by whether the first of " +
				"them waited for others.",
			Buckets: prometheus.ExponentialBuckets(1<<10, 4, 9),
		}, []string{"mode"}),
		into: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "restripe_packing_writes_total", Help: "Writes of small objects, by whether they were put into a new group or into empty " +
				"columns of one that was there.",
		}, []string{"into"}),
		blocks: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_packing_blocks_total", Help: "Blocks that small objects were written in, with their parities.",
		}),
	}
	for _, when := range []string{ahead, asked} {
		p.attempts.WithLabelValues(when)
	}
	for _, mode := range []api.PackMode{api.PackBatch, api.PackAtOnce} {
		p.waited.WithLabelValues(string(mode))
		p.objects.WithLabelValues(string(mode))
		p.writes.WithLabelValues(string(mode))
	}
	for _, group := range []string{intoNew, intoOpen} {
		p.into.WithLabelValues(group)
	}
	for _, part := range []string{arrange.All, arrange.Popular, arrange.Others} {
		p.groups.WithLabelValues(part)
	}
	return p
}

// note counts a batch that waited so long.
func (p *Packing) note(b *batch, waited time.Duration) {
	mode := string(api.PackAtOnce)
	if b.wait > 0 {
		mode = string(api.PackBatch)
	}
	p.waited.WithLabelValues(mode).Observe(waited.Seconds())
	p.objects.WithLabelValues(mode).Add(float64(len(b.entries)))
	var bytes int
	for _, entry := range b.entries {
		bytes += len(entry.data)
	}
	p.bytes.Add(float64(bytes))
	p.writes.WithLabelValues(mode).Observe(float64(bytes))
}

// When the attempt of a group is announced.
const (
	ahead = "ahead"
	asked = "asked"
)

// announced counts a group that was begun.
func (p *Packing) announced(isAhead bool) {
	when := asked
	if isAhead {
		when = ahead
	}
	p.attempts.WithLabelValues(when).Inc()
}

func (p *Packing) all() []prometheus.Collector {
	return []prometheus.Collector{p.waited, p.objects, p.groups, p.bytes, p.blocks, p.into, p.writes, p.attempts, p.refused}
}

// What small objects are written into.
const (
	intoNew  = "new"
	intoOpen = "open"
)

// wrote counts a write of so many blocks.
func (p *Packing) wrote(into string, blocks int) {
	p.into.WithLabelValues(into).Inc()
	p.blocks.Add(float64(blocks))
}

// Describe implements prometheus.Collector.
func (p *Packing) Describe(descriptions chan<- *prometheus.Desc) {
	for _, one := range p.all() {
		one.Describe(descriptions)
	}
}

// Collect implements prometheus.Collector.
func (p *Packing) Collect(metrics chan<- prometheus.Metric) {
	for _, one := range p.all() {
		one.Collect(metrics)
	}
}

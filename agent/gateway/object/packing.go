package object

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
)

// Packing counts how small objects were packed. It is a collector of metrics.
type Packing struct {
	waited  *prometheus.HistogramVec
	objects *prometheus.CounterVec
	bytes   prometheus.Counter
	blocks  prometheus.Counter
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
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_packing_bytes_total", Help: "Bytes of small objects that were written.",
		}),
		blocks: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_packing_blocks_total", Help: "Blocks that small objects were written in, with their parities.",
		}),
	}
	for _, mode := range []api.PackMode{api.PackBatch, api.PackAtOnce} {
		p.waited.WithLabelValues(string(mode))
		p.objects.WithLabelValues(string(mode))
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
}

// wrote counts the blocks of a group that was written.
func (p *Packing) wrote(group *catalog.Group) { p.blocks.Add(float64(len(group.Addresses()))) }

// Describe implements prometheus.Collector.
func (p *Packing) Describe(descriptions chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(p, descriptions)
}

// Collect implements prometheus.Collector.
func (p *Packing) Collect(metrics chan<- prometheus.Metric) {
	p.waited.Collect(metrics)
	p.objects.Collect(metrics)
	p.bytes.Collect(metrics)
	p.blocks.Collect(metrics)
}

package object

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/arrange"
)

// Packing counts how small objects were packed. It is a collector of metrics.
type Packing struct {
	waited  *prometheus.HistogramVec
	objects *prometheus.CounterVec
	groups  *prometheus.CounterVec
	bytes   prometheus.Counter
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
	}
	for _, mode := range []api.PackMode{api.PackBatch, api.PackAtOnce} {
		p.waited.WithLabelValues(string(mode))
		p.objects.WithLabelValues(string(mode))
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
}

// Describe implements prometheus.Collector.
func (p *Packing) Describe(descriptions chan<- *prometheus.Desc) {
	p.waited.Describe(descriptions)
	p.objects.Describe(descriptions)
	p.groups.Describe(descriptions)
	p.bytes.Describe(descriptions)
}

// Collect implements prometheus.Collector.
func (p *Packing) Collect(metrics chan<- prometheus.Metric) {
	p.waited.Collect(metrics)
	p.objects.Collect(metrics)
	p.groups.Collect(metrics)
	p.bytes.Collect(metrics)
}

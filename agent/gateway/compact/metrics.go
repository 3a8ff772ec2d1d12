package compact

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/gateway/api"
)

// metrics count what compaction moved, and what it found.
type metrics struct {
	moved, freed prometheus.Counter
	deadBytes    *prometheus.GaugeVec
}

func newMetrics(registry prometheus.Registerer) metrics {
	m := metrics{
		moved: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_compaction_moved_bytes_total", Help: "Bytes of small objects that compaction moved into new groups.",
		}),
		freed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_compaction_freed_bytes_total",
			Help: "Bytes of data columns that compaction emptied, less those that the objects take in their new groups.",
		}),
		deadBytes: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "restripe_dead_bytes",
			Help: "Bytes of the data columns of packed groups that no object has, by class, as the gateway that compacts last looked.",
		}, []string{"class"}),
	}
	registry.MustRegister(m.moved, m.freed, m.deadBytes)
	return m
}

func (m *metrics) dead(classes []api.CompactionClass) {
	for i := range classes {
		m.deadBytes.WithLabelValues(classes[i].Name).Set(float64(classes[i].Dead))
	}
}

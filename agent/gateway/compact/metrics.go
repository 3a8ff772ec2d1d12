package compact

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/arrange"
)

// metrics count what compaction moved, and what it found.
type metrics struct {
	moved, freed             prometheus.Counter
	spliced, sent, unspliced prometheus.Counter
	groups                   *prometheus.CounterVec
	deadBytes                *prometheus.GaugeVec
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
		spliced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_compaction_spliced_bytes_total",
			Help: "Of the bytes moved, those that stayed on their nodes: the nodes put the new groups together.",
		}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_compaction_splice_sent_bytes_total",
			Help: "Bytes that nodes sent each other to put new groups together, for their parities.",
		}),
		unspliced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_compaction_unspliced_total",
			Help: "Groups that nodes could not put together, so that the gateway read their objects and wrote them.",
		}),
		groups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "restripe_compaction_groups_total",
			Help: "Groups that compaction made: alone (all), or of the more popular half of several made at a time (popular) or the " +
				"other (others).",
		}, []string{"part"}),
		deadBytes: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "restripe_dead_bytes",
			Help: "Bytes of the data columns of packed groups that no object has, by class, as the gateway that compacts last looked.",
		}, []string{"class"}),
	}
	registry.MustRegister(m.moved, m.freed, m.spliced, m.sent, m.unspliced, m.groups, m.deadBytes)
	for _, part := range []string{arrange.All, arrange.Popular, arrange.Others} {
		m.groups.WithLabelValues(part)
	}
	return m
}

// filled counts group i of so many that were made at a time, in the order of their popularity.
func (m *metrics) filled(i, of int) {
	part := arrange.Others
	switch {
	case of == 1:
		part = arrange.All
	case 2*i < of:
		part = arrange.Popular
	}
	m.groups.WithLabelValues(part).Inc()
}

func (m *metrics) dead(classes []api.CompactionClass) {
	for i := range classes {
		m.deadBytes.WithLabelValues(classes[i].Name).Set(float64(classes[i].Dead))
	}
}

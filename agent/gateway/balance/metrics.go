package balance

import "github.com/prometheus/client_golang/prometheus"

// metrics count what this gateway moves.
type metrics struct {
	moved prometheus.Counter
	left  prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		moved: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_balance_moved_bytes_total",
			Help: "Bytes of blocks that this gateway moved so that every node holds about its share.",
		}),
		left: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "restripe_balance_left_bytes",
			Help: "Bytes of blocks that the balance has still to move; 0 at gateways that do not carry one out.",
		}),
	}
	registry.MustRegister(m.moved, m.left)
	return m
}

package resp

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/serve"
)

// metrics are of one server.
type metrics struct {
	commands    *prometheus.HistogramVec
	connections *serve.ConnectionMetrics
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		commands: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "restripe_redis_command_seconds",
			Help: "Time to carry out a command of a client of Redis, by command, or unknown, and by how it ended: done, refused, failed.",
			// from 50 us to 26 s
			Buckets: prometheus.ExponentialBuckets(0.00005, 2, 20),
		}, []string{"command", "outcome"}),
		connections: serve.NewConnectionMetrics("redis", "Redis"),
	}
	if registry != nil {
		registry.MustRegister(m.commands, m.connections.Open, m.connections.Refused)
	}
	return m
}

// observe notes how a command ended. No entry: there is none such.
func (m *metrics) observe(e *entry, err error, took time.Duration) {
	name := "unknown"
	if e != nil {
		name = e.name
	}
	m.commands.WithLabelValues(name, outcomeOf(err)).Observe(took.Seconds())
}

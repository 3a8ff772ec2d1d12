package s3

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/serve"
)

// metrics are of one server.
type metrics struct {
	requests    *prometheus.HistogramVec
	connections *serve.ConnectionMetrics
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "restripe_s3_request_seconds",
			Help:    "Time to answer a request of a client of S3, by operation, or unknown, and status.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"operation", "status"}),
		connections: serve.NewConnectionMetrics("s3", "S3"),
	}
	if registry != nil {
		registry.MustRegister(m.requests, m.connections.Open)
	}
	return m
}

func (m *metrics) observe(operation string, status int, took time.Duration) {
	m.requests.WithLabelValues(operation, strconv.Itoa(status)).Observe(took.Seconds())
}

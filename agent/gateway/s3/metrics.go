package s3

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are of one server.
type metrics struct {
	requests    *prometheus.HistogramVec
	connections prometheus.Gauge
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "restripe_s3_request_seconds",
			Help:    "Time to answer a request of a client of S3, by operation, or unknown, and status.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"operation", "status"}),
		connections: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "restripe_s3_connections", Help: "Connections of clients of S3.",
		}),
	}
	if registry != nil {
		registry.MustRegister(m.requests, m.connections)
	}
	return m
}

func (m *metrics) observe(operation string, status int, took time.Duration) {
	m.requests.WithLabelValues(operation, strconv.Itoa(status)).Observe(took.Seconds())
}

// state counts connections.
func (m *metrics) state(state http.ConnState) {
	switch state {
	case http.StateNew:
		m.connections.Inc()
	case http.StateClosed, http.StateHijacked:
		m.connections.Dec()
	}
}

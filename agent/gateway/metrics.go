package gateway

import (
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are the gateway's own; each Gateway has a registry of its own.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	moved    *prometheus.CounterVec // by transitions: bytes read, sent, written
	degraded atomic.Int64           // fragments decoded because their cell could not be read
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "restripe_gateway_request_seconds", Help: "Time to answer a request, by method, route and status.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"method", "route", "status"}),
		moved: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "restripe_transition_bytes_total", Help: "Bytes that transitions read, sent between nodes and wrote.",
		}, []string{"kind"}),
	}
	m.registry.MustRegister(m.requests, m.moved, prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "restripe_gateway_degraded_reads_total", Help: "Fragments decoded because their cell could not be read.",
	}, func() float64 { return float64(m.degraded.Load()) }))
	return m
}

func (m *metrics) addMoved(traffic Traffic) {
	m.moved.WithLabelValues("read").Add(float64(traffic.BytesRead))
	m.moved.WithLabelValues("sent").Add(float64(traffic.BytesSent))
	m.moved.WithLabelValues("written").Add(float64(traffic.BytesWritten))
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

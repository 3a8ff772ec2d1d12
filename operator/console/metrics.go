package console

import (
	"path"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are the figures of the server itself.
type metrics struct {
	registry      *prometheus.Registry
	calls         *prometheus.CounterVec
	seconds       *prometheus.HistogramVec
	open          *prometheus.GaugeVec
	auditFailures prometheus.Counter
	stale         *prometheus.GaugeVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "restripe_console_calls_total", Help: "Calls that ended, by name and code; ok where there was no error.",
		}, []string{"call", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "restripe_console_call_seconds", Help: "How long calls took; watches are left out.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"call"}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "restripe_console_open_calls", Help: "Calls under way, watches among them.",
		}, []string{"call"}),
		auditFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_console_audit_failures_total", Help: "Audit records that could not be written.",
		}),
		stale: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "restripe_console_source_stale_seconds", Help: "For how long a source has not answered; 0 while it does.",
		}, []string{"source"}),
	}
	m.registry.MustRegister(m.calls, m.seconds, m.open, m.auditFailures, m.stale, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// begin counts a call; the function it returns is to be called with how it ended.
func (m *metrics) begin(procedure string) func(error) {
	name, began := path.Base(procedure), time.Now()
	m.open.WithLabelValues(name).Inc()
	return func(err error) {
		m.open.WithLabelValues(name).Dec()
		code := "ok"
		if err != nil {
			code = connect.CodeOf(err).String()
		}
		m.calls.WithLabelValues(name, code).Inc()
		if !isWatch(name) {
			m.seconds.WithLabelValues(name).Observe(time.Since(began).Seconds())
		}
	}
}

func isWatch(name string) bool { return len(name) > len("Watch") && name[:len("Watch")] == "Watch" }

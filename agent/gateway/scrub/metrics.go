package scrub

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/gateway/api"
)

// scrubMetrics count what scrubs read, sent and found.
type scrubMetrics struct {
	read, network prometheus.Counter
	findings      *prometheus.CounterVec
}

func newScrubMetrics(registry prometheus.Registerer) scrubMetrics {
	m := scrubMetrics{
		read: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_scrub_read_bytes_total", Help: "Bytes of blocks that scrubs had read and checked at their nodes.",
		}),
		network: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_scrub_network_bytes_total", Help: "Bytes of requests and replies between this gateway and the nodes for scrubs.",
		}),
		findings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "restripe_scrub_findings_total", Help: "What scrubs found wrong, by kind.",
		}, []string{"kind"}),
	}
	for _, kind := range []string{api.FindingLost, api.FindingMissing, api.FindingDamaged, api.FindingDiffers, api.FindingParity} {
		m.findings.WithLabelValues(kind) // they are there before the first one, so that its coming is seen
	}
	registry.MustRegister(m.read, m.network, m.findings)
	return m
}

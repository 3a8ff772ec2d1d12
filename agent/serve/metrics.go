package serve

import (
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
)

// ConnectionMetrics count the connections of one server. Who makes them registers them.
type ConnectionMetrics struct {
	Open    prometheus.Gauge
	Refused prometheus.Counter
}

// NewConnectionMetrics returns those of a protocol: its word in names of metrics, and its name in their help.
func NewConnectionMetrics(word, name string) *ConnectionMetrics {
	return &ConnectionMetrics{
		Open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "restripe_" + word + "_connections", Help: "Connections of clients of " + name + ".",
		}),
		Refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_" + word + "_connections_refused_total",
			Help: "Connections of clients of " + name + " that were one too many.",
		}),
	}
}

// Watch counts the connections of a server of HTTP that Server returned: they are bounded, but none is refused.
func (m *ConnectionMetrics) Watch(server *http.Server) {
	bounded := server.ConnState
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			m.Open.Inc()
		case http.StateClosed, http.StateHijacked:
			m.Open.Dec()
		}
		bounded(conn, state)
	}
}

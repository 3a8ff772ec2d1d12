package gateway

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/pki"
)

// expiry is when a certificate expires.
type expiry struct {
	identity string // SPIFFE ID
	subject  string // for people
	at       time.Time
}

// expiries returns when the certificates of the gateway and of the nodes expire, as far as there are any and it has seen them.
func (g *Gateway) expiries() (list []expiry) {
	own := g.options.Certificates
	if own == nil {
		return nil
	}
	is := own.Identity()
	list = append(list, expiry{is.String(), "gateway " + g.options.ID, own.Expires()})
	for _, target := range g.agents.All() {
		name := string(target.Node.ID)
		if at, known := own.Agent(name); known {
			is.Role, is.Name = pki.RoleAgent, name
			list = append(list, expiry{is.String(), "node " + name, at})
		}
	}
	return list
}

var certificateExpires = prometheus.NewDesc("restripe_certificate_expires_timestamp_seconds",
	"When the certificate expires that the gateway has, or that the agent of a node showed when it was dialled last.",
	[]string{"identity"}, nil)

// certificates shows when certificates expire.
type certificates struct{ gateway *Gateway }

// Describe implements prometheus.Collector.
func (c certificates) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- certificateExpires
}

// Collect implements prometheus.Collector.
func (c certificates) Collect(metrics chan<- prometheus.Metric) {
	for _, one := range c.gateway.expiries() {
		metrics <- prometheus.MustNewConstMetric(certificateExpires, prometheus.GaugeValue, float64(one.at.Unix()), one.identity)
	}
}

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
	cure     string
}

// What is done about a certificate that expires soon.
const renewCure = "`restripe pki renew` issues it anew, in place"

// text says when it expires, or that it has, and how bad that is.
func (e expiry) text() (level, text string) {
	at := e.at.UTC().Format(time.RFC3339)
	if time.Now().After(e.at) {
		return "error", "its certificate has expired at " + at + ": nobody talks to it"
	}
	return "warning", "its certificate expires at " + at + ": nobody talks to it after that"
}

// expiries returns when the certificates of the authority, of the gateway and of the nodes expire, as far as there are any and it has
// seen them.
func (g *Gateway) expiries() (list []expiry) {
	own := g.options.Certificates
	if own == nil {
		return nil
	}
	is := own.Identity()
	list = append(list, expiry{"spiffe://" + is.Cluster, "authority of " + is.Cluster, own.AuthorityExpires(), pki.AuthorityCure})
	list = append(list, expiry{is.String(), "gateway " + g.options.ID, own.Expires(), renewCure})
	for _, target := range g.agents.All() {
		name := string(target.Node.ID)
		if at, known := own.Agent(name); known {
			is.Role, is.Name = pki.RoleAgent, name
			list = append(list, expiry{is.String(), "node " + name, at, renewCure})
		}
	}
	return list
}

var certificateExpires = prometheus.NewDesc("restripe_certificate_expires_timestamp_seconds",
	"When the certificate expires that the gateway has, or that the agent of a node showed when it was dialled last, or that of the "+
		"authority, which is spiffe://CLUSTER.",
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

package gateway

import (
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/wire"
)

// metrics are the gateway's own; each Gateway has a registry of its own.
type metrics struct {
	registry  *prometheus.Registry
	requests  *prometheus.HistogramVec
	unaudited prometheus.Counter
	moved     *prometheus.CounterVec // by transitions: bytes read, sent, written
	catalog   *prometheus.HistogramVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "restripe_gateway_request_seconds", Help: "Time to answer a request, by method, route and status.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}, []string{"method", "route", "status"}),
		unaudited: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_gateway_audit_failures_total", Help: "Audit records that could not be written.",
		}),
		moved: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "restripe_transition_bytes_total", Help: "Bytes that transitions read, sent between nodes and wrote.",
		}, []string{"kind"}),
		catalog: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "restripe_catalog_operation_seconds", Help: "Time of reads, scans and updates of the catalog, by how they ended: done, " +
				"conflict (an update that somebody else was faster than), error.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9),
		}, []string{"operation", "outcome"}),
	}
	for _, outcome := range []string{kv.OutcomeDone, kv.OutcomeConflict, kv.OutcomeError} {
		m.catalog.WithLabelValues("update", outcome)
	}
	for _, kind := range []string{"read", "sent", "written"} {
		m.moved.WithLabelValues(kind)
	}
	m.registry.MustRegister(m.requests, m.unaudited, m.moved, m.catalog, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// observe shows what the operations of the catalog take.
func (m *metrics) observe(operation, outcome string, took time.Duration) {
	m.catalog.WithLabelValues(operation, outcome).Observe(took.Seconds())
}

// objects shows what reads met, and how large objects are committed and swept in pieces.
func (m *metrics) objects(counters *object.Counters, swept func() int64) {
	for _, counter := range []struct {
		name, help string
		count      func() int64
	}{
		{"restripe_gateway_degraded_reads_total", "Fragments decoded because their cell could not be read.", counters.Degraded.Load},
		{"restripe_gateway_hedged_reads_total", "Reads that were asked of more nodes than needed because one was slow.", counters.Hedges.Load},
		{"restripe_gateway_hedged_reads_won_total", "Hedged reads of fragments whose decoding came before their cell.", counters.HedgesWon.Load},
		{"restripe_pieces_committed_total", "Pieces that were committed of objects of many groups, before the objects.", counters.Pieces.Load},
		{"restripe_pieces_swept_total", "Pieces whose groups were given up: of puts that ended before their objects were there, and of " +
			"large objects that were deleted or written over.", swept},
	} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: counter.name, Help: counter.help},
			func() float64 { return float64(counter.count()) }))
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "restripe_puts_in_pieces", Help: "Puts under way that have committed pieces, whose objects nobody sees yet.",
	}, func() float64 { return float64(counters.InPieces.Load()) }))
}

// stores shows what nodes say of their stores.
type stores struct{ agents *member.Agents }

var discardedPieces = prometheus.NewDesc("restripe_store_discarded_pieces_total",
	"Pieces of values that were half made or half deleted, found in a node's store and deleted since its agent started.",
	[]string{"node"}, nil)

// Describe implements prometheus.Collector.
func (s stores) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- discardedPieces }

// Collect implements prometheus.Collector.
func (s stores) Collect(metrics chan<- prometheus.Metric) {
	for _, target := range s.agents.All() {
		_, _, hello := target.State()
		count := float64(hello.Store.Discarded)
		metrics <- prometheus.MustNewConstMetric(discardedPieces, prometheus.CounterValue, count, string(target.Node.ID))
	}
}

// traffic shows what calls of nodes send and receive.
type traffic struct{ agents *member.Agents }

var callBytes = prometheus.NewDesc("restripe_node_call_bytes_total",
	"Bytes between this gateway and nodes, by call and whether they were sent or received: whole messages, without what TLS adds.",
	[]string{"call", "kind"}, nil)

// Describe implements prometheus.Collector.
func (t traffic) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- callBytes }

// Collect implements prometheus.Collector.
func (t traffic) Collect(metrics chan<- prometheus.Metric) {
	t.agents.Traffic.Each(func(op wire.Op, sent, received int64) {
		call := strings.ToLower(op.String())
		metrics <- prometheus.MustNewConstMetric(callBytes, prometheus.CounterValue, float64(sent), call, "sent")
		metrics <- prometheus.MustNewConstMetric(callBytes, prometheus.CounterValue, float64(received), call, "received")
	})
}

func (m *metrics) addMoved(traffic api.Traffic) {
	m.moved.WithLabelValues("read").Add(float64(traffic.BytesRead))
	m.moved.WithLabelValues("sent").Add(float64(traffic.BytesSent))
	m.moved.WithLabelValues("written").Add(float64(traffic.BytesWritten))
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

package compact

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/arrange"
)

// metrics count what compaction moved, and what it found.
type metrics struct {
	moved, freed             prometheus.Counter
	spliced, sent, unspliced prometheus.Counter
	groups                   *prometheus.CounterVec
	packedBytes, deadBytes   *prometheus.GaugeVec
	hotObjects, hotBytes     *prometheus.CounterVec
	hotWaiting               prometheus.Gauge
	hotRefused               prometheus.Counter

	mutex sync.Mutex
	shown []string // classes that the gauges are of
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		moved: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_compaction_moved_bytes_total", Help: "Bytes of small objects that compaction moved into new groups.",
		}),
		freed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_compaction_freed_bytes_total",
			Help: "Bytes of data columns that compaction emptied, less those that the objects take in their new groups.",
		}),
		spliced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_compaction_spliced_bytes_total",
			Help: "Of the bytes moved, those that stayed on their nodes: the nodes put the new groups together.",
		}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_compaction_splice_sent_bytes_total",
			Help: "Bytes that nodes sent each other to put new groups together, for their parities.",
		}),
		unspliced: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "restripe_compaction_unspliced_total",
			Help: "Groups that nodes could not put together, so that the gateway read their objects and wrote them.",
		}),
		groups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "restripe_compaction_groups_total",
			Help: "Groups that compaction made: alone (all), or of the more popular half of several made at a time (popular) or the " +
				"other (others).",
		}, []string{"part"}),
		packedBytes: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "restripe_packed_bytes",
			Help: "Bytes of the data columns of packed groups, by class, at the last look of the compaction.",
		}, []string{"class"}),
		deadBytes: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "restripe_dead_bytes",
			Help: "Bytes of the data columns of packed groups that no object has, by class, at the last look of the compaction.",
		}, []string{"class"}),
	}
	m.hotKeys(registry)
	registry.MustRegister(m.moved, m.freed, m.spliced, m.sent, m.unspliced, m.groups, m.packedBytes, m.deadBytes)
	for _, part := range []string{arrange.All, arrange.Popular, arrange.Others} {
		m.groups.WithLabelValues(part)
	}
	return m
}

// Where objects are moved by what their keys are read.
const (
	toHot  = "hot"
	toCold = "back"
)

// hotKeys makes the metrics of hot keys.
func (m *metrics) hotKeys(registry prometheus.Registerer) {
	m.hotObjects = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "restripe_hot_keys_moved_objects_total",
		Help: "Small objects that were moved to the scheme of the hot keys of their class (hot), and back to the one that was asked for (back).",
	}, []string{"to"})
	m.hotBytes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "restripe_hot_keys_moved_bytes_total",
		Help: "Bytes of small objects that were moved to the scheme of the hot keys of their class (hot), and back (back); these " +
			"are among those that compaction moved.",
	}, []string{"to"})
	m.hotWaiting = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "restripe_hot_keys_waiting", Help: "Hot keys that wait to be moved.",
	})
	m.hotRefused = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "restripe_hot_keys_refused_total", Help: "Reads of hot keys that lie elsewhere and were not to be moved yet, as too many waited.",
	})
	registry.MustRegister(m.hotObjects, m.hotBytes, m.hotWaiting, m.hotRefused)
	for _, to := range []string{toHot, toCold} {
		m.hotObjects.WithLabelValues(to)
		m.hotBytes.WithLabelValues(to)
	}
}

// moveKeys counts objects that were moved by what their keys are read.
func (m *metrics) moveKeys(to string, moved *batch) {
	m.hotObjects.WithLabelValues(to).Add(float64(len(moved.snapshots)))
	m.hotBytes.WithLabelValues(to).Add(float64(moved.bytes))
}

// filled counts group i of so many that were made at a time, in the order of their popularity.
func (m *metrics) filled(i, of int) {
	part := arrange.Others
	switch {
	case of == 1:
		part = arrange.All
	case 2*i < of:
		part = arrange.Popular
	}
	m.groups.WithLabelValues(part).Inc()
}

// show has the gauges say what the last look found, and nothing of classes without packed groups.
func (m *metrics) show(classes []api.CompactionClass) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	before := m.shown
	m.shown = make([]string, 0, len(classes))
	for i := range classes {
		class := &classes[i]
		m.packedBytes.WithLabelValues(class.Name).Set(float64(class.Bytes))
		m.deadBytes.WithLabelValues(class.Name).Set(float64(class.Dead))
		m.shown = append(m.shown, class.Name)
	}
	for _, name := range before {
		if !slices.Contains(m.shown, name) {
			m.packedBytes.DeleteLabelValues(name)
			m.deadBytes.DeleteLabelValues(name)
		}
	}
}

package memcache

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/serve"
)

// command is the name of one, for metrics.
type command int

const (
	commandOther command = iota
	commandAuth
	commandGet
	commandGets
	commandGat
	commandGats
	commandSet
	commandAdd
	commandReplace
	commandAppend
	commandPrepend
	commandCAS
	commandDelete
	commandIncr
	commandDecr
	commandTouch
	commandFlushAll
	commandVerbosity
	commandVersion
	commandStats
	commandMetaGet
	commandMetaSet
	commandMetaDelete
	commandMetaArithmetic
	commandMetaNoop
	commandMetaDebug
	commands
)

var commandNames = [commands]string{
	"other", "auth", "get", "gets", "gat", "gats", "set", "add", "replace", "append", "prepend", "cas", "delete", "incr", "decr", "touch",
	"flush_all", "verbosity", "version", "stats", "mg", "ms", "md", "ma", "mn", "me",
}

// outcome is what became of a command. Of one with several parts the worst counts.
type outcome int

const (
	outcomeDone        outcome = iota
	outcomeMiss                // there is no value, or not the one that was expected
	outcomeClientError         // it was refused
	outcomeServerError
	outcomes
)

var outcomeNames = [outcomes]string{"done", "miss", "client_error", "server_error"}

type metrics struct {
	seconds     *prometheus.HistogramVec
	connections *serve.ConnectionMetrics
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{connections: serve.NewConnectionMetrics("memcache", "memcached")}
	m.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "restripe_memcache_command_seconds",
		Help: "Time to carry out a command of a client of memcached, by command and outcome: done, miss (there is no value, or not the one " +
			"that was expected), client_error, server_error.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
	}, []string{"command", "outcome"})
	if registerer == nil {
		return m, nil
	}
	return m, errors.Join(
		registerer.Register(m.seconds), registerer.Register(m.connections.Open), registerer.Register(m.connections.Refused),
	)
}

func (m *metrics) observe(name command, outcome outcome, took time.Duration) {
	m.seconds.WithLabelValues(commandNames[name], outcomeNames[outcome]).Observe(took.Seconds())
}

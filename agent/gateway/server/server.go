package server

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/audit"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/balance"
	"github.com/restripe/restripe/agent/gateway/class"
	"github.com/restripe/restripe/agent/gateway/compact"
	"github.com/restripe/restripe/agent/gateway/load"
	"github.com/restripe/restripe/agent/gateway/member"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/gateway/repair"
	"github.com/restripe/restripe/agent/gateway/scrub"
	"github.com/restripe/restripe/agent/gateway/sweep"
	"github.com/restripe/restripe/agent/gateway/temperature"
	"github.com/restripe/restripe/agent/gateway/transition"
	"github.com/restripe/restripe/agent/pki"
)

// Overview is what a gateway says of the cluster as a whole.
type Overview interface {
	// Status reads every record; StatusBrief is of the last heat report.
	Status(ctx context.Context) (api.Status, error)
	StatusBrief(ctx context.Context) (api.Status, error)
	// Ready reports why requests for objects cannot be answered now; nil if they can.
	Ready(ctx context.Context) error
	// Doctor looks for what will hurt.
	Doctor(ctx context.Context) ([]api.Finding, error)
}

// Parts are what a Server serves. All are required.
type Parts struct {
	Catalog        *catalog.Catalog
	CatalogAddress string // without secrets
	Members        *member.Membership
	Classes        *class.Registry
	Objects        *object.Objects
	Heat           *temperature.Thermometer
	Transitions    *transition.Coordinator
	Repairs        *repair.Repairs
	Scrubber       *scrub.Scrubber
	Sweeper        *sweep.Sweeper
	Compactor      *compact.Compactor
	Balancer       *balance.Balancer
	Overview       Overview
	Load           *load.Window // of clients' requests for objects
	Logger         *slog.Logger

	Users        access.Authority // says who clients are and what they may do; nil: nobody is asked
	Audit        *audit.Log       // of changes of the cluster; nil: none is kept
	Certificates *pki.Source      // of what is served over TLS; needed where clients show certificates

	Closing   context.Context          // ends when the gateway closes, and with it what is watched
	Requests  *prometheus.HistogramVec // seconds, by method, route and status
	Unaudited prometheus.Counter       // audit records that could not be written
	Metrics   http.Handler             // shows all metrics of the gateway
}

// Server serves the requests of a gateway.
type Server struct {
	catalog      *catalog.Catalog
	address      string // of the catalog
	members      *member.Membership
	classes      *class.Registry
	objects      *object.Objects
	heat         *temperature.Thermometer
	transitions  *transition.Coordinator
	repairs      *repair.Repairs
	scrubber     *scrub.Scrubber
	sweeper      *sweep.Sweeper
	compactor    *compact.Compactor
	balancer     *balance.Balancer
	overview     Overview
	load         *load.Window
	log          *slog.Logger
	users        access.Authority
	audit        *audit.Log
	certificates *pki.Source
	closing      context.Context
	requests     *prometheus.HistogramVec
	unaudited    prometheus.Counter
	metrics      http.Handler
}

// New returns a server of the parts.
func New(p Parts) *Server {
	return &Server{
		catalog: p.Catalog, address: p.CatalogAddress,
		members: p.Members, classes: p.Classes, objects: p.Objects, heat: p.Heat, transitions: p.Transitions,
		repairs: p.Repairs, scrubber: p.Scrubber, sweeper: p.Sweeper, compactor: p.Compactor, balancer: p.Balancer,
		overview: p.Overview, load: p.Load, log: p.Logger,
		users: p.Users, audit: p.Audit, certificates: p.Certificates,
		closing: p.Closing, requests: p.Requests, unaudited: p.Unaudited, metrics: p.Metrics,
	}
}

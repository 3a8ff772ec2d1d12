package server

import (
	"context"
	"net/http"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// routeLineage adds the requests of which timeline of the catalog counts.
func (s *Server) routeLineage(route func(route api.Route, serve func(w http.ResponseWriter, r *http.Request) error)) {
	route(api.RouteGetLineage, func(w http.ResponseWriter, r *http.Request) error { return reply(w)(s.lineage(r.Context())) })
	decide := func(decision func(context.Context) error) func(http.ResponseWriter, *http.Request) error {
		return func(w http.ResponseWriter, r *http.Request) error {
			if err := decision(r.Context()); err != nil {
				return err
			}
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
	}
	route(api.RouteClaimCatalog, decide(s.catalog.Claim))
	route(api.RouteAcceptCatalog, decide(s.catalog.Accept))
}

func (s *Server) lineage(ctx context.Context) (api.Lineage, error) {
	lineage := api.Lineage{Cluster: s.catalog.Cluster().ID, Sessions: []api.Session{}}
	sessions, err := s.catalog.Sessions(ctx)
	if err != nil {
		return lineage, err
	}
	for _, session := range sessions {
		lineage.Sessions = append(lineage.Sessions, api.Session(session))
	}
	alarm, err := s.catalog.Alarm(ctx)
	if err != nil {
		return lineage, err
	}
	if alarm != nil {
		lineage.Behind = &api.CatalogBehind{
			Gateway: alarm.Gateway, At: time.UnixMilli(alarm.At).UTC(), Node: alarm.Node, Blocks: alarm.Blocks, Stamp: alarm.Stamp,
		}
	}
	lineage.KeptBelow, err = s.catalog.Kept(ctx)
	return lineage, err
}

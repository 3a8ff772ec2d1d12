package server

import (
	"net/http"

	"github.com/restripe/restripe/agent/gateway/api"
)

// routeCompaction adds the requests of the compaction.
func (s *Server) routeCompaction(route func(route api.Route, serve func(w http.ResponseWriter, r *http.Request) error)) {
	route(api.RouteGetCompaction, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.compactor.Compaction(r.Context()))
	})
	route(api.RouteStartCompaction, func(w http.ResponseWriter, r *http.Request) error {
		var request api.CompactionRequest
		if err := readJSON(r, &request); err != nil {
			return err
		}
		return reply(w)(s.compactor.StartCompaction(r.Context(), request))
	})
	route(api.RoutePauseCompaction, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.compactor.PauseCompaction(r.Context()))
	})
	route(api.RouteResumeCompaction, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.compactor.ResumeCompaction(r.Context()))
	})
}

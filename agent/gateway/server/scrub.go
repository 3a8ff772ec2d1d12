package server

import (
	"net/http"

	"github.com/restripe/restripe/agent/gateway/api"
)

// routeScrub adds the requests of the scrub.
func (s *Server) routeScrub(route func(route api.Route, serve func(w http.ResponseWriter, r *http.Request) error)) {
	route(api.RouteGetScrub, func(w http.ResponseWriter, r *http.Request) error { return reply(w)(s.scrubber.Scrub(r.Context())) })
	route(api.RouteStartScrub, func(w http.ResponseWriter, r *http.Request) error {
		var request api.ScrubRequest
		if err := readJSON(r, &request); err != nil {
			return err
		}
		return reply(w)(s.scrubber.StartScrub(r.Context(), request))
	})
	route(api.RoutePauseScrub, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.scrubber.PauseScrub(r.Context()))
	})
	route(api.RouteResumeScrub, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.scrubber.ResumeScrub(r.Context()))
	})
	route(api.RouteListScrubFindings, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.scrubber.ScrubFindings(r.Context()))
	})
}

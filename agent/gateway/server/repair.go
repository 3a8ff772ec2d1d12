package server

import (
	"net/http"

	"github.com/restripe/restripe/agent/gateway/api"
)

// routeRepair serves the repair of what was lost.
func (s *Server) routeRepair(route func(route api.Route, serve func(w http.ResponseWriter, r *http.Request) error)) {
	route(api.RouteStartRepair, func(w http.ResponseWriter, r *http.Request) error {
		query := r.URL.Query()
		return reply(w)(s.repairs.RepairAs(r.Context(), api.RepairRequest{
			Deep: query.Get("deep") == "true", Shape: query.Get("shape"), Whole: query.Get("whole") == "true", Proxy: query.Get("proxy"),
		}))
	})
	route(api.RouteGetRepair, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.repairs.RepairStatus(r.Context()))
	})
	route(api.RoutePauseRepair, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.repairs.PauseRepair(r.Context()))
	})
	route(api.RouteResumeRepair, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.repairs.ResumeRepair(r.Context()))
	})
	route(api.RouteDeferRepair, func(w http.ResponseWriter, r *http.Request) error {
		var request api.DeferRequest
		if err := readJSON(r, &request); err != nil {
			return err
		}
		return reply(w)(s.repairs.DeferRepair(r.Context(), request))
	})
	route(api.RouteThrottleRepair, func(w http.ResponseWriter, r *http.Request) error {
		var request api.ThrottleRequest
		if err := readJSON(r, &request); err != nil {
			return err
		}
		return reply(w)(s.repairs.ThrottleRepair(r.Context(), request))
	})
}

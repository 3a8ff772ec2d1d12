package gateway

import "net/http"

// routeRepair serves the repair of what was lost.
func (g *Gateway) routeRepair(route func(pattern string, serve func(w http.ResponseWriter, r *http.Request) error)) {
	route("POST /v1/repair", func(w http.ResponseWriter, r *http.Request) error {
		query := r.URL.Query()
		return reply(w)(g.RepairAs(r.Context(), RepairRequest{
			Deep: query.Get("deep") == "true", Shape: query.Get("shape"), Whole: query.Get("whole") == "true", Proxy: query.Get("proxy"),
		}))
	})
	route("GET /v1/repair", func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(g.RepairStatus(r.Context()))
	})
	route("POST /v1/repair/pause", func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(g.PauseRepair(r.Context()))
	})
	route("POST /v1/repair/resume", func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(g.ResumeRepair(r.Context()))
	})
	route("POST /v1/repair/defer", func(w http.ResponseWriter, r *http.Request) error {
		var request DeferRequest
		if err := readJSON(r, &request); err != nil {
			return err
		}
		return reply(w)(g.DeferRepair(r.Context(), request))
	})
	route("POST /v1/repair/throttle", func(w http.ResponseWriter, r *http.Request) error {
		var request ThrottleRequest
		if err := readJSON(r, &request); err != nil {
			return err
		}
		return reply(w)(g.ThrottleRepair(r.Context(), request))
	})
}

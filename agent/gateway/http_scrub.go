package gateway

import "net/http"

// routeScrub adds the requests of the scrub and of a rebuilt catalog.
func (g *Gateway) routeScrub(route func(pattern string, serve func(w http.ResponseWriter, r *http.Request) error)) {
	route("GET /v1/scrub", func(w http.ResponseWriter, r *http.Request) error { return reply(w)(g.Scrub(r.Context())) })
	route("POST /v1/scrub", func(w http.ResponseWriter, r *http.Request) error {
		var request ScrubRequest
		if err := readJSON(r, &request); err != nil {
			return err
		}
		return reply(w)(g.StartScrub(r.Context(), request))
	})
	route("POST /v1/scrub/pause", func(w http.ResponseWriter, r *http.Request) error { return reply(w)(g.PauseScrub(r.Context())) })
	route("POST /v1/scrub/resume", func(w http.ResponseWriter, r *http.Request) error { return reply(w)(g.ResumeScrub(r.Context())) })
	route("GET /v1/scrub/findings", func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(g.ScrubFindings(r.Context()))
	})
	route("POST /v1/catalog/accept", g.serveAccept)
}

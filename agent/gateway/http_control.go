package gateway

import (
	"net/http"

	"github.com/restripe/restripe/agent/gateway/api"
)

func (g *Gateway) servePutClass(w http.ResponseWriter, r *http.Request) error {
	var spec api.ClassSpec
	if err := readJSON(r, &spec); err != nil {
		return err
	}
	name := r.PathValue("name")
	if spec.Name == "" {
		spec.Name = name
	}
	if spec.Name != name {
		return api.Refuse(api.ErrBadRequest, "the body declares class %q and the path names %q; give the same name, or none in the body", spec.Name, name)
	}
	return reply(w)(g.PutClass(r.Context(), spec))
}

func (g *Gateway) serveDeleteClass(w http.ResponseWriter, r *http.Request) error {
	if err := g.DeleteClass(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (g *Gateway) serveThrottle(w http.ResponseWriter, r *http.Request) error {
	var request api.ThrottleRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	return reply(w)(g.ThrottleTransition(r.Context(), r.PathValue("id"), request))
}

func (g *Gateway) serveEstimate(w http.ResponseWriter, r *http.Request) error {
	var request api.TransitionRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	return reply(w)(g.Estimate(r.Context(), request))
}

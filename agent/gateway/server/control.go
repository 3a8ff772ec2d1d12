package server

import (
	"net/http"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

func (s *Server) servePutClass(w http.ResponseWriter, r *http.Request) error {
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
	return reply(w)(s.classes.PutClass(r.Context(), spec))
}

func (s *Server) serveDeleteClass(w http.ResponseWriter, r *http.Request) error {
	if err := s.classes.DeleteClass(r.Context(), r.PathValue("name")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// serveHeat answers with the last heat report or, given a class and a dwell, with how the groups of that class are now.
func (s *Server) serveHeat(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if !query.Has("dwell") {
		return reply(w)(s.heat.Heat(), nil)
	}
	dwell, err := time.ParseDuration(query.Get("dwell"))
	if err != nil || dwell < 0 || query.Get("class") == "" {
		return api.Refuse(api.ErrBadRequest, "heat under another dwell: want ?class=NAME&dwell=6h")
	}
	return reply(w)(s.heat.HeatUnder(r.Context(), query.Get("class"), dwell))
}

func (s *Server) serveThrottle(w http.ResponseWriter, r *http.Request) error {
	var request api.ThrottleRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	return reply(w)(s.transitions.ThrottleTransition(r.Context(), r.PathValue("id"), request))
}

func (s *Server) serveEstimate(w http.ResponseWriter, r *http.Request) error {
	var request api.TransitionRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	return reply(w)(s.transitions.Estimate(r.Context(), request))
}

package server

import (
	"net/http"

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

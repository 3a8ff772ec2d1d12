package server

import "net/http"

// serveAccept says that a rebuilt catalog has all that is wanted, so that blocks which nobody names may be deleted.
func (s *Server) serveAccept(w http.ResponseWriter, r *http.Request) error {
	if err := s.catalog.Accept(r.Context()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

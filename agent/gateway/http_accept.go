package gateway

import (
	"context"
	"net/http"
)

// AcceptCatalog says that a rebuilt catalog has all that is wanted, so that blocks which nobody names may be deleted.
func (g *Gateway) AcceptCatalog(ctx context.Context) error { return g.catalog.Accept(ctx) }

func (g *Gateway) serveAccept(w http.ResponseWriter, r *http.Request) error {
	if err := g.AcceptCatalog(r.Context()); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

package gateway

import (
	"context"
	"net/http"

	"github.com/restripe/restripe/agent/block"
)

// routeNodes adds what concerns the members of the cluster.
func (g *Gateway) routeNodes(route func(pattern string, serve func(w http.ResponseWriter, r *http.Request) error)) {
	id := func(r *http.Request) block.NodeID { return block.NodeID(r.PathValue("id")) }
	route("GET /v1/nodes", func(w http.ResponseWriter, r *http.Request) error { return reply(w)(g.Nodes(r.Context())) })
	route("GET /v1/nodes/{id}", func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(g.Node(r.Context(), id(r)))
	})
	for name, declare := range map[string]func(context.Context, block.NodeID) (NodeInfo, error){
		"undrain": g.UndrainNode, "down": g.DownNode, "up": g.UpNode,
	} {
		route("POST /v1/nodes/{id}/"+name, func(w http.ResponseWriter, r *http.Request) error {
			return reply(w)(declare(r.Context(), id(r)))
		})
	}
	route("POST /v1/nodes/{id}/drain", func(w http.ResponseWriter, r *http.Request) error {
		var request DrainRequest
		if err := readBody(r, &request); err != nil {
			return err
		}
		return reply(w)(g.DrainNode(r.Context(), id(r), request))
	})
	route("POST /v1/nodes/{id}/place", func(w http.ResponseWriter, r *http.Request) error {
		var request PlaceRequest
		if err := readJSON(r, &request); err != nil {
			return err
		}
		return reply(w)(g.PlaceNode(r.Context(), id(r), request))
	})
	route("POST /v1/nodes/{id}/replace", func(w http.ResponseWriter, r *http.Request) error {
		var request ReplaceRequest
		if err := readBody(r, &request); err != nil {
			return err
		}
		return reply(w)(g.ReplaceNode(r.Context(), id(r), request))
	})
	route("POST /v1/nodes/{id}/remove", func(w http.ResponseWriter, r *http.Request) error {
		if err := g.RemoveNode(r.Context(), id(r)); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	route("PUT /v1/patience", func(w http.ResponseWriter, r *http.Request) error {
		var request Patience
		if err := readJSON(r, &request); err != nil {
			return err
		}
		return reply(w)(g.SetPatience(r.Context(), request))
	})
}

// readBody is readJSON where the body may be left out.
func readBody(r *http.Request, into any) error {
	if r.ContentLength == 0 {
		return nil
	}
	return readJSON(r, into)
}

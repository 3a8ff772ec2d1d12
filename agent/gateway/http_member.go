package gateway

import (
	"context"
	"net/http"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
)

// routeNodes adds what concerns the members of the cluster.
func (g *Gateway) routeNodes(route func(route api.Route, serve func(w http.ResponseWriter, r *http.Request) error)) {
	id := func(r *http.Request) block.NodeID { return block.NodeID(r.PathValue("id")) }
	route(api.RouteListNodes, func(w http.ResponseWriter, r *http.Request) error { return reply(w)(g.Nodes(r.Context())) })
	route(api.RouteGetNode, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(g.Node(r.Context(), id(r)))
	})
	for to, declare := range map[api.Route]func(context.Context, block.NodeID) (api.NodeInfo, error){
		api.RouteUndrainNode: g.UndrainNode, api.RouteDownNode: g.DownNode, api.RouteUpNode: g.UpNode,
	} {
		route(to, func(w http.ResponseWriter, r *http.Request) error {
			return reply(w)(declare(r.Context(), id(r)))
		})
	}
	route(api.RouteDrainNode, func(w http.ResponseWriter, r *http.Request) error {
		var request api.DrainRequest
		if err := readBody(r, &request); err != nil {
			return err
		}
		return reply(w)(g.DrainNode(r.Context(), id(r), request))
	})
	route(api.RoutePlaceNode, func(w http.ResponseWriter, r *http.Request) error {
		var request api.PlaceRequest
		if err := readJSON(r, &request); err != nil {
			return err
		}
		return reply(w)(g.PlaceNode(r.Context(), id(r), request))
	})
	route(api.RouteReplaceNode, func(w http.ResponseWriter, r *http.Request) error {
		var request api.ReplaceRequest
		if err := readBody(r, &request); err != nil {
			return err
		}
		return reply(w)(g.ReplaceNode(r.Context(), id(r), request))
	})
	route(api.RouteRemoveNode, func(w http.ResponseWriter, r *http.Request) error {
		if err := g.RemoveNode(r.Context(), id(r)); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	route(api.RoutePutPatience, func(w http.ResponseWriter, r *http.Request) error {
		var request api.Patience
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

package server

import (
	"context"
	"net/http"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
)

// routeNodes adds what concerns the members of the cluster.
func (s *Server) routeNodes(route func(route api.Route, serve func(w http.ResponseWriter, r *http.Request) error)) {
	id := func(r *http.Request) block.NodeID { return block.NodeID(r.PathValue("id")) }
	route(api.RouteListNodes, func(w http.ResponseWriter, r *http.Request) error { return serveNodes(s, w, r) })
	route(api.RouteGetNode, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.members.Node(r.Context(), id(r)))
	})
	for to, declare := range map[api.Route]func(context.Context, block.NodeID) (api.NodeInfo, error){
		api.RouteUndrainNode: s.members.UndrainNode, api.RouteDownNode: s.members.DownNode, api.RouteUpNode: s.members.UpNode,
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
		return reply(w)(s.members.DrainNode(r.Context(), id(r), request))
	})
	route(api.RoutePlaceNode, func(w http.ResponseWriter, r *http.Request) error {
		var request api.PlaceRequest
		if err := readJSON(r, &request); err != nil {
			return err
		}
		return reply(w)(s.members.PlaceNode(r.Context(), id(r), request))
	})
	route(api.RouteReplaceNode, func(w http.ResponseWriter, r *http.Request) error {
		var request api.ReplaceRequest
		if err := readBody(r, &request); err != nil {
			return err
		}
		return reply(w)(s.members.ReplaceNode(r.Context(), id(r), request))
	})
	route(api.RouteRemoveNode, func(w http.ResponseWriter, r *http.Request) error {
		done, err := s.members.RemoveNode(r.Context(), id(r))
		switch {
		case err != nil:
			return err
		case done:
			w.WriteHeader(http.StatusNoContent)
		default:
			w.WriteHeader(http.StatusAccepted) // asked again, it tells what has come of it
		}
		return nil
	})
	route(api.RoutePutPatience, func(w http.ResponseWriter, r *http.Request) error {
		var request api.Patience
		if err := readJSON(r, &request); err != nil {
			return err
		}
		return reply(w)(s.members.SetPatience(r.Context(), request))
	})
}

// readBody is readJSON where the body may be left out.
func readBody(r *http.Request, into any) error {
	if r.ContentLength == 0 {
		return nil
	}
	return readJSON(r, into)
}

package server

import (
	"net/http"
	"strconv"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/member"
)

// routeBalance adds the requests of the balance, and that which adds a node.
func routeBalance(s *Server, route func(route api.Route, serve func(w http.ResponseWriter, r *http.Request) error)) {
	route(api.RouteAddNode, func(w http.ResponseWriter, r *http.Request) error { return serveAddNode(s, w, r) })
	route(api.RouteGetBalance, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.balancer.Balance(r.Context()))
	})
	route(api.RoutePlanBalance, func(w http.ResponseWriter, r *http.Request) error {
		var rate *int64
		if text := r.URL.Query().Get("bytesPerSecond"); text != "" {
			asked, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return api.Refuse(api.ErrBadRequest, "bytesPerSecond %q: want a whole number", text)
			}
			rate = &asked
		}
		return reply(w)(s.balancer.Plan(r.Context(), rate))
	})
	route(api.RouteStartBalance, func(w http.ResponseWriter, r *http.Request) error {
		var request api.BalanceRequest
		if err := readBody(r, &request); err != nil {
			return err
		}
		return reply(w)(s.balancer.StartBalance(r.Context(), request))
	})
	route(api.RoutePauseBalance, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.balancer.PauseBalance(r.Context()))
	})
	route(api.RouteResumeBalance, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.balancer.ResumeBalance(r.Context()))
	})
	route(api.RouteCancelBalance, func(w http.ResponseWriter, r *http.Request) error {
		return reply(w)(s.balancer.CancelBalance(r.Context()))
	})
}

// serveAddNode makes a node a member and, if that is asked for, begins a balance.
func serveAddNode(s *Server, w http.ResponseWriter, r *http.Request) error {
	var request api.AddRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	id, ctx := block.NodeID(r.PathValue("id")), r.Context()
	isBalanced := request.Use == api.UseBalance
	switch {
	case !isBalanced && request.Use != "" && request.Use != api.UseCapacity:
		return api.Refuse(api.ErrBadRequest, "a new node cannot be used for %q; say %s or %s",
			request.Use, api.UseCapacity, api.UseBalance)
	case !isBalanced && request.BytesPerSecond != nil:
		return api.Refuse(api.ErrBadRequest, "a rate is that of the balance; say use %s too", api.UseBalance)
	case isBalanced && request.Spare:
		return api.Refuse(api.ErrBadRequest, "node %s is to be a spare, which takes no blocks of others; leave out either that or use %s",
			id, api.UseBalance)
	case request.BytesPerSecond != nil && *request.BytesPerSecond < 0:
		return api.Refuse(api.ErrBadRequest, "a rate of %d bytes per second; give a positive one, or 0 for no limit",
			*request.BytesPerSecond)
	}
	added, err := member.AddNode(ctx, s.members, id, request)
	if err != nil {
		return err
	}
	var answer api.AddedNode
	if request.DryRun {
		if isBalanced {
			plan, err := s.balancer.Plan(ctx, request.BytesPerSecond, added)
			if err != nil {
				return err
			}
			answer.Plan = &plan
		}
		return reply(w)(answer, nil)
	}
	if isBalanced {
		balance, err := s.balancer.StartBalance(ctx, api.BalanceRequest{BytesPerSecond: request.BytesPerSecond})
		if err != nil {
			return api.Refuse(api.ErrUnknownOutcome,
				"node %s was added, and it is not known whether the balance began; run `restripe node balance`: %w", id, err)
		}
		answer.Balance = &balance
	}
	node, err := s.members.Node(ctx, id)
	if err != nil {
		return err
	}
	answer.Node = &node
	return reply(w)(answer, nil)
}

// serveNodes lists the members, and the balance under way.
func serveNodes(s *Server, w http.ResponseWriter, r *http.Request) error {
	list, err := s.members.Nodes(r.Context())
	if err != nil {
		return err
	}
	balance, err := s.balancer.Balance(r.Context())
	if err != nil {
		return err
	}
	if balance.IsUnderWay() {
		list.Balance = &balance
	}
	return reply(w)(list, nil)
}

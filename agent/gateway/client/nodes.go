package client

import (
	"context"
	"errors"
	"net/http"

	"github.com/restripe/restripe/agent/gateway/api"
)

// nodes asks for the members of the cluster and declares what becomes of them.
type nodes struct{ *transport }

// Nodes returns the members of the cluster and what lies on them.
func (c *nodes) Nodes(ctx context.Context) (list api.NodeList, err error) {
	return list, c.call(ctx, api.RouteListNodes, nil, nil, &list)
}

// Node returns one member. ErrNotFound if there is none of that name.
func (c *nodes) Node(ctx context.Context, id string) (node api.NodeInfo, err error) {
	return node, c.call(ctx, api.RouteGetNode.With(id), nil, nil, &node)
}

// DrainNode has every block of a node moved to other nodes, or changes how that is done.
func (c *nodes) DrainNode(ctx context.Context, id string, request api.DrainRequest) (node api.NodeInfo, err error) {
	return node, c.call(ctx, api.RouteDrainNode.With(id), nil, request, &node)
}

// UndrainNode ends a drain; what was moved stays where it is now.
func (c *nodes) UndrainNode(ctx context.Context, id string) (node api.NodeInfo, err error) {
	return node, c.call(ctx, api.RouteUndrainNode.With(id), nil, nil, &node)
}

// DownNode declares that a node is not expected back.
func (c *nodes) DownNode(ctx context.Context, id string) (node api.NodeInfo, err error) {
	return node, c.call(ctx, api.RouteDownNode.With(id), nil, nil, &node)
}

// UpNode takes every declaration about a node back.
func (c *nodes) UpNode(ctx context.Context, id string) (node api.NodeInfo, err error) {
	return node, c.call(ctx, api.RouteUpNode.With(id), nil, nil, &node)
}

// RemoveNode makes a node no member any more. ErrConflict while anything lies on it. That is looked for in the records of all
// groups: where it takes long, done is false, and the same call tells later what has come of it.
func (c *nodes) RemoveNode(ctx context.Context, id string) (done bool, err error) {
	reply, err := c.send(ctx, request{route: api.RouteRemoveNode.With(id), header: jsonHeader()})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, reply.Body.Close()) }()
	return reply.StatusCode != http.StatusAccepted, decode(reply, nil)
}

// ReplaceNode has a node come back elsewhere, or another take its place.
func (c *nodes) ReplaceNode(ctx context.Context, id string, request api.ReplaceRequest) (node api.NodeInfo, err error) {
	return node, c.call(ctx, api.RouteReplaceNode.With(id), nil, request, &node)
}

// PlaceNode changes the failure domain of a node, and whether it is a spare.
func (c *nodes) PlaceNode(ctx context.Context, id string, request api.PlaceRequest) (node api.NodeInfo, err error) {
	return node, c.call(ctx, api.RoutePlaceNode.With(id), nil, request, &node)
}

// SetPatience changes how patient the cluster is with nodes that do not answer.
func (c *nodes) SetPatience(ctx context.Context, patience api.Patience) (now api.Patience, err error) {
	return now, c.call(ctx, api.RoutePutPatience, nil, patience, &now)
}

package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/restripe/restripe/agent/gateway"
)

// Nodes returns the members of the cluster and what lies on them.
func (c *Client) Nodes(ctx context.Context) (list gateway.NodeList, err error) {
	return list, c.call(ctx, http.MethodGet, "/v1/nodes", nil, nil, &list)
}

// Node returns one member. ErrNotFound if there is none of that name.
func (c *Client) Node(ctx context.Context, id string) (node gateway.NodeInfo, err error) {
	return node, c.call(ctx, http.MethodGet, nodePath(id, ""), nil, nil, &node)
}

// DrainNode has every block of a node moved to other nodes, or changes how that is done.
func (c *Client) DrainNode(ctx context.Context, id string, request gateway.DrainRequest) (node gateway.NodeInfo, err error) {
	return node, c.call(ctx, http.MethodPost, nodePath(id, "/drain"), nil, request, &node)
}

// UndrainNode ends a drain; what was moved stays where it is now.
func (c *Client) UndrainNode(ctx context.Context, id string) (node gateway.NodeInfo, err error) {
	return node, c.call(ctx, http.MethodPost, nodePath(id, "/undrain"), nil, nil, &node)
}

// DownNode declares that a node is not expected back.
func (c *Client) DownNode(ctx context.Context, id string) (node gateway.NodeInfo, err error) {
	return node, c.call(ctx, http.MethodPost, nodePath(id, "/down"), nil, nil, &node)
}

// UpNode takes every declaration about a node back.
func (c *Client) UpNode(ctx context.Context, id string) (node gateway.NodeInfo, err error) {
	return node, c.call(ctx, http.MethodPost, nodePath(id, "/up"), nil, nil, &node)
}

// RemoveNode makes a node no member any more. ErrConflict while anything lies on it.
func (c *Client) RemoveNode(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodPost, nodePath(id, "/remove"), nil, nil, nil)
}

// ReplaceNode has a node come back elsewhere, or another take its place.
func (c *Client) ReplaceNode(ctx context.Context, id string, request gateway.ReplaceRequest) (node gateway.NodeInfo, err error) {
	return node, c.call(ctx, http.MethodPost, nodePath(id, "/replace"), nil, request, &node)
}

// PlaceNode changes the failure domain of a node, and whether it is a spare.
func (c *Client) PlaceNode(ctx context.Context, id string, request gateway.PlaceRequest) (node gateway.NodeInfo, err error) {
	return node, c.call(ctx, http.MethodPost, nodePath(id, "/place"), nil, request, &node)
}

// SetPatience changes how patient the cluster is with nodes that do not answer.
func (c *Client) SetPatience(ctx context.Context, patience gateway.Patience) (now gateway.Patience, err error) {
	return now, c.call(ctx, http.MethodPut, "/v1/patience", nil, patience, &now)
}

func nodePath(id, action string) string { return "/v1/nodes/" + url.PathEscape(id) + action }

package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"

	"github.com/restripe/restripe/agent/gateway"
)

// Status returns the cluster at a glance.
func (c *Client) Status(ctx context.Context) (status gateway.Status, err error) {
	return status, c.call(ctx, http.MethodGet, "/v1/status", nil, nil, &status)
}

// Doctor returns what the gateway finds right and wrong.
func (c *Client) Doctor(ctx context.Context) (findings []gateway.Finding, err error) {
	return findings, c.call(ctx, http.MethodGet, "/v1/doctor", nil, nil, &findings)
}

// Sweep settles expired attempts and deletes dead and orphaned blocks.
func (c *Client) Sweep(ctx context.Context) (result gateway.SweepResult, err error) {
	return result, c.call(ctx, http.MethodPost, "/v1/sweep", nil, nil, &result)
}

// Repair rebuilds the slots that are missing, and those that a read found corrupt.
func (c *Client) Repair(ctx context.Context) (result gateway.RepairResult, err error) {
	return result, c.call(ctx, http.MethodPost, "/v1/repair", nil, nil, &result)
}

// RepairDeep is Repair that has every block read and checked whole first.
func (c *Client) RepairDeep(ctx context.Context) (result gateway.RepairResult, err error) {
	return result, c.call(ctx, http.MethodPost, "/v1/repair", url.Values{"deep": {"true"}}, nil, &result)
}

// Class says how the objects of a class are kept, as its class file says.
type Class struct {
	Name       string   `json:"name"`
	Ladder     string   `json:"ladder"`
	Default    string   `json:"default"`
	Mode       string   `json:"mode"`
	Prefixes   []string `json:"prefixes"`
	PackBelow  int64    `json:"packBelow"`  // bytes; objects smaller than this share groups
	PackDelay  string   `json:"packDelay"`  // how long a small object waits for company
	GroupBytes int64    `json:"groupBytes"` // user bytes per group of a large object
	Nodes      int      `json:"nodes"`      // distinct nodes a group lies on
}

// Classes returns the classes the gateway was started with.
func (c *Client) Classes(ctx context.Context) (classes []Class, err error) {
	return classes, c.call(ctx, http.MethodGet, "/v1/classes", nil, nil, &classes)
}

// Healthy reports whether the gateway answers.
func (c *Client) Healthy(ctx context.Context) (err error) {
	reply, err := c.send(ctx, request{method: http.MethodGet, path: "/healthz"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reply.Body.Close()) }()
	_, err = io.Copy(io.Discard, reply.Body)
	return err
}

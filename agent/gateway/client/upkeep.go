package client

import (
	"context"
	"errors"
	"io"

	"github.com/restripe/restripe/agent/gateway/api"
)

// Status returns the cluster at a glance.
func (c *Client) Status(ctx context.Context) (status api.Status, err error) {
	return status, c.call(ctx, api.RouteStatus, nil, nil, &status)
}

// Doctor returns what the gateway finds right and wrong.
func (c *Client) Doctor(ctx context.Context) (findings []api.Finding, err error) {
	return findings, c.call(ctx, api.RouteDoctor, nil, nil, &findings)
}

// Sweep settles expired attempts and deletes dead and orphaned blocks.
func (c *Client) Sweep(ctx context.Context) (result api.SweepResult, err error) {
	return result, c.call(ctx, api.RouteSweep, nil, nil, &result)
}

// Healthy reports whether the gateway answers.
func (c *Client) Healthy(ctx context.Context) (err error) {
	reply, err := c.send(ctx, request{route: api.RouteHealthy})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reply.Body.Close()) }()
	_, err = io.Copy(io.Discard, reply.Body)
	return err
}

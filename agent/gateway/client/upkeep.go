package client

import (
	"context"
	"errors"
	"io"
	"net/http"

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

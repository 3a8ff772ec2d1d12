package client

import (
	"context"
	"net/http"

	"github.com/restripe/restripe/agent/gateway"
)

// Scrub returns the scrub of the cluster as it is now.
func (c *Client) Scrub(ctx context.Context) (scrub gateway.Scrub, err error) {
	return scrub, c.call(ctx, http.MethodGet, "/v1/scrub", nil, nil, &scrub)
}

// StartScrub begins a cycle over all groups, in place of one that is under way.
func (c *Client) StartScrub(ctx context.Context, r gateway.ScrubRequest) (scrub gateway.Scrub, err error) {
	return scrub, c.call(ctx, http.MethodPost, "/v1/scrub", nil, r, &scrub)
}

// PauseScrub stops the scrub until it is resumed.
func (c *Client) PauseScrub(ctx context.Context) (scrub gateway.Scrub, err error) {
	return scrub, c.call(ctx, http.MethodPost, "/v1/scrub/pause", nil, nil, &scrub)
}

// ResumeScrub goes on where the scrub was paused.
func (c *Client) ResumeScrub(ctx context.Context) (scrub gateway.Scrub, err error) {
	return scrub, c.call(ctx, http.MethodPost, "/v1/scrub/resume", nil, nil, &scrub)
}

// ScrubFindings returns what scrubs found, newest first.
func (c *Client) ScrubFindings(ctx context.Context) (findings []gateway.ScrubFinding, err error) {
	return findings, c.call(ctx, http.MethodGet, "/v1/scrub/findings", nil, nil, &findings)
}

// AcceptCatalog says that a rebuilt catalog has all that is wanted.
func (c *Client) AcceptCatalog(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/v1/catalog/accept", nil, nil, nil)
}

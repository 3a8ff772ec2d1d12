package client

import (
	"context"

	"github.com/restripe/restripe/agent/gateway/api"
)

// scrubs starts and steers the scrub of the cluster.
type scrubs struct{ *transport }

// Scrub returns the scrub of the cluster as it is now.
func (c *scrubs) Scrub(ctx context.Context) (scrub api.Scrub, err error) {
	return scrub, c.call(ctx, api.RouteGetScrub, nil, nil, &scrub)
}

// StartScrub begins a cycle over all groups, in place of one that is under way.
func (c *scrubs) StartScrub(ctx context.Context, r api.ScrubRequest) (scrub api.Scrub, err error) {
	return scrub, c.call(ctx, api.RouteStartScrub, nil, r, &scrub)
}

// PauseScrub stops the scrub until it is resumed.
func (c *scrubs) PauseScrub(ctx context.Context) (scrub api.Scrub, err error) {
	return scrub, c.call(ctx, api.RoutePauseScrub, nil, nil, &scrub)
}

// ResumeScrub goes on where the scrub was paused.
func (c *scrubs) ResumeScrub(ctx context.Context) (scrub api.Scrub, err error) {
	return scrub, c.call(ctx, api.RouteResumeScrub, nil, nil, &scrub)
}

// ScrubFindings returns what scrubs found, newest first.
func (c *scrubs) ScrubFindings(ctx context.Context) (findings []api.ScrubFinding, err error) {
	return findings, c.call(ctx, api.RouteListScrubFindings, nil, nil, &findings)
}

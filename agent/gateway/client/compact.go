package client

import (
	"context"

	"github.com/restripe/restripe/agent/gateway/api"
)

// compactions starts and steers the compaction of the cluster.
type compactions struct{ *transport }

// Compaction returns the compaction of the cluster as it is now.
func (c *compactions) Compaction(ctx context.Context) (compaction api.Compaction, err error) {
	return compaction, c.call(ctx, api.RouteGetCompaction, nil, nil, &compaction)
}

// StartCompaction begins a pass, in place of one that is under way.
func (c *compactions) StartCompaction(ctx context.Context, r api.CompactionRequest) (compaction api.Compaction, err error) {
	return compaction, c.call(ctx, api.RouteStartCompaction, nil, r, &compaction)
}

// PauseCompaction stops the compaction until it is resumed.
func (c *compactions) PauseCompaction(ctx context.Context) (compaction api.Compaction, err error) {
	return compaction, c.call(ctx, api.RoutePauseCompaction, nil, nil, &compaction)
}

// ResumeCompaction goes on where the compaction was paused.
func (c *compactions) ResumeCompaction(ctx context.Context) (compaction api.Compaction, err error) {
	return compaction, c.call(ctx, api.RouteResumeCompaction, nil, nil, &compaction)
}

package console

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/console/contract"
)

// compactions shows the compaction of backends and steers it.
type compactions struct {
	*sources
	*auditing
}

// compactionOf asks for the compaction; it is nil where the gateway is of a release that has none.
func compactionOf(c *client.Client, ctx context.Context) (*api.Compaction, error) {
	compaction, err := c.Compaction(ctx)
	if errors.Is(err, api.ErrNotFound) {
		return nil, nil
	}
	return &compaction, err
}

// GetCompactions says how far compactions are, and how much is dead.
func (s *compactions) GetCompactions(_ context.Context, request *consolev1.GetCompactionsRequest) (*consolev1.CompactionReport, error) {
	report := &consolev1.CompactionReport{}
	for _, seen := range s.backends.all(request.Backend) {
		compaction, known, fresh := seen.compaction.Get()
		report.Sources = append(report.Sources, sourceView("backend "+seen.name, fresh))
		if known && compaction != nil {
			report.Compactions = append(report.Compactions, contract.Compaction(seen.name, compaction))
		}
	}
	return report, nil
}

// StartCompaction begins a pass now.
func (s *compactions) StartCompaction(ctx context.Context, request *consolev1.StartCompactionRequest) (*consolev1.CompactionChange, error) {
	if request.BytesPerSecond < 0 {
		return nil, refuse(connect.CodeInvalidArgument, "a limit of %d bytes per second; give 0 or more, 0 for none", request.BytesPerSecond)
	}
	return s.changeCompaction(ctx, request.Backend, "has begun", func(c *client.Client, ctx context.Context) (api.Compaction, error) {
		return c.StartCompaction(ctx, api.CompactionRequest{BytesPerSecond: request.BytesPerSecond, Everything: request.Everything})
	})
}

// PauseCompaction stops a compaction until it is resumed.
func (s *compactions) PauseCompaction(ctx context.Context, request *consolev1.PauseCompactionRequest) (*consolev1.CompactionChange, error) {
	said := "is paused: none begins by itself meanwhile"
	return s.changeCompaction(ctx, request.Backend, said, (*client.Client).PauseCompaction)
}

// ResumeCompaction goes on with a paused compaction.
func (s *compactions) ResumeCompaction(
	ctx context.Context, request *consolev1.ResumeCompactionRequest,
) (*consolev1.CompactionChange, error) {
	return s.changeCompaction(ctx, request.Backend, "goes on", (*client.Client).ResumeCompaction)
}

// changeCompaction does a change of the compaction of a backend and records it.
func (s *compactions) changeCompaction(
	ctx context.Context, backend, said string, call func(*client.Client, context.Context) (api.Compaction, error),
) (*consolev1.CompactionChange, error) {
	seen, err := s.backendNamed(backend)
	if err != nil {
		return nil, err
	}
	after, err := changeAt(ctx, s.auditing, seen, "compaction", (*client.Client).Compaction, call)
	if err != nil {
		return nil, err
	}
	seen.compaction.Set(s.now(), &after, nil)
	said = "the compaction of " + seen.name + " " + said
	return &consolev1.CompactionChange{Compaction: contract.Compaction(seen.name, &after), Said: said}, nil
}

package console

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/gateways"
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
			report.Compactions = append(report.Compactions, compactionView(seen.name, compaction))
		}
	}
	return report, nil
}

// StartCompaction begins a pass now.
func (s *compactions) StartCompaction(ctx context.Context, request *consolev1.StartCompactionRequest) (*consolev1.CompactionChange, error) {
	if request.BytesPerSecond < 0 {
		return nil, refuse(connect.CodeInvalidArgument, "a limit of %d bytes per second; give 0 or more, 0 for none", request.BytesPerSecond)
	}
	return s.changeCompaction(ctx, request.Backend, "has begun", func(ctx context.Context, c *client.Client) (api.Compaction, error) {
		return c.StartCompaction(ctx, api.CompactionRequest{BytesPerSecond: request.BytesPerSecond, Everything: request.Everything})
	})
}

// PauseCompaction stops a compaction until it is resumed.
func (s *compactions) PauseCompaction(ctx context.Context, request *consolev1.PauseCompactionRequest) (*consolev1.CompactionChange, error) {
	said := "is paused: none begins by itself meanwhile"
	return s.changeCompaction(ctx, request.Backend, said, func(ctx context.Context, c *client.Client) (api.Compaction, error) {
		return c.PauseCompaction(ctx)
	})
}

// ResumeCompaction goes on with a paused compaction.
func (s *compactions) ResumeCompaction(
	ctx context.Context, request *consolev1.ResumeCompactionRequest,
) (*consolev1.CompactionChange, error) {
	return s.changeCompaction(ctx, request.Backend, "goes on", func(ctx context.Context, c *client.Client) (api.Compaction, error) {
		return c.ResumeCompaction(ctx)
	})
}

// changeCompaction does a change of the compaction of a backend and records it.
func (s *compactions) changeCompaction(
	ctx context.Context, backend, said string, call func(context.Context, *client.Client) (api.Compaction, error),
) (*consolev1.CompactionChange, error) {
	seen, err := s.backendNamed(backend)
	if err != nil {
		return nil, err
	}
	before, err := gateways.Ask(ctx, seen.pool, quickPatience, func(ctx context.Context, c *client.Client) (api.Compaction, error) {
		return c.Compaction(ctx)
	})
	if err != nil {
		return nil, refusalOf(err)
	}
	var after api.Compaction
	err = s.act(ctx, subject{object: "compaction/" + seen.name, before: before}, func(ctx context.Context) (any, error) {
		after, err = gateways.Ask(ctx, seen.pool, changePatience, call)
		if err != nil {
			return nil, err
		}
		seen.compaction.Set(s.now(), &after, nil)
		return after, nil
	})
	if err != nil {
		return nil, err
	}
	said = "the compaction of " + seen.name + " " + said
	return &consolev1.CompactionChange{Compaction: compactionView(seen.name, &after), Said: said}, nil
}

func compactionView(backend string, compaction *api.Compaction) *consolev1.Compaction {
	view := &consolev1.Compaction{
		Backend: backend, State: string(compaction.State), Pass: compaction.Pass, Background: compaction.Background,
		Everything: compaction.Everything, BytesPerSecond: compaction.BytesPerSecond,
		GroupsTotal: compaction.GroupsTotal, GroupsDone: compaction.GroupsDone, ObjectsMoved: compaction.ObjectsMoved,
		ObjectsSpliced: compaction.ObjectsSpliced,
		BytesTotal:     compaction.BytesTotal, BytesDone: compaction.BytesDone, BytesFreed: compaction.BytesFreed,
		Failed: compaction.Failed, Error: compaction.Error, Started: stamp(compaction.Started),
	}
	if compaction.Finished != nil {
		view.Finished = stamp(*compaction.Finished)
	}
	if compaction.State == api.CompactionRunning {
		view.EtaSeconds = knownSeconds(compaction.ETASeconds)
	}
	if compaction.Looked != nil {
		view.Looked = stamp(*compaction.Looked)
	}
	for i := range compaction.Classes {
		of := &compaction.Classes[i]
		view.Classes = append(view.Classes, &consolev1.DeadSpace{
			Class: of.Name, Groups: of.Groups, Bytes: of.Bytes, DeadBytes: of.Dead, DeadAtMostPercent: int32(of.DeadAtMostPercent),
		})
	}
	return view
}

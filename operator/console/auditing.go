package console

import (
	"bytes"
	"cmp"
	"context"

	"connectrpc.com/connect"

	"github.com/restripe/restripe/agent/audit"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/console/contract"
)

// How many actions a page of the audit log has.
const (
	auditDefault = 100
	auditMost    = 1000
)

func auditFilter(f *consolev1.AuditFilter) audit.Filter {
	return audit.Filter{User: f.GetUser(), Object: f.GetObject(), Verb: f.GetVerb(), Since: timeOf(f.GetSince()), Until: timeOf(f.GetUntil())}
}

// ListAudit returns one page of what people did, newest first.
func (s *auditing) ListAudit(_ context.Context, request *consolev1.ListAuditRequest) (*consolev1.AuditList, error) {
	limit := int(min(cmp.Or(max(0, request.Limit), auditDefault), auditMost))
	actions, next, err := s.audit.List(auditFilter(request.Filter), request.Before, limit)
	if err != nil {
		return nil, refuse(connect.CodeUnavailable, "%w", err)
	}
	list := &consolev1.AuditList{Next: next}
	for i := range actions {
		a := &actions[i]
		list.Actions = append(list.Actions, &consolev1.AuditAction{
			Sequence: a.Sequence, Begun: contract.Time(a.Begun), Ended: contract.Time(a.Ended), User: a.User, Method: a.Method,
			From: a.From, Verb: a.Verb, Action: a.Action, Object: a.Object,
			Before: string(a.Before), After: string(a.After), PlanHash: a.PlanHash, Result: string(a.Result), Error: a.Error,
		})
	}
	return list, nil
}

// chunkBytes is how much of an export one message has.
const chunkBytes = 256 << 10

// chunks sends what is written to it.
type chunks struct {
	buffer bytes.Buffer
	send   func(*consolev1.ExportAuditResponse) error
}

func (c *chunks) Write(text []byte) (int, error) {
	n, err := c.buffer.Write(text)
	if err == nil && c.buffer.Len() >= chunkBytes {
		err = c.flush()
	}
	return n, err
}

func (c *chunks) flush() error {
	if c.buffer.Len() == 0 {
		return nil
	}
	err := c.send(&consolev1.ExportAuditResponse{Chunk: bytes.Clone(c.buffer.Bytes())})
	c.buffer.Reset()
	return err
}

// ExportAudit sends every action that matches, oldest first.
func (s *auditing) ExportAudit(ctx context.Context, request *consolev1.ExportAuditRequest, stream *connect.ServerStream[consolev1.ExportAuditResponse]) error {
	out := &chunks{send: func(message *consolev1.ExportAuditResponse) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return stream.Send(message)
	}}
	write := s.audit.WriteJSONLines
	if request.Format == consolev1.ExportFormat_EXPORT_FORMAT_CSV {
		write = s.audit.WriteCSV
	}
	if err := write(out, auditFilter(request.Filter)); err != nil {
		return refusalOf(err)
	}
	return out.flush()
}

// VerifyAudit reads the whole audit log and says whether every record is there and as it was written.
func (s *auditing) VerifyAudit(_ context.Context, request *consolev1.VerifyAuditRequest) (*consolev1.VerifyAuditResponse, error) {
	report, err := s.audit.Verify(audit.Head{Sequence: request.Sequence, Hash: request.Hash})
	if err != nil {
		return nil, refuse(connect.CodeUnavailable, "%w", err)
	}
	return &consolev1.VerifyAuditResponse{
		Intact: report.Problem == "", Problem: report.Problem, First: report.First, Sequence: report.Head.Sequence, Hash: report.Head.Hash, Records: report.Records,
	}, nil
}

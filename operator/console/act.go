package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"connectrpc.com/connect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/audit"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/gateways"
)

// actPatience bounds a change. It goes on when its caller leaves: what has begun is to have an end.
const actPatience = 30 * time.Second

// subject is what is changed.
type subject struct {
	object   string // kind/name
	before   any    // nil where there is nothing before
	planHash string
}

// auditing lets callers do what they have the right to, and records what they change.
type auditing struct {
	authority access.Authority
	audit     *audit.Log
	metrics   *metrics
	log       *slog.Logger
}

// act does a change and records it: before it is done, that it will be, and after it, how it ended. What cannot be
// recorded is not done. do returns what is there afterwards, nil for nothing; beside an error that does not count.
func (s *auditing) act(ctx context.Context, what subject, do func(ctx context.Context) (after any, err error)) error {
	who := callerOf(ctx)
	who.acted = true
	before, err := jsonOf(what.before)
	if err != nil {
		return err
	}
	sequence, err := s.audit.Begin(audit.Entry{
		User: who.user.Name, Method: string(who.user.By), From: who.from, Verb: string(who.rule.right.Verb), Action: who.action(),
		Object: what.object, Before: before, PlanHash: what.planHash,
	})
	if err != nil {
		s.metrics.auditFailures.Inc()
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("nothing was changed: what is not in the audit log is not done, and it cannot be written: %w", err))
	}
	within, stop := context.WithTimeout(context.WithoutCancel(ctx), actPatience)
	defer stop()
	after, err := do(within)
	outcome := audit.Outcome{Result: audit.ResultDone}
	if err != nil {
		err = refusalOf(err)
		outcome = audit.Outcome{Result: resultOf(err), Error: oneLine(err)}
	} else if outcome.After, err = jsonOf(after); err != nil {
		outcome.Error, err = oneLine(err), nil // it is done, and only cannot be written down
	}
	if unrecorded := s.audit.End(sequence, outcome); unrecorded != nil {
		s.metrics.auditFailures.Inc()
		s.log.Error("an action was recorded without its end", "action", who.action(), "object", what.object, "cause", unrecorded)
		if err == nil {
			err = connect.NewError(connect.CodeUnavailable, fmt.Errorf("%s of %s was done, but the audit log has no end of it: %w", who.action(), what.object, unrecorded))
		}
	}
	return err
}

// changeAt asks the gateways of a backend how something is, changes it and records both. It returns how it is then.
func changeAt[T any](
	ctx context.Context, s *auditing, seen *seenBackend, kind string, ask, change func(*client.Client, context.Context) (T, error),
) (after T, err error) {
	before, err := gateways.Ask(ctx, seen.pool, quickPatience, func(ctx context.Context, c *client.Client) (T, error) {
		return ask(c, ctx)
	})
	if err != nil {
		return after, refusalOf(err)
	}
	err = s.act(ctx, subject{object: kind + "/" + seen.name, before: before}, func(ctx context.Context) (any, error) {
		after, err = gateways.Ask(ctx, seen.pool, changePatience, func(ctx context.Context, c *client.Client) (T, error) {
			return change(c, ctx)
		})
		return after, err
	})
	return after, err
}

func jsonOf(value any) (json.RawMessage, error) {
	if value == nil {
		return nil, nil
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding what is to be recorded: %w", err)
	}
	return text, nil
}

// resultOf tells what was surely not done from what may have been.
func resultOf(err error) audit.Result {
	switch connect.CodeOf(err) {
	case connect.CodeInvalidArgument, connect.CodeNotFound, connect.CodeAlreadyExists, connect.CodePermissionDenied,
		connect.CodeFailedPrecondition, connect.CodeAborted, connect.CodeUnauthenticated, connect.CodeResourceExhausted:
		return audit.ResultRefused
	}
	return audit.ResultFailed
}

// refuse makes an error of a class out of words.
func refuse(code connect.Code, format string, values ...any) error {
	return connect.NewError(code, fmt.Errorf(format, values...))
}

// refusalOf gives an error of the API server or of a gateway its class.
func refusalOf(err error) error {
	var classed *connect.Error
	if err == nil || errors.As(err, &classed) {
		return err
	}
	for _, one := range []struct {
		is   error
		code connect.Code
	}{
		{api.ErrNotFound, connect.CodeNotFound}, {api.ErrConflict, connect.CodeFailedPrecondition}, {api.ErrBadRequest, connect.CodeInvalidArgument},
		{api.ErrTooFewNodes, connect.CodeFailedPrecondition}, {api.ErrFull, connect.CodeResourceExhausted}, {api.ErrDataLoss, connect.CodeDataLoss},
		{api.ErrUnknownOutcome, connect.CodeUnknown}, {api.ErrUnavailable, connect.CodeUnavailable}, {client.ErrUnreachable, connect.CodeUnavailable},
		{context.Canceled, connect.CodeCanceled}, {context.DeadlineExceeded, connect.CodeDeadlineExceeded},
	} {
		if errors.Is(err, one.is) {
			return connect.NewError(one.code, err)
		}
	}
	var transport *url.Error
	switch {
	case apierrors.IsNotFound(err):
		return connect.NewError(connect.CodeNotFound, err)
	case apierrors.IsAlreadyExists(err):
		return connect.NewError(connect.CodeAlreadyExists, err)
	case apierrors.IsConflict(err):
		return connect.NewError(connect.CodeAborted, err)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return connect.NewError(connect.CodeInvalidArgument, err)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return connect.NewError(connect.CodePermissionDenied, fmt.Errorf("the API server does not let the console itself do this: %w", err))
	case errors.As(err, &transport), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), apierrors.IsServiceUnavailable(err), apierrors.IsTooManyRequests(err):
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("the API server does not answer: %w", err))
	}
	return connect.NewError(connect.CodeUnknown, err)
}

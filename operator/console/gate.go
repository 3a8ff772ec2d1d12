package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"runtime/debug"
	"time"

	"connectrpc.com/connect"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/audit"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
)

// caller is who makes a call, and which.
type caller struct {
	user      *access.User
	from      string
	header    http.Header
	procedure string
	rule      rule
	acted     bool // the call passed auditing.act
}

type callerKey struct{}

// callerOf returns who makes the call of a context. Every call has passed the gate.
func callerOf(ctx context.Context) *caller {
	who, is := ctx.Value(callerKey{}).(*caller)
	if !is {
		panic("a call did not pass the gate") // invariant: the gate wraps every handler
	}
	return who
}

// action is the name of a call.
func (c *caller) action() string { return path.Base(c.procedure) }

// gate is the interceptor that every call passes: it finds out who calls, and whether they may.
type gate struct{ server *Server }

func (g *gate) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (response connect.AnyResponse, err error) {
		done := g.server.metrics.begin(request.Spec().Procedure)
		defer func() { done(err) }()
		defer g.recover(request.Spec().Procedure, &err)
		ctx, who, err := g.admit(ctx, request.Spec().Procedure, request.Peer().Addr, request.Header())
		if err != nil {
			return nil, err
		}
		response, err = next(ctx, request)
		if err == nil && who.rule.changes && !who.acted && !answersOnly(response) {
			panic(who.action() + " changed something past the audit log") // invariant: changes pass auditing.act
		}
		return response, err
	}
}

func (g *gate) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, stream connect.StreamingHandlerConn) (err error) {
		done := g.server.metrics.begin(stream.Spec().Procedure)
		defer func() { done(err) }()
		defer g.recover(stream.Spec().Procedure, &err)
		ctx, _, err = g.admit(ctx, stream.Spec().Procedure, stream.Peer().Addr, stream.RequestHeader())
		if err != nil {
			return err
		}
		within, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		go g.keepChecking(within, stop)
		err = next(within, stream)
		if ended := context.Cause(within); ended != nil && ctx.Err() == nil {
			return ended
		}
		return err
	}
}

// recheck is how often it is looked whether who watches still may.
const recheck = 30 * time.Second

// keepChecking ends a watch when the console stops, and when who watches may no longer.
func (g *gate) keepChecking(ctx context.Context, stop context.CancelCauseFunc) {
	ticker := time.NewTicker(g.server.options.Intervals.recheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.server.stopping:
			stop(connect.NewError(connect.CodeUnavailable, errors.New("the console is being stopped; begin the watch anew")))
			return
		case <-ticker.C:
			who := callerOf(ctx)
			_, _, err := g.admit(ctx, who.procedure, who.from, who.header)
			if code := connect.CodeOf(err); err != nil && code != connect.CodeUnavailable {
				stop(err)
				return
			}
		}
	}
}

func (g *gate) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// recover makes a broken invariant an error of one call.
func (g *gate) recover(procedure string, err *error) {
	if broken := recover(); broken != nil {
		g.server.log.Error("a call broke an invariant", "call", procedure, "what", broken, "stack", string(debug.Stack()))
		*err = connect.NewError(connect.CodeInternal, errors.New("the console has a mistake, which is in its log; nothing more was done"))
	}
}

// admit returns the context of a call that may be made.
func (g *gate) admit(ctx context.Context, procedure, from string, header http.Header) (context.Context, *caller, error) {
	rule, known := rules[procedure]
	if !known {
		return nil, nil, connect.NewError(connect.CodePermissionDenied, fmt.Errorf("no verb is laid down for %s, so that nobody may call it", path.Base(procedure)))
	}
	user, err := g.server.authority.Identify(ctx, header)
	if err != nil {
		return nil, nil, connect.NewError(codeOfAccess(err), err)
	}
	who := &caller{user: user, from: from, header: header, procedure: procedure, rule: rule}
	ctx = context.WithValue(ctx, callerKey{}, who)
	if rule.right == (access.Right{}) {
		return ctx, who, nil
	}
	if err := g.server.require(ctx, rule.right); err != nil {
		return nil, nil, err
	}
	return ctx, who, nil
}

// require refuses a caller who has not the right, and records that they tried where it would have changed something.
func (s *auditing) require(ctx context.Context, right access.Right) error {
	who := callerOf(ctx)
	may, err := s.authority.May(ctx, who.user, right)
	if err != nil {
		return connect.NewError(codeOfAccess(err), err)
	}
	if may {
		return nil
	}
	refusal := connect.NewError(connect.CodePermissionDenied, fmt.Errorf("%s may not do this: the verb %s on %s is missing; who looks after this console can grant it",
		who.user.Name, right.Verb, right.Resource))
	if detail, err := connect.NewErrorDetail(&consolev1.MissingVerb{User: who.user.Name, Verb: string(right.Verb)}); err == nil {
		refusal.AddDetail(detail)
	}
	if who.rule.changes {
		entry := audit.Entry{
			User: who.user.Name, Method: string(who.user.By), From: who.from, Verb: string(right.Verb), Action: who.action(),
		}
		if sequence, err := s.audit.Begin(entry); err == nil {
			err = s.audit.End(sequence, audit.Outcome{Result: audit.ResultRefused, Error: refusal.Message()})
			s.note(err)
		} else {
			s.note(err)
		}
	}
	return refusal
}

// note logs what went wrong beside a call that is refused anyway.
func (s *auditing) note(err error) {
	if err != nil {
		s.log.Error("writing the audit log", "cause", err)
	}
}

func codeOfAccess(err error) connect.Code {
	if errors.Is(err, access.ErrUnknown) {
		return connect.CodeUnauthenticated
	}
	return connect.CodeUnavailable
}

// answersOnly reports whether the answer to a change says that nothing was changed: mistakes were found in what was to be
// declared.
func answersOnly(response connect.AnyResponse) bool {
	applied, is := response.Any().(*consolev1.ApplyPolicyResponse)
	return is && len(applied.Applied) == 0
}

package screen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"

	"connectrpc.com/connect"

	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
)

// failureText says what went wrong, where, and what to do.
func failureText(err error, address string) string {
	var refusal *connect.Error
	var transport *net.OpError
	var broken *url.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("no console answers at %s; start one with `restripe console`, or name another with --console", address)
	case errors.As(err, &transport), errors.As(err, &broken):
		return fmt.Sprintf("the console at %s cannot be reached: %s", address, plain(rootOf(err).Error()))
	case errors.Is(err, context.DeadlineExceeded), connect.CodeOf(err) == connect.CodeDeadlineExceeded:
		return fmt.Sprintf("the console at %s took more than %.0f s to answer; what was asked for may still happen", address, callPatience.Seconds())
	case !errors.As(err, &refusal):
		return plain(err.Error())
	}
	switch refusal.Code() {
	case connect.CodeUnauthenticated:
		return fmt.Sprintf("the console at %s does not know you: %s; give a token with --token-file or %s", address, plain(refusal.Message()), TokenVariable)
	case connect.CodePermissionDenied:
		if verb := missingVerb(refusal); verb != "" {
			return fmt.Sprintf("you lack the verb %s: %s", verb, plain(refusal.Message()))
		}
	case connect.CodeUnimplemented:
		return fmt.Sprintf("what answers at %s is no console that can do this: %s", address, plain(refusal.Message()))
	}
	return plain(refusal.Message())
}

// TokenVariable names the environment variable with the token for a console.
const TokenVariable = "RESTRIPE_TOKEN"

// missingVerb is the verb for want of which a call was refused.
func missingVerb(refusal *connect.Error) string {
	for _, detail := range refusal.Details() {
		if value, err := detail.Value(); err == nil {
			if missing, is := value.(*consolev1.MissingVerb); is {
				return plain(missing.Verb)
			}
		}
	}
	return ""
}

// rootOf is the innermost cause.
func rootOf(err error) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}

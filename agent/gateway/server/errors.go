package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/gateway/sweep"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// errRange is the ErrBadRequest that HTTP has a status of its own for.
var errRange = fmt.Errorf("%w: range not satisfiable", api.ErrBadRequest)

// errSlow ends a request whose body does not come.
var errSlow = errors.New("too slow")

// retryAfter is when clients that were refused because of others should try again, in seconds.
const retryAfter = "1"

// statusCancelled is what is noted of requests whose clients left.
const statusCancelled = 499

// statusOf maps an error to its HTTP status and the code clients can switch on.
func statusOf(err error) (status int, code api.Code) {
	switch {
	case errors.Is(err, api.ErrUnknownOutcome), errors.Is(err, catalog.ErrUnknown):
		return http.StatusInternalServerError, api.CodeUnknownOutcome
	case errors.Is(err, errRange):
		return http.StatusRequestedRangeNotSatisfiable, api.CodeBadRequest
	case errors.Is(err, api.ErrBadRequest):
		return http.StatusBadRequest, api.CodeBadRequest
	case errors.Is(err, api.ErrUnauthenticated):
		return http.StatusUnauthorized, api.CodeUnauthenticated
	case errors.Is(err, api.ErrForbidden):
		return http.StatusForbidden, api.CodeForbidden
	case errors.Is(err, api.ErrNotFound), errors.Is(err, catalog.ErrNoObject), errors.Is(err, catalog.ErrNoGroup):
		return http.StatusNotFound, api.CodeNotFound
	case errors.Is(err, api.ErrConflict), errors.Is(err, catalog.ErrStale),
		errors.Is(err, catalog.ErrAlarm), errors.Is(err, sweep.ErrBrake):
		return http.StatusPreconditionFailed, api.CodeConflict
	case errors.Is(err, api.ErrDataLoss):
		return http.StatusInternalServerError, api.CodeDataLoss
	case errors.Is(err, store.ErrFull):
		return http.StatusInsufficientStorage, api.CodeFull
	case errors.Is(err, api.ErrTooFewNodes):
		return http.StatusServiceUnavailable, api.CodeTooFewNodes
	case errors.Is(err, api.ErrBusy), errors.Is(err, wire.ErrBusy):
		return http.StatusServiceUnavailable, api.CodeBusy
	case errors.Is(err, api.ErrUnavailable), errors.Is(err, object.ErrClosed),
		errors.Is(err, catalog.ErrNotActive),
		errors.Is(err, catalog.ErrNewer),
		errors.Is(err, catalog.ErrFenced), errors.Is(err, catalog.ErrBehind), errors.Is(err, catalog.ErrClaimed),
		errors.Is(err, wire.ErrNotObeyed),
		errors.Is(err, wire.ErrUnreachable), errors.Is(err, store.ErrDown),
		errors.Is(err, store.ErrReadOnly), errors.Is(err, store.ErrAuth):
		return http.StatusServiceUnavailable, api.CodeUnavailable
	case errors.Is(err, errSlow):
		return http.StatusRequestTimeout, api.CodeTimeout
	case errors.Is(err, context.Canceled):
		return statusCancelled, api.CodeCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, api.CodeTimeout
	}
	return http.StatusInternalServerError, api.CodeInternal
}

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// Classes of refusals; use errors.Is. The text of a wrapped error says what, where and what to do.
var (
	ErrBadRequest  = errors.New("bad request")
	ErrNotFound    = errors.New("not found")
	ErrConflict    = errors.New("changed meanwhile")
	ErrTooFewNodes = errors.New("too few nodes")
	ErrUnavailable = errors.New("not available now")
	ErrDataLoss    = errors.New("data loss")
	ErrUnknown     = errors.New("outcome unknown")
	ErrClosed      = errors.New("gateway is closing")
)

// errRange is the ErrBadRequest that HTTP has a status of its own for.
var errRange = fmt.Errorf("%w: range not satisfiable", ErrBadRequest)

// statusCancelled is what is noted of requests whose clients left.
const statusCancelled = 499

// noRoomError says which node did not take a block that a plan stages on it.
type noRoomError struct {
	node  block.NodeID
	cause error
}

func (e *noRoomError) Error() string { return e.cause.Error() }
func (e *noRoomError) Unwrap() error { return e.cause }

func refuse(class error, format string, args ...any) error {
	return fmt.Errorf("%w: %w", class, fmt.Errorf(format, args...))
}

// statusOf maps an error to its HTTP status and the code clients can switch on.
func statusOf(err error) (status int, code string) {
	switch {
	case errors.Is(err, errRange):
		return http.StatusRequestedRangeNotSatisfiable, "bad_request"
	case errors.Is(err, ErrBadRequest):
		return http.StatusBadRequest, "bad_request"
	case errors.Is(err, ErrNotFound), errors.Is(err, catalog.ErrNoObject), errors.Is(err, catalog.ErrNoGroup):
		return http.StatusNotFound, "not_found"
	case errors.Is(err, ErrConflict), errors.Is(err, catalog.ErrStale):
		return http.StatusPreconditionFailed, "conflict"
	case errors.Is(err, ErrDataLoss):
		return http.StatusInternalServerError, "data_loss"
	case errors.Is(err, ErrUnknown), errors.Is(err, catalog.ErrUnknown):
		return http.StatusInternalServerError, "unknown_outcome"
	case errors.Is(err, store.ErrFull):
		return http.StatusInsufficientStorage, "full"
	case errors.Is(err, ErrTooFewNodes):
		return http.StatusServiceUnavailable, "too_few_nodes"
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrClosed), errors.Is(err, wire.ErrBusy), errors.Is(err, catalog.ErrNotActive), errors.Is(err, wire.ErrUnreachable), errors.Is(err, store.ErrDown),
		errors.Is(err, store.ErrReadOnly), errors.Is(err, store.ErrAuth):
		return http.StatusServiceUnavailable, "unavailable"
	case errors.Is(err, context.Canceled):
		return statusCancelled, "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, "timeout"
	}
	return http.StatusInternalServerError, "internal"
}

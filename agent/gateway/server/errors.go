package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/fault"
	"github.com/restripe/restripe/agent/gateway/sweep"
)

// errRange is the ErrBadRequest that HTTP has a status of its own for.
var errRange = fmt.Errorf("%w: range not satisfiable", api.ErrBadRequest)

// errSlow ends a request whose body does not come.
var errSlow = errors.New("too slow")

// retryAfter is when clients that were refused because of others should try again, in seconds.
const retryAfter = "1"

// statusCancelled is what is noted of requests whose clients left.
const statusCancelled = 499

// statuses are those of classes of errors, with the codes that clients can switch on.
var statuses = map[error]struct {
	status int
	code   api.Code
}{
	api.ErrUnknownOutcome:  {http.StatusInternalServerError, api.CodeUnknownOutcome},
	api.ErrBadRequest:      {http.StatusBadRequest, api.CodeBadRequest},
	api.ErrUnauthenticated: {http.StatusUnauthorized, api.CodeUnauthenticated},
	api.ErrForbidden:       {http.StatusForbidden, api.CodeForbidden},
	api.ErrNotFound:        {http.StatusNotFound, api.CodeNotFound},
	api.ErrConflict:        {http.StatusPreconditionFailed, api.CodeConflict},
	api.ErrDataLoss:        {http.StatusInternalServerError, api.CodeDataLoss},
	api.ErrFull:            {http.StatusInsufficientStorage, api.CodeFull},
	api.ErrTooFewNodes:     {http.StatusServiceUnavailable, api.CodeTooFewNodes},
	api.ErrBusy:            {http.StatusServiceUnavailable, api.CodeBusy},
	api.ErrUnavailable:     {http.StatusServiceUnavailable, api.CodeUnavailable},
}

// statusOf maps an error to its HTTP status and the code clients can switch on.
func statusOf(err error) (status int, code api.Code) {
	class := fault.Class(err)
	if class == nil && errors.Is(err, sweep.ErrBrake) {
		class = api.ErrConflict
	}
	is := statuses[class]
	switch {
	case errors.Is(class, api.ErrBadRequest) && errors.Is(err, errRange):
		return http.StatusRequestedRangeNotSatisfiable, is.code
	case class != nil:
		return is.status, is.code
	case errors.Is(err, errSlow):
		return http.StatusRequestTimeout, api.CodeTimeout
	case errors.Is(err, context.Canceled):
		return statusCancelled, api.CodeCancelled
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, api.CodeTimeout
	}
	return http.StatusInternalServerError, api.CodeInternal
}

package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/restripe/restripe/agent/gateway"
)

// Sentinels; use errors.Is. Each stands for one code of the API, ErrUnreachable for no answer at all.
var (
	ErrNotFound       = errors.New("no such object")
	ErrConflict       = errors.New("the object or transition is not in the state the request needs")
	ErrBadRequest     = errors.New("the request is malformed")
	ErrTooFewNodes    = errors.New("too few nodes take new blocks")
	ErrFull           = errors.New("a store is full")
	ErrUnavailable    = errors.New("the gateway cannot serve this now")
	ErrDataLoss       = errors.New("more blocks are lost than the scheme survives")
	ErrUnknownOutcome = errors.New("the write may or may not have taken effect")
	ErrUnreachable    = errors.New("no gateway answers")
)

var sentinelOf = map[string]error{
	"not_found":       ErrNotFound,
	"conflict":        ErrConflict,
	"bad_request":     ErrBadRequest,
	"too_few_nodes":   ErrTooFewNodes,
	"full":            ErrFull,
	"unavailable":     ErrUnavailable,
	"data_loss":       ErrDataLoss,
	"unknown_outcome": ErrUnknownOutcome,
}

// Error is a refusal by the gateway: its own words, the code and the HTTP status.
type Error struct {
	Status  int
	Code    string
	Message string
}

// Error returns the gateway's words.
func (e *Error) Error() string { return e.Message }

// Is maps the code to its sentinel.
func (e *Error) Is(target error) bool { return target == sentinelOf[e.Code] }

// refusalLimit bounds what is read of an error's body.
const refusalLimit = 64 << 10

// refusal turns a reply outside 2xx into an *Error and closes it.
func refusal(reply *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(reply.Body, refusalLimit))
	err = errors.Join(err, reply.Body.Close())
	var body gateway.ErrorBody
	if json.Unmarshal(text, &body) == nil && body.Error != "" {
		return &Error{Status: reply.StatusCode, Code: body.Code, Message: body.Error}
	}
	refused := &Error{Status: reply.StatusCode, Code: codeOf(reply.StatusCode)}
	refused.Message = fmt.Sprintf("%s %s was refused with %s", reply.Request.Method, reply.Request.URL.Path, reply.Status)
	if err != nil {
		return errors.Join(refused, fmt.Errorf("reading why: %w", err))
	}
	return refused
}

// codeOf names the code of a reply that has no JSON body, as HEAD replies have none.
func codeOf(status int) string {
	switch status {
	case http.StatusNotFound:
		return "not_found"
	case http.StatusConflict, http.StatusPreconditionFailed:
		return "conflict"
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return "unavailable"
	case http.StatusBadRequest, http.StatusRequestedRangeNotSatisfiable:
		return "bad_request"
	}
	return ""
}

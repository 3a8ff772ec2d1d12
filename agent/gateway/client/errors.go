package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/restripe/restripe/agent/gateway/api"
)

// ErrUnreachable says that no gateway answered. Refusals of a gateway are an *Error, and one of the classes of package api.
var ErrUnreachable = errors.New("no gateway answers")

// Error is a refusal by the gateway: its own words, the code and the HTTP status.
type Error struct {
	Status  int
	Code    api.Code
	Message string
}

// Error returns the gateway's words.
func (e *Error) Error() string { return e.Message }

// Is reports whether the code stands for the class of errors target.
func (e *Error) Is(target error) bool { return target != nil && target == e.Code.Class() }

// refusalLimit bounds what is read of an error's body.
const refusalLimit = 64 << 10

// refusal turns a reply outside 2xx into an *Error and closes it.
func refusal(reply *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(reply.Body, refusalLimit))
	err = errors.Join(err, reply.Body.Close())
	var body api.ErrorBody
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
func codeOf(status int) api.Code {
	switch status {
	case http.StatusUnauthorized:
		return api.CodeUnauthenticated
	case http.StatusForbidden:
		return api.CodeForbidden
	case http.StatusNotFound:
		return api.CodeNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return api.CodeConflict
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		return api.CodeUnavailable
	case http.StatusBadRequest, http.StatusRequestedRangeNotSatisfiable:
		return api.CodeBadRequest
	}
	return ""
}

package api

import (
	"errors"
	"fmt"
)

// Classes of refusals; use errors.Is. The text of a wrapped error says what, where and what to do.
var (
	ErrBadRequest      = errors.New("bad request")
	ErrUnauthenticated = errors.New("unauthenticated")
	ErrForbidden       = errors.New("forbidden")
	ErrNotFound        = errors.New("not found")
	ErrConflict        = errors.New("changed meanwhile")
	ErrTooFewNodes     = errors.New("too few nodes")
	ErrFull            = errors.New("a store is full")
	ErrUnavailable     = errors.New("not available now")
	ErrBusy            = errors.New("busy") // with other requests; the same one may be sent again a little later
	ErrDataLoss        = errors.New("data loss")
	ErrUnknownOutcome  = errors.New("outcome unknown")
)

// Refuse makes an error of a class; the text says what is wrong, where, and what to do.
func Refuse(class error, format string, args ...any) error {
	return fmt.Errorf("%w: %w", class, fmt.Errorf(format, args...))
}

// Code names a class of refusals to programs. It stays what it is where texts change.
type Code string

// The codes of refusals.
const (
	CodeBadRequest      Code = "bad_request"
	CodeUnauthenticated Code = "unauthenticated" // who asks is not known
	CodeForbidden       Code = "forbidden"
	CodeNotFound        Code = "not_found"
	CodeConflict        Code = "conflict"
	CodeTooFewNodes     Code = "too_few_nodes"
	CodeFull            Code = "full"
	CodeUnavailable     Code = "unavailable"
	CodeBusy            Code = "busy"
	CodeDataLoss        Code = "data_loss"
	CodeUnknownOutcome  Code = "unknown_outcome"
	CodeCancelled       Code = "cancelled" // the client left
	CodeTimeout         Code = "timeout"
	CodeInternal        Code = "internal"
)

var classes = map[Code]error{
	CodeBadRequest: ErrBadRequest, CodeUnauthenticated: ErrUnauthenticated,
	CodeForbidden: ErrForbidden, CodeNotFound: ErrNotFound, CodeConflict: ErrConflict,
	CodeTooFewNodes: ErrTooFewNodes, CodeFull: ErrFull, CodeUnavailable: ErrUnavailable, CodeBusy: ErrBusy,
	CodeDataLoss: ErrDataLoss, CodeUnknownOutcome: ErrUnknownOutcome,
}

// Class returns the error that the code stands for, nil where it stands for none of them.
func (c Code) Class() error { return classes[c] }

// ErrorBody is the JSON body of every refused request.
type ErrorBody struct {
	Error string `json:"error"`
	Code  Code   `json:"code"`
}

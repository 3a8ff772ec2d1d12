package resp

import (
	"context"
	"errors"

	"github.com/restripe/restripe/agent/gateway/api"
)

// redisError is an error whose text is what the client is sent. Those below are Redis's own, letter by letter.
type redisError string

func (e redisError) Error() string { return string(e) }

const (
	errSyntax     = redisError("ERR syntax error")
	errInteger    = redisError("ERR value is not an integer or out of range")
	errFloat      = redisError("ERR value is not a valid float")
	errNotFinite  = redisError("ERR increment would produce NaN or Infinity")
	errOverflow   = redisError("ERR increment or decrement would overflow")
	errDecrement  = redisError("ERR decrement would overflow")
	errOffset     = redisError("ERR offset is out of range")
	errTooLong    = redisError("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
	errNoKey      = redisError("ERR no such key")
	errCursor     = redisError("ERR invalid cursor")
	errLogin      = redisError("NOAUTH Authentication required.")
	errLoginHello = redisError("NOAUTH HELLO must be called with the client already authenticated, " +
		"otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client " +
		"and select the RESP protocol version at the same time")
	errPassword     = redisError("WRONGPASS invalid username-password pair or user is disabled.")
	errVersion      = redisError("NOPROTO unsupported protocol version")
	errNested       = redisError("ERR MULTI calls can not be nested")
	errExecAlone    = redisError("ERR EXEC without MULTI")
	errDiscardAlone = redisError("ERR DISCARD without MULTI")
	errWatchInside  = redisError("ERR WATCH inside MULTI is not allowed")
	errAborted      = redisError("EXECABORT Transaction discarded because of previous errors.")
	errDatabase     = redisError("ERR DB index is out of range")
	errCluster      = redisError("ERR This instance has cluster support disabled")
	errClients      = redisError("ERR max number of clients reached")
	errNameOfClient = redisError("ERR Client names cannot contain spaces, newlines or special characters.")
)

// errNoMemory says that a command cannot be taken now.
var errNoMemory = api.Refuse(api.ErrBusy, "other commands have all the memory there is for large ones; try again in a moment")

// textOf is what a client is sent for an error.
func textOf(err error) string {
	var own redisError
	if errors.As(err, &own) {
		return string(own)
	}
	return wordOf(err) + " " + err.Error()
}

// wordOf is the word by which programs know what kind of error it is.
func wordOf(err error) string {
	switch {
	case errors.Is(err, api.ErrUnknownOutcome):
		return "UNKNOWN"
	case errors.Is(err, api.ErrUnauthenticated):
		return "NOAUTH"
	case errors.Is(err, api.ErrForbidden):
		return "NOPERM"
	case errors.Is(err, api.ErrFull):
		return "OOM"
	case errors.Is(err, api.ErrBusy), errors.Is(err, api.ErrUnavailable), errors.Is(err, api.ErrConflict),
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "TRYAGAIN"
	}
	return "ERR"
}

// outcomeOf is what metrics call the end of a command.
func outcomeOf(err error) string {
	if err == nil {
		return "done"
	}
	var own redisError
	switch {
	case errors.As(err, &own), errors.Is(err, api.ErrBadRequest), errors.Is(err, api.ErrForbidden), errors.Is(err, api.ErrUnauthenticated):
		return "refused"
	}
	return "failed"
}

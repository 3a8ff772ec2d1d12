package memcache

import (
	"context"
	"errors"
	"strings"

	"github.com/restripe/restripe/agent/budget"
	"github.com/restripe/restripe/agent/gateway/api"
)

const (
	tooLarge   = "SERVER_ERROR object too large for cache\r\n"
	noMemory   = "SERVER_ERROR out of memory storing object\r\n"
	notNumeric = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
)

// mostText is how long the text of an error may be in a reply.
const mostText = 512

// refusal ends a change of a value with a reply: nothing was changed.
type refusal string

// Error is the reply.
func (r refusal) Error() string { return strings.TrimSpace(string(r)) }

// isRefusal reports whether it is up to the client that an error does not come again.
func isRefusal(err error) bool {
	return errors.Is(err, api.ErrBadRequest) || errors.Is(err, api.ErrUnauthenticated) || errors.Is(err, api.ErrForbidden)
}

// errorLine is the reply for an error.
func errorLine(err error) string {
	var said refusal
	switch {
	case errors.As(err, &said):
		return string(said)
	case errors.Is(err, budget.ErrFull):
		return noMemory
	case isRefusal(err):
		return "CLIENT_ERROR " + text(err) + "\r\n"
	case errors.Is(err, context.Canceled):
		return "SERVER_ERROR the server ends; whether it was done is not known\r\n"
	}
	return "SERVER_ERROR " + text(err) + "\r\n"
}

// text is what an error says, on one line.
func text(err error) string {
	said := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, err.Error())
	if len(said) > mostText {
		said = strings.ToValidUTF8(said[:mostText], "")
	}
	return said
}

// outcomeOf is the outcome of a command by the first word of its reply.
func outcomeOf(reply string) outcome {
	switch {
	case strings.HasPrefix(reply, "SERVER_ERROR"):
		return outcomeServerError
	case strings.HasPrefix(reply, "CLIENT_ERROR"), strings.HasPrefix(reply, "ERROR"):
		return outcomeClientError
	}
	return outcomeDone
}

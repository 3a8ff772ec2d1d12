package wire

import (
	"context"
	"errors"

	"github.com/restripe/restripe/agent/store"
)

// Sentinels that cross the wire; use errors.Is. Those of the store are the store package's own values.
var (
	ErrNotFound     = store.ErrNotFound
	ErrCorrupt      = store.ErrCorrupt
	ErrFull         = store.ErrFull
	ErrTooLarge     = store.ErrTooLarge
	ErrDown         = store.ErrDown // the agent answers, its store does not
	ErrReadOnly     = store.ErrReadOnly
	ErrAuth         = store.ErrAuth
	ErrConflict     = errors.New("address holds other content")
	ErrUnregistered = errors.New("the catalog has not confirmed this incarnation of the store")
	ErrBadRequest   = errors.New("bad request")
	ErrUnsupported  = errors.New("not supported by this store")
	ErrBusy         = errors.New("agent is busy; nothing was done, try again later")
	ErrCancelled    = errors.New("request was cancelled")
	ErrNotObeyed    = errors.New("the agent obeys another catalog")
	ErrForbidden    = errors.New("forbidden")
	ErrInternal     = errors.New("internal error of the agent")
)

// ErrUnreachable is a failure of the transport: the peer could not be reached, or the connection broke before the
// answer. The outcome of the call is unknown.
var ErrUnreachable = errors.New("agent is unreachable")

// ErrClosed is returned by calls on a closed client.
var ErrClosed = errors.New("client is closed")

// codes numbers the sentinels on the wire. Numbers are never reused. The first match wins.
var codes = []struct {
	code     uint64
	sentinel error
}{
	{1, ErrNotFound},
	{2, ErrCorrupt},
	{3, ErrConflict},
	{4, ErrUnregistered},
	{5, ErrFull},
	{6, ErrTooLarge},
	{7, ErrDown},
	{8, ErrBadRequest},
	{9, ErrUnsupported},
	{10, ErrBusy},
	{11, ErrReadOnly},
	{12, ErrAuth},
	{13, ErrCancelled},
	{13, context.Canceled},
	{13, context.DeadlineExceeded},
	{14, ErrInternal},
	{15, ErrNotObeyed},
	{16, ErrForbidden},
}

// errorHeader is the header of an error frame.
type errorHeader struct {
	Code uint64 `cbor:"1,keyasint"`
	Text string `cbor:"2,keyasint"`
}

// remoteError is an error a peer answered.
type remoteError struct {
	sentinel error
	text     string
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.sentinel }

const maxErrorText = 4096

func encodeError(err error) errorHeader {
	text := err.Error()
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	for _, entry := range codes {
		if errors.Is(err, entry.sentinel) {
			return errorHeader{Code: entry.code, Text: text}
		}
	}
	return errorHeader{Code: 14, Text: text}
}

func decodeError(header errorHeader) error {
	for _, entry := range codes {
		if entry.code == header.Code {
			return &remoteError{sentinel: entry.sentinel, text: header.Text}
		}
	}
	return &remoteError{sentinel: ErrInternal, text: header.Text}
}

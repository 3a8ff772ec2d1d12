// Package fault says which of the classes of refusals that clients know an error from below the gateway's own is.
package fault

import (
	"errors"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// classes are what errors mean, those first that hold whatever else an error says.
var classes = []struct {
	class error
	of    []error
}{
	{api.ErrUnknownOutcome, []error{catalog.ErrUnknown}},
	{api.ErrBadRequest, nil},
	{api.ErrUnauthenticated, nil},
	{api.ErrForbidden, nil},
	{api.ErrNotFound, []error{catalog.ErrNoObject, catalog.ErrNoGroup}},
	{api.ErrConflict, []error{catalog.ErrStale, catalog.ErrAlarm}},
	{api.ErrDataLoss, nil},
	{api.ErrFull, []error{store.ErrFull}},
	{api.ErrTooFewNodes, nil},
	{api.ErrBusy, []error{wire.ErrBusy}},
	{api.ErrUnavailable, []error{
		object.ErrClosed, catalog.ErrNotActive, catalog.ErrNewer, catalog.ErrFenced, catalog.ErrBehind, catalog.ErrClaimed,
		wire.ErrNotObeyed, wire.ErrUnreachable, store.ErrDown, store.ErrReadOnly, store.ErrAuth,
	}},
}

// Class returns the class of package api that an error has; nil where it has none, and so is the gateway's own fault, or that of a
// context that has ended.
func Class(err error) error {
	if err == nil {
		return nil
	}
	for i := range classes {
		if errors.Is(err, classes[i].class) {
			return classes[i].class
		}
		for _, one := range classes[i].of {
			if errors.Is(err, one) {
				return classes[i].class
			}
		}
	}
	return nil
}

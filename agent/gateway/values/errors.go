package values

import (
	"errors"
	"fmt"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/object"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

// classes are what errors from below the gateway's own mean to clients.
var classes = []struct {
	class error
	of    []error
}{
	{api.ErrUnknownOutcome, []error{catalog.ErrUnknown}},
	{api.ErrFull, []error{store.ErrFull}},
	{api.ErrBusy, []error{wire.ErrBusy}},
	{api.ErrUnavailable, []error{
		api.ErrTooFewNodes, object.ErrClosed, catalog.ErrNotActive, catalog.ErrNewer, catalog.ErrFenced, catalog.ErrBehind, catalog.ErrClaimed,
		wire.ErrNotObeyed, wire.ErrUnreachable, store.ErrDown, store.ErrReadOnly, store.ErrAuth,
	}},
}

// refusals are the classes that clients know.
var refusals = []error{
	api.ErrBadRequest, api.ErrUnauthenticated, api.ErrForbidden, api.ErrNotFound, api.ErrConflict, api.ErrUnavailable, api.ErrBusy,
	api.ErrFull, api.ErrDataLoss, api.ErrUnknownOutcome,
}

// classed gives an error the class by which clients know what kind of error it is. Others are internal.
func classed(err error) error {
	if err == nil || isAny(err, refusals) && !errors.Is(err, catalog.ErrUnknown) {
		return err
	}
	for _, c := range classes {
		if isAny(err, c.of) {
			return fmt.Errorf("%w: %w", c.class, err)
		}
	}
	return err
}

func isAny(err error, of []error) bool {
	for _, one := range of {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

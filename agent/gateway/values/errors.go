package values

import (
	"errors"
	"fmt"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/fault"
)

// classed gives an error from below the gateway's own the class by which clients know what kind of error it is. Others are internal.
func classed(err error) error {
	class := fault.Class(err)
	switch class {
	case api.ErrTooFewNodes:
		class = api.ErrUnavailable
	case api.ErrUnknownOutcome, api.ErrFull, api.ErrBusy, api.ErrUnavailable:
	default:
		return err
	}
	if errors.Is(err, class) {
		return err
	}
	return fmt.Errorf("%w: %w", class, err)
}

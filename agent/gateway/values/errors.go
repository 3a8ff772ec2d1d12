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
	if errors.Is(class, api.ErrTooFewNodes) {
		class = api.ErrUnavailable
	}
	for _, told := range []error{api.ErrUnknownOutcome, api.ErrFull, api.ErrBusy, api.ErrUnavailable} {
		if errors.Is(class, told) && !errors.Is(err, told) {
			return fmt.Errorf("%w: %w", told, err)
		}
	}
	return err
}

package fault

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/wire"
)

func TestErrorsHaveTheClassThatWeighsMost(t *testing.T) {
	for _, test := range []struct{ err, class error }{
		{nil, nil},
		{errors.New("a mistake"), nil},
		{context.Canceled, nil},
		{fmt.Errorf("putting: %w", store.ErrFull), api.ErrFull},
		{fmt.Errorf("reading: %w", catalog.ErrNoObject), api.ErrNotFound},
		{fmt.Errorf("%w: %w", api.ErrUnavailable, wire.ErrBusy), api.ErrBusy},
		{fmt.Errorf("%w, %w", catalog.ErrStale, catalog.ErrUnknown), api.ErrUnknownOutcome},
		{fmt.Errorf("%w: %w", api.ErrTooFewNodes, store.ErrDown), api.ErrTooFewNodes},
		{errors.Join(wire.ErrUnreachable, context.DeadlineExceeded), api.ErrUnavailable},
	} {
		if class := Class(test.err); !errors.Is(class, test.class) {
			t.Errorf("%v is %v, want %v", test.err, class, test.class)
		}
	}
}

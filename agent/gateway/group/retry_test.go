package group

import (
	"errors"
	"fmt"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/wire"
)

func TestInsist(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		errs  []error // of each try; the last of all others
		tries int
		full  string
	}{
		"it goes well":             {[]error{nil}, 1, "map[]"},
		"races":                    {[]error{api.ErrConflict, catalog.ErrStale, wire.ErrBusy, api.Refuse(api.ErrConflict, "somebody else was faster"), nil}, 5, "map[]"},
		"what no second try cures": {[]error{api.ErrConflict, api.ErrDataLoss}, 2, "map[]"},
		"a node is full, and another": {
			[]error{&NoRoomError{Node: "n1", cause: api.ErrUnavailable}, &NoRoomError{Node: "n2", cause: api.ErrUnavailable}, nil}, 3, "map[n1:true n2:true]",
		},
		"a node that is known to be full is full": {
			[]error{&NoRoomError{Node: "n1", cause: api.ErrUnavailable}}, 2, "map[n1:true]",
		},
	} {
		tries, seen := 0, ""
		err := RetryRaces(t.Context(), func(full map[block.NodeID]bool) error {
			seen = fmt.Sprint(full)
			tries++
			return c.errs[min(tries, len(c.errs))-1]
		})
		if want := c.errs[len(c.errs)-1]; !errors.Is(err, want) || tries != c.tries || seen != c.full {
			t.Errorf("%s: %v after %d tries, full at last %s", name, err, tries, seen)
		}
	}
}

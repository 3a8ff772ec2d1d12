package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// pausing is a body that does something once so many bytes were read.
type pausing struct {
	body io.Reader
	left int
	do   func() error
}

func (b *pausing) Read(p []byte) (int, error) {
	if b.left == 0 && b.do != nil {
		do := b.do
		b.do = nil
		if err := do(); err != nil {
			return 0, err
		}
	}
	if b.left > 0 {
		p = p[:min(len(p), b.left)]
	}
	n, err := b.body.Read(p)
	b.left = max(0, b.left-n)
	return n, err
}

const groupBytes = 64 << 10 // of the class of the tests

// inPieces has the gateway commit so many groups at a time.
func inPieces(t *testing.T, agents, groups int) *cluster {
	t.Helper()
	c := newCluster(t, agents, func(agent *testAgent) { agent.silence = 200 * time.Millisecond })
	c.stopGateway()
	c.catalog, c.gateway = c.makeGateway("gw", func(o *gateway.Options) { o.PieceGroups = groups })
	c.answering()
	return c
}

// pieces waits until puts have committed so many pieces that are not swept, and no more.
func (c *cluster) pieces(want int) {
	c.t.Helper()
	c.await("pieces are committed", func() bool {
		records, err := c.engine.Scan(c.t.Context(), "p/", "", 1000)
		if err != nil || len(records) > want {
			c.t.Fatalf("%d pieces, %v", len(records), err)
		}
		return len(records) == want
	})
}

// shown checks what the gateway shows of pieces.
func (c *cluster) shown(committed, swept, underWay float64) {
	c.t.Helper()
	families, err := c.gateway.Figures().Gather()
	if err != nil {
		c.t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"restripe_pieces_committed_total": committed, "restripe_pieces_swept_total": swept, "restripe_puts_in_pieces": underWay,
	} {
		if got, found := sample(c.t, families, name, nil); !found || got != want {
			c.t.Errorf("%s is %v (%v), want %v", name, got, found, want)
		}
	}
}

// While a large object is put, what was committed of it is worked on like any other group, and nobody sees an object.
func TestAPutInPieces(t *testing.T) {
	t.Parallel()
	c := inPieces(t, 10, 3)
	old, data := noise(5*groupBytes, 1), noise(20*groupBytes+1000, 2)
	c.put("k", old, api.PutOptions{})
	const old5 = 2 // pieces of the object that is there, which has five groups and a piece for three
	during := func() error {
		c.pieces(3) // of nine groups of twelve that came
		c.shown(old5+3, 0, 1)
		if status, err := c.gateway.Status(t.Context()); err != nil || status.Objects != 1 || status.Active != 1 {
			t.Errorf("%+v, %v", status, err)
		}
		c.check("k", old)
		before := c.member("n1").Slots
		if _, err := c.gateway.DrainNode(t.Context(), "n1", api.DrainRequest{}); err != nil {
			t.Error(err)
		}
		if result := c.relocated(); int64(result.SlotsMoved) != before || before == 0 {
			t.Errorf("moved %d of %d slots", result.SlotsMoved, before)
		}
		c.transition(api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: "rs(6,2)"})
		intents, err := c.catalog.Intents(t.Context(), block.Stamp{}, 2)
		if err != nil || len(intents) != 1 {
			return fmt.Errorf("%d attempts: %w", len(intents), err)
		}
		view, err := c.catalog.Group(t.Context(), block.GroupID{Stamp: intents[0].Stamp, Index: 4})
		if err != nil {
			return err
		}
		for _, slot := range []int{0, 3} {
			address := view.Address(slot, view.Slots[slot][0])
			if err := c.agent(address.Node).store.Delete(t.Context(), address.Key()); err != nil {
				return err
			}
		}
		if scrub := c.scrubbed(api.ScrubRequest{}); scrub.Findings != 2 || scrub.Repaired != 2 {
			t.Errorf("two blocks of a group that is committed are lost: %+v", scrub)
		}
		if _, err := c.gateway.Sweep(t.Context(), api.SweepRequest{}); err != nil {
			t.Error(err)
		}
		c.pieces(3)
		return c.catalog.Audit(t.Context())
	}
	body := &pausing{body: bytes.NewReader(data), left: 12 * groupBytes, do: during}
	if _, err := c.gateway.Put(t.Context(), "k", body, api.PutOptions{Size: int64(len(data))}); err != nil {
		t.Fatal(err)
	}
	c.check("k", data)
	c.pieces(0)
	c.shown(old5+7, 0, 0) // of 21 groups
	c.audit()
	// Of unknown size, and over it.
	body = &pausing{body: bytes.NewReader(data[1:])}
	if _, err := c.gateway.Put(t.Context(), "k", body, api.PutOptions{Size: -1}); err != nil {
		t.Fatal(err)
	}
	c.check("k", data[1:])
	c.audit()
	if err := c.gateway.Delete(t.Context(), "k", nil); err != nil {
		t.Fatal(err)
	}
	c.audit()
	if groups, err := c.catalog.ListGroups(t.Context(), block.GroupID{}, 10); err != nil || len(groups) > 0 {
		t.Errorf("%d groups are left, %v", len(groups), err)
	}
}

// Whatever ends a put between its commits, nothing is left of it and the object is as it was.
func TestAPutThatEndsBetweenItsPieces(t *testing.T) {
	t.Parallel()
	errGone := errors.New("the client is gone")
	for name, c := range map[string]struct {
		end  func(c *cluster) error
		want error
	}{
		"its client goes": {func(*cluster) error { return errGone }, errGone},
		"its gateway is started elsewhere, as after a kill": {func(c *cluster) error {
			next, err := catalog.Open(c.t.Context(), c.engine, catalog.Owner("gw", "elsewhere"), catalog.WithGrace(0))
			if err == nil {
				err = next.AbortOwn(c.t.Context(), "gw", "elsewhere")
			}
			return err
		}, catalog.ErrNotActive},
		"another gateway settles it": {func(c *cluster) error {
			intents, err := c.catalog.Intents(c.t.Context(), block.Stamp{}, 2)
			if err == nil && len(intents) == 1 {
				_, err = c.catalog.Settle(c.t.Context(), intents[0].Stamp)
			}
			return err
		}, catalog.ErrNotActive},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			end, want := c.end, c.want
			c := inPieces(t, 8, 2)
			old := noise(3*groupBytes, 1)
			c.put("k", old, api.PutOptions{})
			data := noise(12*groupBytes, 2)
			body := &pausing{body: bytes.NewReader(data), left: 8 * groupBytes, do: func() error {
				c.pieces(3) // of seven groups: the eighth waits for what comes next
				return end(c)
			}}
			if _, err := c.gateway.Put(t.Context(), "k", body, api.PutOptions{Size: -1}); !errors.Is(err, want) {
				t.Errorf("%v, want %v", err, want)
			}
			c.stopGateway()
			c.startGateway()
			c.answering()
			c.check("k", old)
			c.await("agents have heard nothing of the first start for long enough", func() bool {
				result, err := c.gateway.Sweep(t.Context(), api.SweepRequest{})
				return err == nil && result.GravesLeft == 0
			})
			c.audit()
			c.pieces(0)
		})
	}
}

// What is larger than an object can be is refused before any of it is read.
func TestAnObjectOfTooManyGroups(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	body := &pausing{do: func() error { t.Error("the body was read"); return io.ErrUnexpectedEOF }}
	_, err := c.gateway.Put(t.Context(), "k", body, api.PutOptions{Size: catalog.ExtentsLimit*groupBytes + 1})
	if !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("%v, want ErrBadRequest", err)
	}
	t.Log(err)
	c.audit()
}

package gateway_test

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/values"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/decorate"
)

// Puts of one key that wait for each other are stored together: once one is acknowledged, what is there is it or a later one. One that
// is refused harms no other.
func TestPutsOfOneKey(t *testing.T) {
	var creates atomic.Int64
	c := newCluster(t, 8, func(agent *testAgent) {
		agent.wrap = func(inner store.Store) store.Store {
			return (&decorate.Fault{Rule: func(call decorate.Call) decorate.Effect {
				if call.Operation == decorate.Create {
					creates.Add(1)
				}
				return decorate.Effect{}
			}}).Wrap(inner)
		}
	})
	session := c.gateway.Values().Anybody()
	const writers, each = 32, 20
	var clock atomic.Int64
	var ended sync.Map // when puts were acknowledged, by their value
	var work errgroup.Group
	creates.Store(0)
	for writer := range writers {
		work.Go(func() error {
			for i := range each {
				began := clock.Add(1)
				put := values.Put{Data: []byte(strconv.FormatInt(began, 10)), Class: "temporary"}
				if writer == 0 && i%2 == 0 {
					put.Class = "nosuch"
					if _, err := session.Put(t.Context(), "k", put); !errors.Is(err, api.ErrBadRequest) {
						t.Errorf("into a class that there is not: %v", err)
					}
					continue
				}
				if _, err := session.Put(t.Context(), "k", put); err != nil {
					return err
				}
				ended.Store(string(put.Data), clock.Add(1))
				value, err := session.Get(t.Context(), "k")
				if err != nil {
					return err
				}
				found := string(value.Data)
				value.Release()
				if at, is := ended.Load(found); is && at.(int64) < began {
					t.Errorf("after %s was stored, %s is there, which was acknowledged before", put.Data, found)
				}
			}
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
	if stored := creates.Load(); stored >= writers*each {
		t.Errorf("%d puts wrote %d blocks", writers*each, stored)
	}
	if _, err := session.Put(t.Context(), "k", values.Put{Data: []byte("last")}); err != nil {
		t.Fatal(err)
	}
	c.check("k", []byte("last"))
}

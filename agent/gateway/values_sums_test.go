package gateway_test

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/values"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/decorate"
)

// countStores returns a cluster, and how often each operation of its stores was called for a block.
func countStores(t *testing.T) (*cluster, map[decorate.Operation]*atomic.Int64) {
	t.Helper()
	counts := map[decorate.Operation]*atomic.Int64{decorate.Create: {}, decorate.ReadAt: {}}
	return newCluster(t, 8, func(agent *testAgent) {
		agent.wrap = func(inner store.Store) store.Store {
			return (&decorate.Fault{Rule: func(call decorate.Call) decorate.Effect {
				// What agents write beside blocks they look at by themselves.
				if count := counts[call.Operation]; count != nil && strings.HasPrefix(call.Key, block.KeyPrefix) {
					count.Add(1)
				}
				return decorate.Effect{}
			}}).Wrap(inner)
		}
	}), counts
}

var errTooMuch = errors.New("too much")

// increment adds one to a counter up to a bound, and returns what it is then.
func increment(t *testing.T, session *values.Session, key, class string, most int) (sum int, err error) {
	err = session.Accumulate(t.Context(), key, func(now *values.Value) (values.Change, error) {
		sum = 1
		if now != nil {
			was, err := strconv.Atoi(string(now.Data))
			if err != nil {
				return values.Change{}, err
			}
			sum = was + 1
		}
		if sum > most {
			return values.Change{}, errTooMuch
		}
		return values.Change{Put: &values.Put{Data: strconv.AppendInt(nil, int64(sum), 10), Class: class}}, nil
	})
	return sum, err
}

// Increments of one key that wait for each other are stored together. Each has its own answer, after those that had one before it
// began; one that is refused harms no other.
func TestIncrementsOfOneKey(t *testing.T) {
	c, counts := countStores(t)
	session := c.gateway.Values().Anybody()
	const writers, each, most = 32, 20, 500
	if _, err := increment(t, session, "alone", "temporary", most); err != nil {
		t.Fatal(err)
	}
	one := counts[decorate.Create].Swap(0)
	var clock atomic.Int64
	var mutex sync.Mutex
	begun, ended := map[int]int64{}, map[int]int64{}
	var refused, over atomic.Int64
	var work errgroup.Group
	for writer := range writers {
		work.Go(func() error {
			for i := range each {
				class := "temporary"
				if writer == 0 && i%2 == 0 {
					class = "nosuch"
				}
				began := clock.Add(1)
				sum, err := increment(t, session, "k", class, most)
				switch {
				case errors.Is(err, errTooMuch):
					over.Add(1)
					continue
				case class == "nosuch" && errors.Is(err, api.ErrBadRequest):
					refused.Add(1)
					continue
				case err != nil:
					return err
				}
				mutex.Lock()
				if begun[sum] != 0 {
					t.Errorf("two are told %d", sum)
				}
				begun[sum], ended[sum] = began, clock.Add(1)
				mutex.Unlock()
			}
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		t.Fatal(err)
	}
	if asked := int64(len(begun)) + refused.Load() + over.Load(); len(begun) != most || asked != writers*each {
		t.Errorf("%d counted, %d were too much and %d refused", len(begun), over.Load(), refused.Load())
	}
	latest := int64(0) // when one of those before began
	for sum := 1; sum <= most; sum++ {
		if latest = max(latest, begun[sum]); ended[sum] < latest {
			t.Errorf("%d was answered before one that it comes after began", sum)
		}
	}
	if stored := counts[decorate.Create].Load(); stored > one*most/2 {
		t.Errorf("%d increments wrote %d blocks, one alone %d", most, stored, one)
	}
	c.check("k", []byte(strconv.Itoa(most)))
}

// What a command of memcached does over a value whose bytes it does not need reads none.
func TestMemcacheConditionsReadNoBytes(t *testing.T) {
	c, counts := countStores(t)
	m := dialMemcache(t, c.serveMemcache())
	m.want("set a 0 0 3\r\none\r\n", "STORED\r\n")
	counts[decorate.ReadAt].Store(0)
	m.want("replace none 0 0 3\r\ntwo\r\n", "NOT_STORED\r\n")
	m.want("cas a 0 0 5 1\r\nthree\r\n", "EXISTS\r\n")
	m.want("cas none 0 0 5 1\r\nthree\r\n", "NOT_FOUND\r\n")
	m.want("ms a 5 C1\r\nthree\r\n", "EX\r\n")
	m.want("md a C1\r\n", "EX\r\n")
	m.want("add a 0 0 4\r\nfour\r\n", "NOT_STORED\r\n")
	if reads := counts[decorate.ReadAt].Load(); reads > 0 {
		t.Errorf("%d blocks were read", reads)
	}
	m.want("replace a 0 0 3\r\ntwo\r\n", "STORED\r\n")
	m.want("get a\r\n", "VALUE a 0 3\r\ntwo\r\nEND\r\n")
}

//go:build ceph

package ceph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/ceph/cephtest"
	"github.com/restripe/restripe/agent/wire"
)

// await looks until is, for as long as a test may take.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Minute)
	for !is() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("in vain awaited: %s", what)
		}
	}
}

// incarnation reads the incarnation as a node does.
func incarnation(s *Store) (string, error) {
	p := make([]byte, 100)
	count, err := s.ReadAt(context.Background(), incarnationKey, p, 0)
	return string(p[:count]), err
}

func TestLostPlacementGroupsAreAnotherIncarnation(t *testing.T) {
	w := start(t, cephtest.Options{Hosts: 1, OSDsPerHost: 3, Bluestore: true})
	w.timeout = 2 * time.Second
	must(t, w.CreateNodePool("pool", "node1", 8))
	s := w.openPool(t, "pool")
	defer s.Close()
	must(t, s.Create(t.Context(), incarnationKey, []byte("first")))
	const values = 64
	for i := range values {
		must(t, s.Create(t.Context(), fmt.Sprint(i), []byte("value")))
	}
	groups := w.groupsOn(t, "pool", 8, 0)
	must(t, w.KillOSD(0))
	must(t, w.AwaitDown(0))
	_, err := w.Command("osd out", map[string]any{"ids": []string{"0"}})
	must(t, err)
	// An OSD that is down may return: nothing is lost yet, whatever does not answer.
	if found, err := incarnation(s); found != "first" && !errors.Is(err, store.ErrDown) {
		t.Fatalf("with an OSD down and out the incarnation is %q, %v", found, err)
	}
	must(t, w.PurgeOSD(0))
	for group, witness := range groups { // until told so, Ceph waits for the OSD even now
		// The monitors may forget the order when they make another map at the same time, so it is repeated.
		tries := 0
		await(t, "placement group "+group+" is made anew", func() bool {
			_, err := w.Command("osd force-create-pg", map[string]any{"pgid": group, "yes_i_really_mean_it": true})
			must(t, err)
			if _, err = s.readWitness(t.Context(), witness); err == nil || errors.Is(err, store.ErrNotFound) {
				return true
			}
			// Ceph 16's OSDs may never hear of a forced group, or leave it laggy, until they come back from being down.
			if tries++; tries%5 == 0 {
				acting := w.mapped(t, "pool", witness).Acting
				t.Logf("placement group %s does not answer (%v): OSDs %v are said to be down", group, err, acting)
				for _, osd := range acting {
					_, err := w.Command("osd down", map[string]any{"ids": []string{fmt.Sprint(osd)}})
					must(t, err)
				}
			}
			return false
		})
	}
	await(t, "the incarnation is forgotten", func() bool {
		_, err := incarnation(s)
		return errors.Is(err, store.ErrNotFound)
	})
	must(t, w.AwaitServing())
	lost := 0
	for i := range values {
		_, err := s.ReadAt(t.Context(), fmt.Sprint(i), make([]byte, 5), 0)
		if errors.Is(err, store.ErrNotFound) {
			lost++
		} else if err != nil {
			t.Errorf("reading %d: %v", i, err)
		}
	}
	if lost == 0 || lost == values {
		t.Errorf("%d of %d values are lost with one of three OSDs", lost, values)
	}
	t.Logf("%d of %d values were lost", lost, values)
	must(t, s.Create(t.Context(), incarnationKey, []byte("second")))
	await(t, "a look at the second incarnation", func() bool {
		if found, err := incarnation(s); found != "second" {
			t.Fatalf("the second incarnation is %q, %v", found, err)
		}
		return s.seenEpoch() > 0
	})
}

// groupsOn returns the placement groups of a pool that are on an OSD, each with its witness.
func (w *world) groupsOn(t *testing.T, pool string, groups, osd int) map[string]string {
	t.Helper()
	on := map[string]string{}
	for _, name := range witnessNames(groups) {
		if m := w.mapped(t, pool, name); slices.Contains(m.Acting, osd) {
			on[m.Group] = name
		}
	}
	return on
}

// mapping says where an object is.
type mapping struct {
	Group  string `json:"pgid"`
	Acting []int  `json:"acting"` // OSDs, the primary first
}

func (w *world) mapped(t *testing.T, pool, object string) mapping {
	t.Helper()
	var m mapping
	must(t, w.Ask("osd map", map[string]any{"pool": pool, "object": object}, &m))
	return m
}

// seenEpoch returns the epoch of the last complete look.
func (s *Store) seenEpoch() int64 {
	s.look.mutex.Lock()
	defer s.look.mutex.Unlock()
	return s.look.epoch
}

func TestMorePlacementGroupsAreTheSameIncarnation(t *testing.T) {
	w := start(t, cephtest.Options{Hosts: 1, OSDsPerHost: 2})
	must(t, w.CreateNodePool("pool", "node1", 4))
	s := w.openPool(t, "pool")
	defer s.Close()
	must(t, s.Create(t.Context(), incarnationKey, []byte("first")))
	for _, variable := range []string{"pg_num", "pgp_num"} {
		_, err := w.Command("osd pool set", map[string]any{"pool": "pool", "var": variable, "val": "16"})
		must(t, err)
	}
	await(t, "a witness in each of 16 placement groups", func() bool {
		if found, err := incarnation(s); err != nil || found != "first" {
			t.Fatalf("with more placement groups the incarnation is %q, %v", found, err)
		}
		text, err := s.readWitness(t.Context(), witnessesName)
		return err == nil && strings.Contains(text, `"groups":16`)
	})
	for _, name := range witnessNames(16) {
		if found, err := s.readWitness(t.Context(), name); err != nil || found != "first" {
			t.Errorf("witness %q: %q, %v", name, found, err)
		}
	}
}

func TestAPoolThatLeavesItsBucketIsDown(t *testing.T) {
	w := start(t, cephtest.Options{Hosts: 3})
	must(t, w.CreateNodePools(4))
	s := w.openPool(t, "node1")
	defer s.Close()
	must(t, s.Create(t.Context(), incarnationKey, []byte("first")))
	set := func(variable, value string) {
		_, err := w.Command("osd pool set", map[string]any{"pool": "node1", "var": variable, "val": value, "yes_i_really_mean_it": true})
		must(t, err)
	}
	downWith := func(parts ...string) {
		await(t, "the store is down", func() bool {
			_, err := incarnation(s)
			if !errors.Is(err, store.ErrDown) {
				return false
			}
			for _, part := range parts {
				if !strings.Contains(err.Error(), part) {
					t.Fatalf("the error does not say %q: %v", part, err)
				}
			}
			return true
		})
		if _, err := s.Info(t.Context()); !errors.Is(err, store.ErrDown) {
			t.Errorf("describing it: %v, want %v", err, store.ErrDown)
		}
	}
	up := func() {
		await(t, "the store is up", func() bool {
			found, err := incarnation(s)
			return err == nil && found == "first"
		})
	}
	set("crush_rule", "node2")
	downWith("node1", "node2", "drain")
	set("crush_rule", "node1")
	up()
	set("size", "2")
	downWith("2 copies")
	set("size", "1")
	up()
}

func TestObjectsAreInThePlacementGroupsThatTheirNamesSay(t *testing.T) {
	w := start(t, cephtest.Options{Hosts: 1})
	for _, groups := range []int{1, 5, 8, 12} {
		pool := fmt.Sprintf("pool%d", groups)
		must(t, w.CreateNodePool(pool, "node1", groups))
		names := append(witnessNames(groups), "a", "rbd_directory", strings.Repeat("k", 12), strings.Repeat("long", 50), incarnationKey)
		for i, name := range names {
			var answer struct {
				Group string `json:"pgid"`
			}
			must(t, w.Ask("osd map", map[string]any{"pool": pool, "object": name}, &answer))
			_, group, _ := strings.Cut(answer.Group, ".")
			if want := fmt.Sprintf("%x", placementGroup(name, groups)); group != want {
				t.Errorf("%q of %d placement groups: Ceph says %s, this package %s", name, groups, group, want)
			}
			if i < groups && placementGroup(name, groups) != i {
				t.Errorf("witness %d of %d is in placement group %d", i, groups, placementGroup(name, groups))
			}
		}
	}
}

func TestANodeKeepsItsIncarnationWhereTheStoreLooksForIt(t *testing.T) {
	w := start(t, cephtest.Options{Hosts: 1})
	s := w.open(t)
	defer s.Close()
	n, err := node.New(node.Options{ID: "n1", Store: s})
	must(t, err)
	defer n.Close()
	header, err := cbor.Marshal(wire.HelloRequest{})
	must(t, err)
	_, _, _, err = n.Handle(t.Context(), wire.OpHello, header, new(wire.Payload))
	must(t, err)
	found, err := incarnation(s)
	if err != nil || found == "" {
		t.Fatalf("a greeted node has the incarnation %q, %v", found, err)
	}
	if text, err := s.readWitness(t.Context(), witnessesName); err != nil || !strings.Contains(text, found) {
		t.Errorf("the witnesses of %q: %q, %v", found, text, err)
	}
}

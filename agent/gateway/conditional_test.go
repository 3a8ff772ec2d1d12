package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
)

// Small objects that are put under a condition share a group with others; one whose condition does not hold keeps nobody else
// from being stored.
func TestConditionalSmallPutsShareAGroup(t *testing.T) {
	c := newCluster(t, 8)
	spec := api.ClassSpec{
		Name: "patient", Ladder: "rep(3)", Prefixes: []string{"p/"}, PackBelow: "4KiB", PackMode: api.PackBatch, PackDelay: "3s",
	}
	if _, err := c.gateway.PutClass(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	const count = 40
	name := func(i int) string { return fmt.Sprintf("p/%d", i) }
	var before [count]api.Object
	all := func(put func(i int)) {
		var puts sync.WaitGroup
		for i := range count {
			puts.Go(func() { put(i) })
		}
		puts.Wait()
	}
	all(func(i int) {
		if i%2 == 0 {
			before[i] = c.put(name(i), noise(100, uint64(i)), api.PutOptions{})
		}
	})
	other := block.Stamp{Sequence: 1}
	var stored [count]bool
	all(func(i int) { // a quarter each: is there and should be, is there and should not, is there and should be another, none of them
		options := api.PutOptions{Size: 100}
		want := error(nil)
		switch i % 8 {
		case 0, 4:
			options.IfRevision = &before[i].Revision
		case 2:
			options.IfRevision, want = &block.Stamp{}, api.ErrConflict
		case 6:
			options.IfRevision, want = &other, api.ErrConflict
		case 1, 5:
			options.IfRevision = &block.Stamp{}
		}
		_, err := c.gateway.Put(t.Context(), name(i), bytes.NewReader(noise(100, uint64(count+i))), options)
		if want == nil && err != nil || !errors.Is(err, want) {
			t.Errorf("%d: %v, want %v", i, err, want)
		}
		stored[i] = err == nil
	})
	groups := map[block.GroupID]bool{}
	for i := range count {
		want := noise(100, uint64(i))
		if stored[i] {
			want = noise(100, uint64(count+i))
		}
		if !bytes.Equal(c.get(name(i)), want) {
			t.Errorf("%d is not what was stored", i)
		}
		if stat, err := c.gateway.Stat(t.Context(), name(i)); err != nil || len(stat.Groups) != 1 {
			t.Errorf("%d: %+v, %v", i, stat, err)
		} else if stored[i] {
			groups[stat.Groups[0].ID] = true
		}
	}
	if len(groups) > 2 {
		t.Errorf("they lie in %d groups", len(groups))
	}
	c.audit()
}

package rebuild_test

import (
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
)

// What came under another ladder comes back: in place, where only parities say so, and by copies; also where the attempt that was last
// did not commit.
func TestGroupsThatCameUnderAnotherLadder(t *testing.T) {
	c := newCluster(t, stores(t, "mem", 13))
	class := func(ladder string) {
		t.Helper()
		spec := api.ClassSpec{Name: "grows", Ladder: ladder, Prefixes: []string{"grows/"}, PackBelow: "4KiB", GroupBytes: "64KiB"}
		if _, err := c.gateway.PutClass(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	class("rs(6,2)")
	want := map[string][]byte{}
	put := func(key string, size int, seed uint64) {
		want[key] = noise(size, seed)
		c.put(key, want[key], "")
	}
	put("grows/small", 900, 1)
	put("grows/other", 1900, 2)
	put("grows/large", 300_000, 3)
	put("grows/wide", 150_000, 4)
	put("grows/stays", 70_000, 5)
	class("rs(6,2),rs(3,3),rs(2,1),rs(10,2)")
	for key, to := range map[string]string{
		"grows/small": "rs(3,3)", "grows/other": "rs(3,3)", "grows/large": "rs(2,1)", "grows/wide": "rs(10,2)",
	} {
		c.transition(key, to)
	}
	c.update("grows/large", want["grows/large"], 60_000, noise(20_000, 6)) // under the ladder that it has now
	c.transition("grows/large", "rs(3,3)")
	c.sweep()
	c.sweep()
	report := c.lose(nil)
	if report.Objects != len(want) || report.Unnamed != 0 || len(report.Problems) > 0 {
		t.Errorf("%+v", report)
	}
	c.check(want)
	schemes := map[string]string{"grows/large": "rs(3,3)", "grows/wide": "rs(10,2)", "grows/stays": "rs(6,2)"}
	for key, scheme := range schemes {
		stat, err := c.gateway.Stat(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range stat.Groups {
			if group.Scheme != scheme {
				t.Errorf("%s is under %s", key, group.Scheme)
			}
		}
	}
	// They go on under the ladder that they had come under.
	class("rs(6,2),rs(3,3),rs(2,1),rs(10,2)")
	c.transition("grows/large", "rs(6,2)")
	c.transition("grows/large", "rs(2,1)")
	c.check(want)
	c.scrubClean()
}

// Objects that came into another class by their records alone come back whole: in it, where their groups were changed since, and else in
// the one that they were put into.
func TestGroupsThatCameIntoAnotherClass(t *testing.T) {
	c := newCluster(t, stores(t, "mem", 9))
	want := map[string][]byte{}
	for i, key := range []string{"late/small", "late/updated", "late/moved", "late/stays"} {
		size := 150_000
		if i == 0 {
			size = 900
		}
		want[key] = noise(size, uint64(i))
		c.put(key, want[key], "")
	}
	spec := api.ClassSpec{Name: "late", Ladder: "rep(3),rs(3,2),rs(2,2)", Prefixes: []string{"late/"}, PackBelow: "4KiB", GroupBytes: "64KiB"}
	if _, err := c.gateway.PutClass(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	started, err := c.gateway.StartTransition(t.Context(), api.TransitionRequest{Into: "late"})
	if err != nil {
		t.Fatal(err)
	}
	c.ended(started)
	c.update("late/updated", want["late/updated"], 100, noise(140_000, 7)) // of all its groups
	c.transition("late/moved", "rs(2,2)")
	c.sweep()
	c.sweep()
	if report := c.lose(nil); report.Objects != len(want) || report.Unnamed != 0 || len(report.Problems) > 0 {
		t.Errorf("%+v", report)
	}
	c.check(want)
	for key, class := range map[string]string{"late/updated": "late", "late/moved": "late", "late/stays": "default"} {
		stat, err := c.gateway.Stat(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if stat.Class != class {
			t.Errorf("%s is of class %s", key, stat.Class)
		}
	}
	c.scrubClean()
}

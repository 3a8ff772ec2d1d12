package catalog_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/catalogtest"
)

// add returns a decision that declares a class unless there is one of its name.
func add(name string) func([]catalog.Class) ([]catalog.Class, error) {
	return func(classes []catalog.Class) ([]catalog.Class, error) {
		if slices.ContainsFunc(classes, func(c catalog.Class) bool { return c.Name == name }) {
			return nil, nil
		}
		return []catalog.Class{{Name: name, Body: []byte("body of " + name), Origin: "test"}}, nil
	}
}

func classNames(t *testing.T, c *catalog.Catalog) (names []string, version int64) {
	t.Helper()
	classes, version, err := c.Classes(t.Context())
	must(t, err)
	for _, class := range classes {
		names = append(names, class.Name)
	}
	return names, version
}

func TestClassesChangeTogetherOrNotAtAll(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		if names, version := classNames(t, w.a); names != nil || version != 0 {
			t.Errorf("a new catalog has the classes %v, version %d", names, version)
		}
		must(t, w.a.ChangeClasses(w.ctx, add("a")))
		names, first := classNames(t, w.b)
		if !slices.Equal(names, []string{"a"}) {
			t.Errorf("classes %v", names)
		}
		must(t, w.a.ChangeClasses(w.ctx, add("a"))) // nothing to change
		refused := errors.New("refused")
		is(t, w.a.ChangeClasses(w.ctx, func([]catalog.Class) ([]catalog.Class, error) { return nil, refused }), refused)
		is(t, w.a.ChangeClasses(w.ctx, func([]catalog.Class) ([]catalog.Class, error) { return make([]catalog.Class, 1), nil }), catalog.ErrBadChange)
		if version, err := w.b.ClassesVersion(w.ctx); err != nil || version != first {
			t.Errorf("version %d after nothing changed, %d before, %v", version, first, err)
		}
		// Another gateway declares a class after this one has looked: it looks again.
		looks := 0
		w.engine.beforeUpdate = func() { must(t, w.b.ChangeClasses(w.ctx, add("b"))) }
		must(t, w.a.ChangeClasses(w.ctx, func(classes []catalog.Class) ([]catalog.Class, error) {
			looks++
			return []catalog.Class{{Name: "c", Body: fmt.Append(nil, len(classes))}}, nil
		}))
		classes, version, err := w.b.Classes(w.ctx)
		must(t, err)
		if looks != 2 || len(classes) != 3 || string(classes[2].Body) != "2" || version == first {
			t.Errorf("%d looks, classes %+v, version %d", looks, classes, version)
		}
	})
}

func TestClassesAndHeatUnderFaults(t *testing.T) {
	for _, fault := range faults {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			onEveryEngine(t, func(t *testing.T, w *world) {
				next := catalogtest.None
				w.faults.Decide = func() catalogtest.Fault { now := next; next = catalogtest.None; return now }
				next = fault
				must(t, w.a.ChangeClasses(w.ctx, add("a")))
				next = fault
				must(t, w.a.ChangeClasses(w.ctx, add("b")))
				if names, _ := classNames(t, w.b); !slices.Equal(names, []string{"a", "b"}) {
					t.Errorf("classes %v", names)
				}
				next = fault
				since, err := w.a.HeatSince(w.ctx)
				must(t, err)
				w.now = w.now.Add(time.Hour)
				if again, err := w.b.HeatSince(w.ctx); err != nil || !again.Equal(since) {
					t.Errorf("since %v, and since %v, %v", since, again, err)
				}
				next = fault
				must(t, w.a.SaveHeat(w.ctx, []catalog.HeatPart{{Part: 0, Gateway: "a", Raw: []byte("0")}, {Part: 63, Gateway: "a", Raw: []byte("63")}}))
				next = fault
				part := catalog.HeatPart{Part: 63, Gateway: "a", Raw: []byte("63")}
				must(t, w.a.DropHeat(w.ctx, part))
				if left, err := w.b.Heat(w.ctx, 63); err != nil || len(left) != 0 {
					t.Errorf("%v, %v", left, err)
				}
			})
		})
	}
}

func TestHeatPartsAreReplacedListedAndDropped(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		must(t, w.a.SaveHeat(w.ctx, nil))
		part := func(index int, gateway, raw string) catalog.HeatPart {
			return catalog.HeatPart{Part: index, Gateway: gateway, Raw: []byte(raw)}
		}
		must(t, w.a.SaveHeat(w.ctx, []catalog.HeatPart{part(1, "a", "one"), part(16, "a", "sixteen")}))
		must(t, w.b.SaveHeat(w.ctx, []catalog.HeatPart{part(1, "b", "other")}))
		must(t, w.a.SaveHeat(w.ctx, []catalog.HeatPart{part(1, "a", "more")}))
		list := func(index int) string {
			parts, err := w.b.Heat(w.ctx, index)
			must(t, err)
			text := ""
			for _, part := range parts {
				text += fmt.Sprintf("%d %s %s;", part.Part, part.Gateway, part.Raw)
			}
			return text
		}
		if have := list(1) + list(16) + list(2); have != "1 a more;1 b other;16 a sixteen;" {
			t.Errorf("have %s", have)
		}
		must(t, w.b.DropHeat(w.ctx, part(1, "a", "one"))) // it has changed since
		must(t, w.b.DropHeat(w.ctx, part(16, "a", "sixteen")))
		must(t, w.b.SaveHeat(w.ctx, []catalog.HeatPart{{Part: 1, Gateway: "b"}}))
		if have := list(1) + list(16); have != "1 a more;" {
			t.Errorf("have %s", have)
		}
		w.audit(t)
	})
}

// A group says when it came under its scheme: a transition changes that, and nothing else does.
func TestGroupsSayWhenTheySettled(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		id := w.have(t, "k")
		made := w.now.UnixMilli()
		settled := func() int64 {
			var page []catalog.GroupSummary
			for groups, err := range w.b.GroupSummaries(w.ctx, block.GroupID{}) {
				must(t, err)
				page = append(page, groups...)
			}
			whole := w.group(t, id)
			for groups, err := range w.b.GroupRecords(w.ctx) {
				must(t, err)
				if len(groups) != 1 || !reflect.DeepEqual(groups[0], whole.Group) {
					t.Errorf("walked over %+v, it is %+v", groups, whole.Group)
				}
			}
			if len(page) != 1 || page[0].Settled != whole.Settled || page[0].ID != id || page[0].Class != whole.Class || page[0].Ladder != whole.Ladder ||
				page[0].Mode != whole.Mode || page[0].LayoutVersion != whole.LayoutVersion || page[0].Columns != whole.Columns ||
				page[0].Scheme != whole.Scheme || page[0].CellBytes != whole.CellBytes {
				t.Errorf("the summary %+v is not of %+v", page, whole.Group)
			}
			return whole.Settled
		}
		if settled() != made {
			t.Errorf("a new group settled at %d, it is %d", settled(), made)
		}
		w.now = w.now.Add(time.Hour)
		must(t, w.update(t, w.a, w.snapshot(t, "k")).commit(w))
		must(t, w.repair(t, w.a, w.group(t, id), parity, spare).commit(w))
		if settled() != made {
			t.Errorf("after an update and a repair the group settled at %d, it was made at %d", settled(), made)
		}
		moved := w.transition(t, w.a, w.group(t, id))
		moved.change.Groups[0].Scheme = "rep(2)"
		must(t, moved.commit(w))
		if settled() != w.now.UnixMilli() {
			t.Errorf("after a transition the group settled at %d, it is %d", settled(), w.now.UnixMilli())
		}
	})
}

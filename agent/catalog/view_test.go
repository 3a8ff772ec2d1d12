package catalog_test

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

type marks = map[block.NodeID]block.Watermark

func mark(at int64) block.Watermark {
	return block.Watermark{Contents: block.NewIncarnation(1, "A", ""), Mark: at}
}

// Gateways of this release and of the one before, which has the marks in the view, know each other's marks and signs of life.
func TestViewsOfTwoReleases(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		before := catalog.View{Gateway: "before", Count: 7, At: 70, Unheard: []block.NodeID{"n2"}, Water: marks{"n1": mark(3), "n2": mark(2)}}
		for _, view := range []catalog.View{before, {Gateway: "now", Count: 9, Water: marks{"n1": mark(4)}}} {
			_, err := w.engine.Update(w.ctx, nil, []kv.Write{{Key: schema.ViewKey(view.Gateway), Value: codec.Encode(view)}})
			must(t, err)
		}
		// What a gateway says that was of the release before: its marks are not in the view any more, and are not lost.
		must(t, w.a.PutMarks(w.ctx, "now", marks{"n1": mark(4)}))
		first := catalog.View{Gateway: "now", Count: 1, At: 1, Unheard: []block.NodeID{"n1"}}
		must(t, w.a.PutView(w.ctx, catalog.View{Gateway: "now"}, first))
		second := catalog.View{Gateway: "now", Count: 2, At: 2}
		must(t, w.a.PutView(w.ctx, first, second))

		views, err := w.b.Views(w.ctx)
		must(t, err)
		if len(views) != 2 || views[0].Count != 7 || views[1].Count != 2 ||
			!maps.Equal(views[0].Water, before.Water) || !maps.Equal(views[1].Water, marks{"n1": mark(4)}) {
			t.Errorf("views %+v", views)
		}
		signs, err := w.b.Signs(w.ctx)
		must(t, err)
		if len(signs) != 2 || signs[0].Gateway != "before" || signs[1].Gateway != "now" || signs[1].Count != 2 || signs[1].Water != nil {
			t.Errorf("signs of life %+v", signs)
		}

		// As the release before reads them: the last record of a gateway is its view, and the marks of all are taken.
		seen, water := map[string]catalog.View{}, marks{}
		must(t, kv.Each(w.ctx, w.engine, schema.PrefixView, func(record kv.Record) error {
			view, err := codec.Decode[catalog.View](record.Key, record.Value)
			for node, one := range view.Water {
				water[node] = water[node].Max(one)
			}
			seen[view.Gateway] = view
			return err
		}))
		if len(seen) != 2 || seen["now"].Count != 2 || !maps.Equal(water, marks{"n1": mark(4), "n2": mark(2)}) {
			t.Errorf("a gateway of the release before sees %+v and %v", seen, water)
		}
	})
}

// A view takes the place of any other, and is told of when other nodes are heard than before.
func TestViewsAreToldOfWhenTheyChange(t *testing.T) {
	onEveryEngine(t, func(t *testing.T, w *world) {
		tokens := w.b.Watch(w.ctx, catalog.SubjectViews)
		<-tokens // that it is watched
		isTold := func() bool {
			select {
			case <-tokens:
				return true
			default:
				return false
			}
		}
		var was catalog.View
		for count, step := range []struct {
			expected, unheard []block.NodeID
			told              bool
		}{
			{nil, nil, true},                                   // it has started
			{nil, nil, false},                                  // it lives
			{nil, []block.NodeID{"n1"}, true},                  // it does not hear a node
			{[]block.NodeID{"n2"}, []block.NodeID{"n2"}, true}, // the record is not what was expected
		} {
			is := catalog.View{Gateway: "a", Count: uint64(count + 1), Unheard: step.unheard}
			if step.expected != nil {
				was.Unheard = step.expected
			}
			must(t, w.a.PutView(w.ctx, was, is))
			if told := isTold(); told != step.told {
				t.Errorf("view %d is told of: %t, want %t", count+1, told, step.told)
			}
			signs, err := w.b.Signs(w.ctx)
			must(t, err)
			if len(signs) != 1 || signs[0].Count != is.Count || !slices.Equal(signs[0].Unheard, is.Unheard) {
				t.Errorf("after view %d there is %+v", count+1, signs)
			}
			was = is
		}
		raw, err := w.engine.Read(w.ctx, schema.ViewKey("a"))
		must(t, err)
		if !bytes.Equal(raw[0], codec.Encode(was)) {
			t.Error("what is expected of a view is not how it is kept")
		}
	})
}

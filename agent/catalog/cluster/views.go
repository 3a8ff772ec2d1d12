package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// PutView replaces the sign of life of a gateway, which is expected to be was; zero: that is not known. It tells of it unless it was as
// expected and the same nodes are not heard.
func (k *Keeper) PutView(ctx context.Context, was, is View) error {
	is.Water = nil
	key, value := schema.ViewKey(is.Gateway), codec.Encode(is)
	raw, isKnown := codec.Encode(was), was.Count > 0
	err := k.retry(ctx, func(ctx context.Context) (bool, error) {
		writes := []kv.Write{{Key: key, Value: value}}
		if !isKnown || !slices.Equal(was.Unheard, is.Unheard) {
			writes = append(writes, tell(SubjectViews))
		}
		if !isKnown {
			values, err := k.engine.Read(ctx, key)
			if err != nil {
				return false, err
			}
			if raw = values[0]; string(raw) == string(value) {
				return true, nil
			}
		}
		isKnown = false
		failed, err := k.engine.Update(ctx, []kv.Check{{Key: key, Value: raw}}, writes)
		return err == nil && len(failed) == 0, err
	})
	if err != nil {
		return fmt.Errorf("saving what gateway %s hears: %w", is.Gateway, err)
	}
	return nil
}

// PutMarks replaces the marks of stores that a gateway heard.
func (k *Keeper) PutMarks(ctx context.Context, gateway string, water map[block.NodeID]block.Watermark) error {
	if err := k.assign(ctx, schema.MarksKey(gateway), codec.Encode(View{Gateway: gateway, Water: water})); err != nil {
		return fmt.Errorf("saving the marks of stores that gateway %s heard: %w", gateway, err)
	}
	return nil
}

// Views returns the last views of all gateways there ever were, by gateway, with the marks of stores. One that has written only those
// has a Count of 0.
func (k *Keeper) Views(ctx context.Context) ([]View, error) {
	var views []View
	err := k.eachView(ctx, schema.PrefixView, func(view View) {
		i, _ := slices.BinarySearchFunc(views, view.Gateway, func(v View, gateway string) int { return strings.Compare(v.Gateway, gateway) })
		if i == len(views) || views[i].Gateway != view.Gateway {
			views = slices.Insert(views, i, View{Gateway: view.Gateway, Water: map[block.NodeID]block.Watermark{}})
		}
		all := views[i].Water
		for node, mark := range view.Water { // what an earlier release wrote is as good
			all[node] = all[node].Max(mark)
		}
		views[i] = view
		views[i].Water = all
	})
	return views, err
}

// Signs returns the views without the marks, but for what releases before this one wrote.
func (k *Keeper) Signs(ctx context.Context) (views []View, err error) {
	err = k.eachView(ctx, schema.PrefixView+"\x01", func(view View) { views = append(views, view) })
	return views, err
}

// eachView visits the records of views whose keys are greater than after.
func (k *Keeper) eachView(ctx context.Context, after string, visit func(View)) error {
	err := kv.EachAfter(ctx, k.engine, schema.PrefixView, after, func(record kv.Record) error {
		view, err := codec.Decode[View](record.Key, record.Value)
		if err == nil {
			visit(view)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("reading what gateways hear: %w", err)
	}
	return nil
}

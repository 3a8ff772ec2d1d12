package group

import (
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// Inside reads which objects live in a group, by the names that its blocks have.
func (g *Groups) Inside(ctx context.Context, id block.GroupID) (*catalog.Inside, error) {
	view, err := g.catalog.Group(ctx, id)
	if err != nil {
		return nil, err
	}
	names := &names{seen: map[string]bool{}}
	if err := g.addNames(ctx, view, names, map[block.GroupID]bool{}); err != nil {
		return nil, fmt.Errorf("reading which objects are in group %s: %w", id, err)
	}
	return g.catalog.Inside(ctx, id, names.list)
}

// names are keys, each once, in the order in which they were found.
type names struct {
	list []string
	seen map[string]bool
}

// addNames adds the names that blocks of a group have, or of the groups that its columns lie in, which name all that lies in these.
func (g *Groups) addNames(ctx context.Context, view *catalog.GroupView, to *names, read map[block.GroupID]bool) error {
	for _, id := range view.LiesIn() {
		if read[id] {
			continue
		}
		read[id] = true
		in, err := g.catalog.Group(ctx, id)
		if err != nil {
			return err
		}
		if err := g.addNames(ctx, in, to, read); err != nil {
			return err
		}
	}
	if view.IsDissolved() {
		return nil
	}
	var unread error
	carriers := []int{}
	for slot := view.Columns; slot < len(view.Slots); slot++ {
		carriers = append(carriers, slot)
	}
	for _, slot := range append(carriers, 0) { // the first column does not know of what was appended
		entries, err := g.SlotManifest(ctx, &view.Group, slot)
		if err != nil {
			unread = err
			continue
		}
		for i := range entries {
			key := string(entries[i].Key)
			for _, name := range []string{key, block.EarlierKey(key, entries[i].Revision)} { // it may have been put over since
				if !to.seen[name] {
					to.seen[name] = true
					to.list = append(to.list, name)
				}
			}
		}
		if len(entries) > 0 {
			return nil // each copy names all
		}
	}
	return unread
}

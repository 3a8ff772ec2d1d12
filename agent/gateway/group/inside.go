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
	names, seen := []string{}, map[string]bool{}
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
				if !seen[name] {
					seen[name] = true
					names = append(names, name)
				}
			}
		}
		if len(entries) > 0 {
			break // each copy names all
		}
	}
	if len(names) == 0 && unread != nil {
		return nil, fmt.Errorf("reading which objects are in group %s: %w", id, unread)
	}
	return g.catalog.Inside(ctx, id, names)
}

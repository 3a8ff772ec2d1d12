package object

import (
	"maps"
	"slices"
	"sync"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/arrange"
)

// inHalves commits a batch: a large one as the popular objects and the others, side by side, each a group of its own, so that what
// dies soon lies together.
func (b *batches) inHalves(whole *batch, commit func(*batch)) {
	keys := slices.Collect(maps.Keys(whole.entries))
	counts := b.objects.heat.Popularity.CountsOf(whole.key.class.HalfLife)
	popular := arrange.Halves(keys, func(key string) int { return len(whole.entries[key].data) }, counts)
	if popular == 0 {
		b.objects.Packing.groups.WithLabelValues(arrange.All).Inc()
		commit(whole)
		return
	}
	b.objects.Packing.groups.WithLabelValues(arrange.Popular).Inc()
	b.objects.Packing.groups.WithLabelValues(arrange.Others).Inc()
	halves := []*batch{whole.part(keys[:popular]), whole.part(keys[popular:])}
	var both sync.WaitGroup
	for _, half := range halves {
		both.Go(func() { commit(half) })
	}
	both.Wait()
	whole.result = map[string]api.Object{}
	for _, half := range halves {
		whole.join(half)
	}
}

// part is a batch of some of the objects of another, which nobody waits for.
func (b *batch) part(keys []string) *batch {
	part := &batch{key: b.key, entries: make(map[string]entry, len(keys)), refused: map[string]error{}}
	for _, key := range keys {
		part.entries[key] = b.entries[key]
	}
	return part
}

// join takes over what became of a part.
func (b *batch) join(part *batch) {
	maps.Copy(b.refused, part.refused)
	for key := range part.entries {
		if part.err != nil {
			b.refused[key] = part.err
		}
	}
	maps.Copy(b.result, part.result)
}

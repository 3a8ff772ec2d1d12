package temperature

import (
	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/heat"
)

// staysHot is which part of the reads that make a key a hot one have to be left of them for it to stay one: what is read about so often
// is not moved to and fro.
const staysHot = 0.5

// leastOwn is which part of the accesses of a group a gateway has to have counted to say which of its keys are hot.
const leastOwn = 1.0 / 8

// least is how much may be counted at most of what has cooled.
func least(keys *api.HotKeys) float64 { return staysHot * float64(keys.Reads) }

// IsOfHotKeys reports whether a group was written under the scheme of the hot keys of its class, and not brought to it as a whole.
func IsOfHotKeys(of *api.Class, group *catalog.GroupSummary) bool {
	return of.HotKeys != nil && group.Packed && group.Epoch == group.ID.Stamp && group.Scheme == of.HotKeys.Scheme.String()
}

// HoldsHotKeys reports whether a group lies where the hot keys of its class do and has as many accesses as a hot key of its own: such a
// group stays there, however cold it is for a group of its class. What has cooled in it leaves it key by key.
func (h *Thermometer) HoldsHotKeys(group *catalog.GroupSummary) bool {
	entry := h.classes.Named(group.Class)
	return entry != nil && IsOfHotKeys(&entry.Class, group) && h.holdsHotKeys(entry.HotKeys, h.tracker.Used(group.ID, h.options.Now()))
}

func (h *Thermometer) holdsHotKeys(keys *api.HotKeys, used heat.Use) bool {
	return used.Counted >= least(keys)
}

// Cooled says which keys have cooled of a group in which so many objects live, where hot keys of a class lie; nil: none that is known of.
//
// What is counted of groups is of all gateways and outlasts them; what is counted of keys is of this gateway and this start of it. So
// while all of the group is used less than one hot key would be, all has cooled but what this gateway reads itself. And while its
// objects are used less on average than hot keys would be, this gateway picks out which: once it has counted for a half-life, and
// where a good part of the accesses are its own, so that the others are taken to be of the same keys.
func (h *Thermometer) Cooled(of *api.Class, id block.GroupID, objects int64) func(key string) bool {
	now := h.options.Now()
	used := h.tracker.Used(id, now)
	counts, most := h.Popularity.CountsOf(of.HalfLife), least(of.HotKeys)
	scale := 1.0
	if h.holdsHotKeys(of.HotKeys, used) {
		if used.Counted >= most*float64(objects) || used.Own < leastOwn*used.Counted || now.Sub(h.Popularity.started) < of.HalfLife {
			return nil
		}
		scale = used.Counted / used.Own
	}
	return func(key string) bool { return counts(key).Reads*scale < most }
}

package member

import (
	"slices"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
)

// NodeStatus describes the members as they answered last.
func (a *Agents) NodeStatus() (nodes []api.NodeStatus) {
	for _, target := range a.All() {
		nodes = append(nodes, target.status())
	}
	return nodes
}

// NoteLeftovers takes note of what a search of a node's store found.
func (a *Agents) NoteLeftovers(id block.NodeID, found api.Leftovers) {
	target, err := a.Get(id)
	if err != nil {
		return // it was removed meanwhile
	}
	target.mutex.Lock()
	defer target.mutex.Unlock()
	target.leftovers = &found
}

// Leftovers returns what the last search of the node's store found; nil before the first.
func (t *Agent) Leftovers() *api.Leftovers {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.leftovers // never changed, but replaced
}

// silent is from when the silence of a node counts that is not trusted to answer; the zero time of one that is.
func (t *Agent) silent() time.Time {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.trusted() || t.Health.misses == 0 {
		return time.Time{}
	}
	return t.Health.quiet
}

// status describes a node as it answered last.
func (t *Agent) status() api.NodeStatus {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	store := t.Hello.Store
	node := api.NodeStatus{
		ID: t.Node.ID, Address: t.Node.Address, Domain: Domain(t.Node), Spare: t.Node.Spare,
		Release: t.Hello.Release, State: memberState(&t.Node, t.trusted(), t.Health.State),
		Store: store.Location, StoreKind: store.Kind, Durable: store.Durable, ValueLimit: store.ValueLimit,
		UsedBytes: store.UsedBytes, CapacityBytes: store.CapacityBytes, Volume: store.Volume, Warnings: slices.Clone(store.Warnings),
	}
	node.Leftovers = t.leftovers
	if t.trusted() {
		node.Rates = t.throughput.rates
	}
	if !t.Reachable && t.problem != nil {
		node.Warnings = append(node.Warnings, t.problem.Error())
	}
	return node
}

package member

import (
	"slices"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// NodeStatus describes the members as they answered last.
func (a *Agents) NodeStatus() (nodes []api.NodeStatus) {
	for _, target := range a.All() {
		nodes = append(nodes, target.status())
	}
	return nodes
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
		State: memberState(&t.Node, t.trusted(), t.Health.State),
		Store: store.Location, StoreKind: store.Kind, Durable: store.Durable, ValueLimit: store.ValueLimit,
		UsedBytes: store.UsedBytes, CapacityBytes: store.CapacityBytes, Volume: store.Volume, Warnings: slices.Clone(store.Warnings),
	}
	if t.trusted() {
		node.Rates = t.throughput.rates
	}
	if !t.Reachable && t.problem != nil {
		node.Warnings = append(node.Warnings, t.problem.Error())
	}
	return node
}

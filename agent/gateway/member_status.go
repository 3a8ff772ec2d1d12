package gateway

import (
	"slices"

	"github.com/restripe/restripe/agent/gateway/api"
)

// nodeStatus describes the members as they answered last.
func (a *agents) nodeStatus() (nodes []api.NodeStatus) {
	for _, target := range a.all() {
		nodes = append(nodes, target.status())
	}
	return nodes
}

// status describes a node as it answered last.
func (t *agent) status() api.NodeStatus {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	store := t.hello.Store
	node := api.NodeStatus{
		ID: t.node.ID, Address: t.node.Address, Domain: domain(t.node), Spare: t.node.Spare,
		State: memberState(&t.node, t.trusted(), t.health.state),
		Store: store.Location, StoreKind: store.Kind, Durable: store.Durable, ValueLimit: store.ValueLimit,
		UsedBytes: store.UsedBytes, CapacityBytes: store.CapacityBytes, Volume: store.Volume, Warnings: slices.Clone(store.Warnings),
	}
	if t.trusted() {
		node.Rates = t.throughput.rates
	}
	if !t.reachable && t.problem != nil {
		node.Warnings = append(node.Warnings, t.problem.Error())
	}
	return node
}

package gatewaysfake

import (
	"context"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
)

// Members are the nodes of a cluster that come and go, and their balance. The mutex is that of the cluster.
type Members struct {
	of      *Cluster
	agents  map[string]string // ids of agents that answer and are no members, by address
	removed map[string]bool   // nodes that were members
	balance api.Balance       // moves nothing, and ends when it is told to
	stuck   error             // why no balance begins
}

// StartAgent has the agent of a node that is no member answer at an address.
func (m *Members) StartAgent(id, address string) {
	m.of.mutex.Lock()
	defer m.of.mutex.Unlock()
	m.agents[address] = id
}

// RemoveNode makes a node no member any more; its agent goes on.
func (m *Members) RemoveNode(id string) {
	m.of.mutex.Lock()
	defer m.of.mutex.Unlock()
	m.of.nodes = slices.DeleteFunc(m.of.nodes, func(node api.NodeStatus) bool {
		if string(node.ID) != id {
			return false
		}
		m.agents[node.Address], m.removed[id] = id, true
		return true
	})
}

// SetBalance has the balance be in a state.
func (m *Members) SetBalance(state api.BalanceState) {
	m.of.mutex.Lock()
	defer m.of.mutex.Unlock()
	m.balance.State = state
}

// FailBalance has no balance begin, for a reason; nil ends that.
func (m *Members) FailBalance(err error) {
	m.of.mutex.Lock()
	defer m.of.mutex.Unlock()
	m.stuck = err
}

// Balance returns the balance as it is.
func (m *Members) Balance() api.Balance {
	m.of.mutex.Lock()
	defer m.of.mutex.Unlock()
	return m.balance
}

// enterNode makes a node a member.
func (m *Members) enterNode(node api.NodeStatus) {
	node.State, node.StoreKind, node.Durable, node.CapacityBytes = "up", "file", true, 4<<40
	m.of.nodes = append(m.of.nodes, node)
}

// AddNode makes a node a member whose agent answers.
func (m *Members) AddNode(_ context.Context, id string, request api.AddRequest) (api.AddedNode, error) {
	m.of.mutex.Lock()
	defer m.of.mutex.Unlock()
	if err := m.of.begin("AddNode"); err != nil {
		return api.AddedNode{}, err
	}
	switch isMember := slices.ContainsFunc(m.of.nodes, func(node api.NodeStatus) bool { return string(node.ID) == id }); {
	case isMember:
		return api.AddedNode{}, refusal(api.CodeConflict, "node %s is a member already", id)
	case m.removed[id]:
		return api.AddedNode{}, refusal(api.CodeConflict, "node %s was a member and is declared removed; run `restripe node up %s`", id, id)
	case m.agents[request.Address] == "":
		return api.AddedNode{}, refusal(api.CodeUnavailable, "no agent of node %s answers at %s", id, request.Address)
	case m.agents[request.Address] != id:
		return api.AddedNode{}, refusal(api.CodeConflict, "the agent at %s says it is node %s, not %s", request.Address, m.agents[request.Address], id)
	case request.Use == api.UseBalance && request.Spare:
		return api.AddedNode{}, refusal(api.CodeBadRequest, "node %s is to be a spare, which takes no blocks of others", id)
	}
	var answer api.AddedNode
	if request.DryRun {
		return answer, nil
	}
	m.enterNode(api.NodeStatus{ID: block.NodeID(id), Address: request.Address, Domain: request.Domain, Spare: request.Spare})
	delete(m.agents, request.Address)
	answer.Node = &api.NodeInfo{NodeStatus: m.of.nodes[len(m.of.nodes)-1]}
	if request.Use == api.UseBalance {
		balance, err := m.startBalance()
		if err != nil {
			return api.AddedNode{}, refusal(api.CodeUnknownOutcome, "node %s was added, and it is not known whether the balance began: %v", id, err)
		}
		answer.Balance = &balance
	}
	return answer, nil
}

// StartBalance begins a balance unless one is under way.
func (m *Members) StartBalance(_ context.Context, request api.BalanceRequest) (api.Balance, error) {
	m.of.mutex.Lock()
	defer m.of.mutex.Unlock()
	if err := m.of.begin("StartBalance"); err != nil {
		return api.Balance{}, err
	}
	balance, err := m.startBalance()
	if err == nil && request.BytesPerSecond != nil {
		m.balance.BytesPerSecond = *request.BytesPerSecond
		balance = m.balance
	}
	return balance, err
}

// startBalance begins a balance unless one is under way. The caller holds the mutex.
func (m *Members) startBalance() (api.Balance, error) {
	if m.stuck != nil {
		return api.Balance{}, m.stuck
	}
	if !m.balance.IsUnderWay() {
		m.balance = api.Balance{Number: m.balance.Number + 1, State: api.BalanceRunning}
	}
	return m.balance, nil
}

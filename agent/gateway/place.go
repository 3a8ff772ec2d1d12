package gateway

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// place chooses the nodes of a new group, one for every slot the ladder may ever use: nodes that take blocks and
// answer, distinct, of distinct failure domains as far as there are enough. Successive groups rotate over the nodes, so
// that every node carries data and parity evenly.
func (g *Gateway) place(class *Class, id block.GroupID) ([]block.NodeID, error) {
	want := class.nodesNeeded()
	var candidates []catalog.Node
	members := 0
	var problem error // of the first node that does not serve
	for _, target := range g.agents.all() {
		members++
		reachable, cause, _ := target.state()
		switch {
		case reachable && target.node.State == catalog.NodeUp:
			candidates = append(candidates, target.node)
		case !reachable && cause != nil && problem == nil:
			problem = fmt.Errorf("node %s: %w", target.node.ID, cause)
		}
	}
	if len(candidates) < want {
		short := refuse(ErrTooFewNodes, "class %s (ladder %s) lays each group over %d nodes (%d data columns and %d parity rows), and %d of %d nodes take blocks now; bring nodes back, add some, or use a narrower ladder",
			class.Name, class.Ladder, want, class.Ladder.Width(), class.Ladder.MaxParity(), len(candidates), members)
		if problem != nil {
			return nil, fmt.Errorf("%w; %w", short, problem)
		}
		return nil, short
	}
	hash := fnv.New64a()
	var number [8]byte
	binary.LittleEndian.PutUint64(number[:], id.Stamp.Sequence)
	hash.Write(number[:])
	first := int((hash.Sum64()>>1)+uint64(id.Index)) % len(candidates)
	if first < 0 {
		first = -first
	}
	rotated := append(append([]catalog.Node{}, candidates[first:]...), candidates[:first]...)
	return spread(rotated, want), nil
}

// spread takes want nodes in order, preferring ones whose failure domain is used least so far.
func spread(nodes []catalog.Node, want int) []block.NodeID {
	used := map[string]int{}
	taken := make([]bool, len(nodes))
	chosen := make([]block.NodeID, 0, want)
	for len(chosen) < want {
		best := -1
		for i, node := range nodes {
			if !taken[i] && (best < 0 || used[domain(node)] < used[domain(nodes[best])]) {
				best = i
			}
		}
		taken[best] = true
		used[domain(nodes[best])]++
		chosen = append(chosen, nodes[best].ID)
	}
	return chosen
}

func domain(node catalog.Node) string {
	if node.Domain == "" {
		return "node/" + string(node.ID)
	}
	return node.Domain
}

// substitute chooses a node that is not among taken, for a slot whose own node does not take blocks.
func (g *Gateway) substitute(taken map[block.NodeID]bool) (block.NodeID, bool) {
	domains := map[string]bool{}
	for _, target := range g.agents.all() {
		if taken[target.node.ID] {
			domains[domain(target.node)] = true
		}
	}
	var fallback block.NodeID
	for _, target := range g.agents.all() {
		reachable, _, _ := target.state()
		if !reachable || target.node.State != catalog.NodeUp || taken[target.node.ID] {
			continue
		}
		if !domains[domain(target.node)] {
			return target.node.ID, true
		}
		if fallback == "" {
			fallback = target.node.ID
		}
	}
	return fallback, fallback != ""
}

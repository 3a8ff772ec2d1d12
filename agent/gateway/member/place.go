package member

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
)

// Place chooses the nodes of a new group, one for every slot the ladder may ever use: nodes that take blocks and
// answer, distinct, of distinct failure domains as far as there are enough. Successive groups rotate over the nodes, so
// that every node carries data and parity evenly: turn is the next of Turns for each put, and index that of the group in it. Spares are
// taken only where the others are too few.
func (a *Agents) Place(class *api.Class, turn uint64, index uint32) ([]block.NodeID, error) {
	want := class.Nodes()
	var candidates, spares []catalog.Node
	members := 0
	var problem error // of the first node that does not serve
	for _, target := range a.All() {
		members++
		reachable, cause, _ := target.State()
		switch {
		case reachable && target.Node.TakesBlocks() && target.Node.Spare:
			spares = append(spares, target.Node)
		case reachable && target.Node.TakesBlocks():
			candidates = append(candidates, target.Node)
		case !reachable && cause != nil && problem == nil:
			problem = fmt.Errorf("node %s: %w", target.Node.ID, cause)
		}
	}
	if short := want - len(candidates); short > 0 {
		candidates = append(candidates, rotate(spares, turn, index)[:min(short, len(spares))]...)
	}
	if len(candidates) < want {
		short := api.Refuse(api.ErrTooFewNodes, "class %s (ladder %s) lays each group over %d nodes (%d data columns and %d parity rows), and %d of %d nodes take blocks now; bring nodes back, add some, or use a narrower ladder",
			class.Name, class.Ladder, want, class.Ladder.Width(), class.Ladder.MaxParity(), len(candidates), members)
		if problem != nil {
			return nil, fmt.Errorf("%w; %w", short, problem)
		}
		return nil, short
	}
	return spread(rotate(candidates, turn, index), want), nil
}

// rotate returns the nodes in their order, begun at a place that turn and index decide.
func rotate(nodes []catalog.Node, turn uint64, index uint32) []catalog.Node {
	if len(nodes) == 0 {
		return nil
	}
	hash := fnv.New64a()
	var number [8]byte
	binary.LittleEndian.PutUint64(number[:], turn)
	hash.Write(number[:])
	first := int((hash.Sum64()>>1)+uint64(index)) % len(nodes)
	if first < 0 {
		first = -first
	}
	return append(append([]catalog.Node{}, nodes[first:]...), nodes[:first]...)
}

// spread takes want nodes in order, preferring ones whose failure domain is used least so far.
func spread(nodes []catalog.Node, want int) []block.NodeID {
	used := map[string]int{}
	taken := make([]bool, len(nodes))
	chosen := make([]block.NodeID, 0, want)
	for len(chosen) < want {
		best := -1
		for i, node := range nodes {
			if !taken[i] && (best < 0 || used[Domain(node)] < used[Domain(nodes[best])]) {
				best = i
			}
		}
		taken[best] = true
		used[Domain(nodes[best])]++
		chosen = append(chosen, nodes[best].ID)
	}
	return chosen
}

// Around chooses the nodes of a new group whose first columns are to lie on nodes held, those first that are named first, and of as many
// of them as can be; the others as Place does it, without spares. It is false where too few nodes can take the group, or its failure
// domains would be fewer than those of other groups. columns is how many of the nodes held have one.
func (a *Agents) Around(class *api.Class, held []block.NodeID) (home []block.NodeID, columns int, found bool) {
	usual, err := a.Place(class, 0, 0)
	if err != nil {
		return nil, 0, false
	}
	able := map[block.NodeID]catalog.Node{}
	var candidates []Candidate
	for _, target := range a.All() {
		if reachable, _, _ := target.State(); reachable && target.Node.TakesBlocks() && !target.Node.Spare {
			able[target.Node.ID] = target.Node
			candidates = append(candidates, Candidate{Node: target.Node, chosen: target.chosen.Load()})
		}
	}
	most, counts := 0, map[string]int{}
	for _, id := range usual {
		domain := Domain(able[id])
		counts[domain]++
		most = max(most, counts[domain])
	}
	if home, columns, found = around(candidates, held, class.Ladder.Width(), class.Nodes(), most); !found {
		return nil, 0, false
	}
	for _, id := range home[columns:] {
		a.Choose(id)
	}
	return home, columns, true
}

// around takes at most so many columns from the nodes held, and others for what is wanted besides, at most so many of one failure domain.
func around(candidates []Candidate, held []block.NodeID, width, want, most int) (home []block.NodeID, columns int, found bool) {
	used := map[string]int{}
	take := func(id block.NodeID) {
		at := slices.IndexFunc(candidates, func(c Candidate) bool { return c.Node.ID == id })
		if at >= 0 && used[Domain(candidates[at].Node)] < most {
			used[Domain(candidates[at].Node)]++
			home = append(home, id)
			candidates = slices.Delete(candidates, at, at+1)
		}
	}
	candidates = slices.Clone(candidates)
	for _, id := range held {
		if len(home) < width {
			take(id)
		}
	}
	columns = len(home)
	for len(home) < want {
		before := len(home)
		if next, found := ChooseSubstitute(candidates, used); found {
			take(next)
		}
		if len(home) == before {
			return nil, 0, false
		}
	}
	return home, columns, columns > 0
}

// Domain is the failure domain of a node; one that declares none is a domain of its own.
func Domain(node catalog.Node) string {
	if node.Domain == "" {
		return "node/" + string(node.ID)
	}
	return node.Domain
}

// Substitute chooses a node that is not among taken, for a slot whose own node does not take blocks.
func (a *Agents) Substitute(taken map[block.NodeID]bool) (block.NodeID, bool) {
	best, found := ChooseSubstitute(a.Candidates(taken))
	if found {
		a.Choose(best)
	}
	return best, found
}

// Candidates returns the nodes that can take a slot of a group that lies on the nodes taken, and how many of those are in
// each failure domain: only such as take blocks, as the others are about to be left.
func (a *Agents) Candidates(taken map[block.NodeID]bool) ([]Candidate, map[string]int) {
	used := map[string]int{}
	var free []Candidate
	for _, target := range a.All() {
		if trusted, _, _ := target.State(); !trusted || !target.Node.TakesBlocks() {
			continue
		}
		if taken[target.Node.ID] {
			used[Domain(target.Node)]++
			continue
		}
		free = append(free, Candidate{Node: target.Node, replaces: taken[target.Node.Replaces], chosen: target.chosen.Load()})
	}
	return free, used
}

// Choose takes note that a node was chosen as a substitute.
func (a *Agents) Choose(id block.NodeID) {
	if target, err := a.Get(id); err == nil {
		target.chosen.Add(1)
	}
}

// Candidate is a node that can take a slot.
type Candidate struct {
	Node     catalog.Node
	replaces bool  // it is there for a node of this group
	chosen   int64 // how often it was chosen before
}

// ChooseSubstitute returns the node for one more slot of a group whose others lie in the failure domains used: of those
// in the least used domain the one that was entered for the purpose, else a spare, else the one that was chosen least.
func ChooseSubstitute(candidates []Candidate, used map[string]int) (block.NodeID, bool) {
	if len(candidates) == 0 {
		return "", false
	}
	last := func(is bool) int {
		if is {
			return 0
		}
		return 1
	}
	best := slices.MinFunc(candidates, func(a, b Candidate) int {
		return cmp.Or(
			cmp.Compare(used[Domain(a.Node)], used[Domain(b.Node)]),
			cmp.Compare(last(a.replaces), last(b.replaces)),
			cmp.Compare(last(a.Node.Spare), last(b.Node.Spare)),
			cmp.Compare(a.chosen, b.chosen),
			cmp.Compare(a.Node.ID, b.Node.ID),
		)
	})
	return best.Node.ID, true
}

// DomainOf names the failure domain of a node.
func (a *Agents) DomainOf(id block.NodeID) string {
	target, err := a.Get(id)
	if err != nil {
		return "node/" + string(id)
	}
	return Domain(target.Node)
}

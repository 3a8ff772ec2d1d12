package pools

import (
	"fmt"
	"slices"
	"strings"
)

// Removal says which pools to remove.
type Removal struct {
	Nodes       []string         // buckets whose pools go; default: all that Restripe owns
	Objects     map[string]int64 // by pool, how many objects it holds, at least 1 where it is not empty
	DestroyData bool             // remove pools that are not empty, too
}

// PrepareRemoval plans the removal of pools that Restripe owns, and of their rules. Pools with objects are refused unless
// their data is to be destroyed. It is pure; the error is a *RefusedError.
func PrepareRemoval(s *State, r Removal) (*Plan, error) {
	p := &planner{state: s, plan: &Plan{}}
	for _, name := range r.Nodes {
		if !slices.ContainsFunc(s.Nodes(), func(n NodePool) bool { return n.Node == name }) {
			p.refuse("No pool of Restripe's stands for the node %s; `restripe ceph check` lists those there are.", name)
		}
	}
	for _, n := range s.Nodes() {
		if len(r.Nodes) == 0 || slices.Contains(r.Nodes, n.Node) {
			p.remove(n, r)
		}
	}
	if len(p.refused) > 0 {
		return nil, &RefusedError{Reasons: p.refused}
	}
	return p.plan, nil
}

func (p *planner) remove(n NodePool, r Removal) {
	pool := p.state.Pool(n.Pool)
	objects := r.Objects[n.Pool]
	if objects > 0 && !r.DestroyData {
		p.refuse("The pool %s of node %s is not empty: drain the node first (`restripe node drain`), or say --destroy-data if what is in it may be lost.", n.Pool, n.Node)
		return
	}
	rule := p.state.ruleOf(pool)
	p.plan.Nodes = append(p.plan.Nodes, NodePlan{
		Node: n.Node, Type: pool.mark(markType), Domain: n.Domain, OSDs: n.OSDs, Pool: n.Pool, Rule: pool.mark(markRule),
		PlacementGroups: pool.PlacementGroups, Action: ActionRemove,
	})
	text := "remove the empty pool %s"
	if objects > 0 {
		text = "remove the pool %s AND THE DATA IN IT"
	}
	p.step("osd pool delete", map[string]any{"pool": n.Pool, "pool2": n.Pool, "yes_i_really_really_mean_it": true}, text, n.Pool)
	// A rule goes with the pool it was made for, unless somebody has put it to another use.
	if rule == nil || rule.Name != pool.mark(markRule) {
		return
	}
	for i := range p.state.Pools {
		if other := &p.state.Pools[i]; other.Rule == rule.ID && other.ID != pool.ID {
			p.note("The rule %s stays: the pool %s uses it, too.", rule.Name, other.Name)
			return
		}
	}
	p.step("osd crush rule rm", map[string]any{"name": rule.Name}, "remove the rule %s", rule.Name)
}

// ExplainDeletion adds to an error of Plan.Apply what to do where monitors do not delete pools at all.
func ExplainDeletion(err error) error {
	if err == nil || !refusedWith(err, codeNotPermitted) || !strings.Contains(err.Error(), "pool") {
		return err
	}
	return fmt.Errorf("%w\nMonitors guard all pools against deletion. To allow it for a moment:\n"+
		"  ceph config set mon mon_allow_pool_delete true\n  (again what you did)\n  ceph config rm mon mon_allow_pool_delete", err)
}

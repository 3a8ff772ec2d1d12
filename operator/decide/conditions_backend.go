package decide

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
)

// BackendView is what BackendConditions looks at.
type BackendView struct {
	Now         time.Time
	Backend     *v1alpha1.StorageBackend
	Nodes       []v1alpha1.NodeStatus // as WithMissing has them
	Unreachable *Problem              // no gateway answers
	Behind      string                // how the catalog was found to be behind its nodes, empty if it was not
	Declined    *Problem              // what is declared cannot be
	Untold      *Problem              // the gateways would not take what is declared of nodes or of repair
	NotAdded    *Problem              // declared nodes could not be added, or what follows from that not be begun
	Moved       []string              // as MovedNodes has them
	Repair      RepairSight
	NotWhole    int64        // groups with blocks missing, at the last count
	CanLose     *int32       // nil: nothing is stored, or not Counted
	Counted     bool         // with the nodes in the states they are in
	Unmanaged   []ClassCount // classes with objects that no policy manages; nil: not counted yet
	InUse       string       // what keeps a deleted backend: policies, objects; empty: nothing
}

// nodeMissing is the state of a declared node that no gateway knows.
const nodeMissing = "missing"

// WithMissing adds the declared nodes that no gateway knows to those that are known, by name.
func WithMissing(declared []v1alpha1.BackendNode, known []v1alpha1.NodeStatus) []v1alpha1.NodeStatus {
	all := slices.Clone(known)
	for _, node := range declared {
		if !slices.ContainsFunc(all, func(n v1alpha1.NodeStatus) bool { return n.Name == node.Name }) {
			all = append(all, v1alpha1.NodeStatus{
				Name: node.Name, Address: node.Address, FailureDomain: node.FailureDomain, State: nodeMissing,
			})
		}
	}
	slices.SortFunc(all, func(a, b v1alpha1.NodeStatus) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// NewNodes are the declared nodes with an address that no gateway knows.
func NewNodes(declared []v1alpha1.BackendNode, known []v1alpha1.NodeStatus) []v1alpha1.BackendNode {
	return slices.DeleteFunc(slices.Clone(declared), func(node v1alpha1.BackendNode) bool {
		return node.Address == "" || slices.ContainsFunc(known, func(n v1alpha1.NodeStatus) bool { return n.Name == node.Name })
	})
}

// MovedNodes says of which members the address is another one than declared.
func MovedNodes(declared []v1alpha1.BackendNode, known []v1alpha1.NodeStatus) (moved []string) {
	for _, node := range declared {
		at := slices.IndexFunc(known, func(n v1alpha1.NodeStatus) bool { return n.Name == node.Name })
		if node.Address != "" && at >= 0 && known[at].Address != node.Address && known[at].State != nodeMissing {
			moved = append(moved, fmt.Sprintf("%s is at %s and declared at %s", node.Name, known[at].Address, node.Address))
		}
	}
	return moved
}

// NodePlace is what the gateways are to be told of a node.
type NodePlace struct {
	Node          string
	FailureDomain *string
	Spare         *bool
}

// NodePlaces are the declared nodes that the gateways know otherwise, with what differs.
func NodePlaces(declared []v1alpha1.BackendNode, known []v1alpha1.NodeStatus) []NodePlace {
	var places []NodePlace
	for _, node := range declared {
		at := slices.IndexFunc(known, func(n v1alpha1.NodeStatus) bool { return n.Name == node.Name })
		if at < 0 {
			continue
		}
		place := NodePlace{Node: node.Name}
		if node.FailureDomain != "" && node.FailureDomain != known[at].FailureDomain {
			place.FailureDomain = &node.FailureDomain
		}
		if node.Spare != nil && *node.Spare != known[at].Spare {
			place.Spare = node.Spare
		}
		if place.FailureDomain != nil || place.Spare != nil {
			places = append(places, place)
		}
	}
	return places
}

// NodesSummary is "12 of 14": nodes up, of those that should be.
func NodesSummary(nodes []v1alpha1.NodeStatus) string {
	up := 0
	for _, node := range nodes {
		if node.State == nodeUp {
			up++
		}
	}
	return fmt.Sprintf("%d of %d", up, len(nodes))
}

// UsedSummary is "1.2 GiB of 4.0 TiB".
func UsedSummary(used, capacity int64) string {
	if capacity <= 0 {
		return words.Bytes(used)
	}
	return words.Bytes(used) + " of " + words.Bytes(capacity)
}

// BackendConditions are the conditions of a backend.
func BackendConditions(v BackendView) []metav1.Condition {
	c := newConditions(backendTypes, v.Backend.Generation)
	c.unless(v1alpha1.ConditionAccepted, v.Declined, ReasonAccepted, words.Count(int64(len(v.Backend.Spec.Gateways)), "gateway")+" declared")
	degraded := v.degraded()
	switch {
	case v.Unreachable != nil:
		c.unknown(v1alpha1.ConditionDegraded, v.Unreachable.Reason, v.Unreachable.Message)
	default:
		c.when(v1alpha1.ConditionDegraded, degraded, ReasonWhole, v.whole())
	}
	v.managed(c)
	v.added(c)
	behind := v.behind(c)
	switch {
	case v.Backend.DeletionTimestamp != nil && v.InUse != "":
		c.kstatus(nil, problem(ReasonInUse, "deleted, and kept because of %s", v.InUse), "")
	case v.Declined != nil:
		c.kstatus(v.Declined, nil, "")
	case v.Unreachable != nil:
		c.kstatus(nil, v.Unreachable, "")
	case behind != nil: // a person has to decide
		c.kstatus(behind, nil, "")
	case v.Untold != nil:
		c.kstatus(nil, v.Untold, "")
	case v.NotAdded != nil:
		c.kstatus(nil, v.NotAdded, "")
	case degraded != nil && degraded.Reason == ReasonRedundancyMissing:
		c.kstatus(nil, degraded, "")
	default:
		c.kstatus(nil, nil, v.whole())
	}
	return c.since(v.Backend.Status.Conditions, v.Now)
}

// added sets the condition NodesAdded. That a member is elsewhere than declared is said and is no reason not to be ready: it may
// have moved, and the declaration be old.
func (v *BackendView) added(c *conditions) {
	declared := slices.DeleteFunc(slices.Clone(v.Backend.Spec.Nodes), func(n v1alpha1.BackendNode) bool { return n.Address == "" })
	why := v.NotAdded
	if why == nil && len(v.Moved) > 0 {
		why = problem(ReasonAddressDiffers, "%s; correct spec.nodes, or if the node has moved, say `restripe node replace NODE --address ADDRESS`",
			strings.Join(v.Moved, ", "))
	}
	switch {
	case v.Unreachable != nil:
		c.unknown(v1alpha1.ConditionNodesAdded, v.Unreachable.Reason, v.Unreachable.Message)
	case len(declared) == 0:
		c.yes(v1alpha1.ConditionNodesAdded, ReasonNodesAdded, "no node is declared with an address")
	default:
		c.unless(v1alpha1.ConditionNodesAdded, why, ReasonNodesAdded,
			words.Count(int64(len(declared)), "node")+" declared with an address, all members")
	}
}

// behind sets the condition CatalogBehind and returns why it is true.
func (v *BackendView) behind(c *conditions) *Problem {
	if v.Unreachable != nil {
		c.unknown(v1alpha1.ConditionCatalogBehind, v.Unreachable.Reason, v.Unreachable.Message)
		return nil
	}
	var behind *Problem
	if v.Behind != "" {
		behind = problem(ReasonCatalogBehind, "%s; if this catalog counts, say `restripe catalog claim`", v.Behind)
	}
	c.when(v1alpha1.ConditionCatalogBehind, behind, ReasonCatalogUpToDate, "no node knows more than the catalog")
	return behind
}

// degraded is what is missing: redundancy first, then nodes. A suspect node has missed a few probes, which says little.
func (v *BackendView) degraded() *Problem {
	away := v.inStates(func(state string) bool { return state != nodeUp && state != nodeSuspect && state != nodeDraining })
	nodes := strings.Join(away, ", ")
	before := meta.FindStatusCondition(v.Backend.Status.Conditions, v1alpha1.ConditionDegraded)
	switch {
	case v.NotWhole > 0:
		verb := "miss"
		if v.NotWhole == 1 {
			verb = "misses"
		}
		return problem(ReasonRedundancyMissing, "%s", sentences(fmt.Sprintf("%s %s blocks; %s", words.Count(v.NotWhole, "group"), verb, v.losable()), nodes, v.Repair.waits()))
	case !v.Counted && before != nil && before.Reason == ReasonRedundancyMissing:
		return &Problem{Reason: before.Reason, Message: before.Message}
	case len(away) > 0:
		return problem(ReasonNodesMissing, "%s", sentences(nodes, v.losable(), v.Repair.waits()))
	}
	return nil
}

func (v *BackendView) whole() string {
	nodes := append([]string{NodesSummary(v.Nodes) + " nodes up"}, v.inStates(func(state string) bool { return state == nodeSuspect || state == nodeDraining })...)
	return sentences(strings.Join(nodes, ", "), v.losable())
}

// inStates lists nodes of some states, with these.
func (v *BackendView) inStates(among func(state string) bool) (list []string) {
	for _, node := range v.Nodes {
		if among(node.State) {
			list = append(list, node.Name+" "+node.State)
		}
	}
	return list
}

func (v *BackendView) losable() string {
	switch {
	case !v.Counted:
		return "how many more nodes may be lost is being counted"
	case v.CanLose == nil:
		return "nothing is stored"
	}
	return "every object survives the loss of " + words.Count(int64(*v.CanLose), "more node")
}

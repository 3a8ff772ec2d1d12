package operator_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/operator"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/controller"
	"github.com/restripe/restripe/operator/gateways/gatewaysfake"
	"github.com/restripe/restripe/operator/operatortest"
)

// declares changes which nodes the backend disks has, and what for.
func (w *world) declares(spec string) {
	w.t.Helper()
	b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
	w.patch(b, `{"spec":`+spec+`}`)
}

// saysOfNodes waits until the condition NodesAdded of a backend has the reason and says all of that.
func (w *world) saysOfNodes(name, reason string, parts ...string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("NodesAdded is %s, with %q", reason, parts), func() bool {
		b, found := get(w, &v1alpha1.StorageBackend{}, name)
		if !found {
			return false
		}
		c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionNodesAdded)
		return c != nil && c.Reason == reason && c.ObservedGeneration == b.Generation &&
			!slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(c.Message, part) })
	})
}

func isMember(t *testing.T, g *gatewaysfake.Cluster, id string) bool {
	t.Helper()
	status, err := g.StatusBrief(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(status.Nodes, func(node api.NodeStatus) bool { return string(node.ID) == id })
}

func TestABackendAddsItsNodes(t *testing.T) {
	w := newWorld(t)
	g := w.gateway("disks")
	w.apply(backend("disks"))
	w.operator()
	w.saysOfNodes("disks", "NodesAdded", "no node is declared with an address")
	g.StartAgent("n17", "a:7400")
	w.declares(`{"nodes":[{"name":"n17","address":"a:7400","failureDomain":"rack9","spare":true},` +
		`{"name":"n18","address":"b:7400"},{"name":"n40"}]}`)
	w.saysOfNodes("disks", "NodesNotAdded", "not added: node n18: no agent of node n18 answers at b:7400")
	w.eventually("n17 is there and n18 is missing", func() bool {
		b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
		has := func(want v1alpha1.NodeStatus) bool {
			return slices.ContainsFunc(b.Status.Nodes, func(n v1alpha1.NodeStatus) bool {
				return n.Name == want.Name && n.Address == want.Address && n.FailureDomain == want.FailureDomain && n.State == want.State &&
					n.Spare == want.Spare
			})
		}
		ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
		return has(v1alpha1.NodeStatus{Name: "n17", Address: "a:7400", FailureDomain: "rack9", State: "up", Spare: true}) &&
			has(v1alpha1.NodeStatus{Name: "n18", Address: "b:7400", State: "missing"}) && ready.Reason == "NodesNotAdded"
	})
	before := g.Calls()["AddNode"]
	w.rest(20 * time.Minute) // and not 120 times
	if tries := g.Calls()["AddNode"] - before; tries < 2 || tries > 12 {
		t.Errorf("a node without an agent was tried to be added %d times in 20 minutes", tries)
	}
	g.StartAgent("n18", "b:7400")
	w.saysOfNodes("disks", "NodesAdded", "2 nodes declared with an address, all members")
	if g.Balance().Number != 0 || !isMember(t, g, "n18") || isMember(t, g, "n40") {
		t.Errorf("the balance is %+v", g.Balance())
	}
	g.RemoveNode("n18")
	w.saysOfNodes("disks", "NodesNotAdded", "node n18: node n18 was a member and is declared removed; run `restripe node up n18`")
	w.rest(10 * time.Minute)
	if isMember(t, g, "n18") {
		t.Error("a node that a person removed is a member again")
	}
	before = g.Calls()["AddNode"]
	w.declares(`{"nodes":[{"name":"n17","address":"elsewhere:7400","spare":true}]}`)
	w.saysOfNodes("disks", "AddressDiffers", "n17 is at a:7400 and declared at elsewhere:7400", "restripe node replace")
	w.eventually("it is ready all the same", func() bool {
		b, _ := get(w, &v1alpha1.StorageBackend{}, "disks")
		return is(b, b.Status.Conditions, v1alpha1.ConditionReady)
	})
	if g.Calls()["AddNode"] != before {
		t.Error("a member that is declared elsewhere was added")
	}
}

func TestABackendFillsTheNodesThatItAdds(t *testing.T) {
	w := newWorld(t)
	g := w.gateway("disks")
	w.apply(backend("disks"))
	w.operator()
	nodes := []string{`{"name":"n17","address":"n17:7400"}`}
	add := func(more ...string) {
		t.Helper()
		for _, id := range more {
			nodes = append(nodes, `{"name":"`+id+`","address":"`+id+`:7400"}`)
			g.StartAgent(id, id+":7400")
		}
		w.declares(`{"use":"Balance","nodes":[` + strings.Join(nodes, ",") + `]}`)
		w.saysOfNodes("disks", "NodesAdded", fmt.Sprintf("%d node", len(nodes)), "all members")
	}
	is := func(number int64, state api.BalanceState) {
		t.Helper()
		w.rest(time.Minute)
		if balance := g.Balance(); balance.Number != number || balance.State != state {
			t.Errorf("balance %d is %s, want balance %d %s", balance.Number, balance.State, number, state)
		}
	}
	g.StartAgent("n17", "n17:7400")
	add("n18", "n19")
	is(1, api.BalanceRunning)
	g.SetBalance(api.BalancePaused)
	add("n20")
	is(1, api.BalancePaused)
	g.SetBalance(api.BalanceCancelled)
	is(1, api.BalanceCancelled)
	add("n21")
	is(2, api.BalanceRunning)
	g.SetBalance(api.BalanceDone)
	is(2, api.BalanceDone)

	g.FailBalance(fmt.Errorf("%w: no catalog", api.ErrUnavailable))
	g.StartAgent("n22", "n22:7400")
	nodes = append(nodes, `{"name":"n22","address":"n22:7400"}`)
	w.declares(`{"nodes":[` + strings.Join(nodes, ",") + `]}`)
	w.saysOfNodes("disks", "BalanceNotBegun", "node n22 was added, and the balance did not begin", "no catalog")
	g.FailBalance(nil)
	w.saysOfNodes("disks", "NodesAdded")
	is(3, api.BalanceRunning)
}

// TestRealGatewaysGetNodes: a node that is declared is added over HTTP, and filled by what others hold.
func TestRealGatewaysGetNodes(t *testing.T) {
	cluster := operatortest.Start(t, 14)
	g := cluster.Gateway
	for i := range 40 {
		data := bytes.NewReader(make([]byte, 100<<10))
		if _, err := g.Put(t.Context(), fmt.Sprint("o/", i), data, api.PutOptions{Size: 100 << 10}); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t)
	added := cluster.StartAgent("n15")
	w.apply("apiVersion: restripe.io/v1alpha1\nkind: StorageBackend\nmetadata: {name: real}\n" +
		"spec: {type: file, gateways: ['" + cluster.Front.URL + "'], " +
		"use: Balance, nodes: [{name: n15, address: '" + added + "', failureDomain: rack15}, {name: n16, address: '" + added + "'}]}\n")
	w.operator(func(o *operator.Options) {
		o.Clock, o.Dial = clock.RealClock{}, nil
		o.Intervals = controller.Intervals{Look: 300 * time.Millisecond, Progress: 100 * time.Millisecond}
	})
	w.saysOfNodes("real", "NodesNotAdded", "n16: ", added+" is the address of node n15")
	w.eventually("n15 holds its share", func() bool {
		balance, err := g.Balance(t.Context())
		if err != nil || balance.State != api.BalanceDone {
			return false
		}
		n, err := g.Node(t.Context(), "n15")
		return err == nil && n.Domain == "rack15" && n.SlotBytes > 0 && n.SlotBytes*2 > n.FairBytes
	})
	b, _ := get(w, &v1alpha1.StorageBackend{}, "real")
	w.patch(b, `{"spec":{"nodes":[{"name":"n15","address":"`+added+`"}]}}`)
	w.saysOfNodes("real", "NodesAdded", "1 node declared with an address")
	if balance, err := g.Balance(t.Context()); err != nil || balance.Number != 1 {
		t.Errorf("the balance is %+v, %v", balance, err)
	}
}

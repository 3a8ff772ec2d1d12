package decide

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// backendOf has nodes n1, n2, ... in failure domains d1, d2, ... by turns; 0 domains: none declared.
func backendOf(nodes, domains int) *v1alpha1.StorageBackend {
	backend := &v1alpha1.StorageBackend{ObjectMeta: metav1.ObjectMeta{Name: "demo", Generation: 1}}
	backend.Status.LastSeen = &metav1.Time{}
	backend.Status.Capabilities.Durable = true
	for i := range nodes {
		node := v1alpha1.NodeStatus{Name: fmt.Sprintf("n%d", i+1), State: nodeUp}
		if domains > 0 {
			node.FailureDomain = fmt.Sprintf("d%d", i%domains+1)
		}
		backend.Status.Nodes = append(backend.Status.Nodes, node)
	}
	return backend
}

// A policy knows when its objects miss blocks, and when new ones are refused.
func TestImpaired(t *testing.T) {
	class := &mustDeclare(t, mediaPolicy("rep(3) rs(12,2)")).Class
	for _, c := range []struct {
		intent   string
		nodes    int
		down     int
		notWhole int64
		reason   string
		says     string
	}{
		{"a spare node is down", 15, 1, 0, "", ""},
		{"groups miss blocks", 15, 1, 3, ReasonRedundancyMissing, "blocks are missing of 3 groups of the class"},
		{"too few nodes take blocks", 14, 1, 0, ReasonPutsRefused, "over 14 nodes and 13 of 14 take blocks"},
		{"both", 14, 1, 1, ReasonPutsRefused, "; blocks are missing of 1 group of the class"},
	} {
		backend := backendOf(c.nodes, 0)
		for i := range c.down {
			backend.Status.Nodes[i].State = "down"
		}
		got := Impaired(class, backend, c.notWhole)
		if (got == nil) != (c.reason == "") || got != nil && (got.Reason != c.reason || !strings.Contains(got.Message, c.says)) {
			t.Errorf("%s: %+v", c.intent, got)
		}
	}
}

func TestFeasible(t *testing.T) {
	for _, c := range []struct {
		intent   string
		backend  *v1alpha1.StorageBackend
		change   func(p *Preflight)
		refusal  string
		warnings string
	}{
		{"enough of everything", backendOf(15, 0), nil, "", ""},
		{"no backend", nil, nil, ReasonBackendMissing, ""},
		{"backend going away", backendOf(15, 0), func(p *Preflight) { p.Backend.DeletionTimestamp = &metav1.Time{} }, ReasonBackendMissing, ""},
		{"backend not seen yet", backendOf(15, 0), func(p *Preflight) { p.Backend.Status.LastSeen = nil }, ReasonBackendUnknown, ""},
		{"no spare node", backendOf(14, 0), nil, "", ReasonNoSpareNode},
		{"a node too few", backendOf(13, 0), nil, ReasonTooFewNodes, ""},
		{"a draining node does not count", backendOf(14, 0), func(p *Preflight) { p.Backend.Status.Nodes[3].State = nodeDraining }, ReasonTooFewNodes, ""},
		{"nor does one that was given up", backendOf(14, 0), func(p *Preflight) { p.Backend.Status.Nodes[3].State = nodeOut }, ReasonTooFewNodes, ""},
		{"a missing node does not count", backendOf(14, 0), func(p *Preflight) { p.Backend.Status.Nodes[3].State = nodeMissing }, ReasonTooFewNodes, ""},
		{"a node that is down may come back", backendOf(15, 0), func(p *Preflight) { p.Backend.Status.Nodes[3].State = "down" }, "", ReasonNoSpareNode},
		{"two blocks to a domain, which the code survives", backendOf(15, 7), nil, "", ReasonTooFewDomains},
		{"three blocks to a domain, which it does not", backendOf(15, 5), nil, ReasonTooFewDomains, ""},
		{"all nodes in one domain", backendOf(15, 1), nil, ReasonTooFewDomains, ""},
		{"a block over the store's limit", backendOf(15, 0), func(p *Preflight) { p.Backend.Status.Capabilities.MaxItemBytes = 1 << 20 }, ReasonItemTooLarge, ""},
		{"a block within the store's limit", backendOf(15, 0), func(p *Preflight) { p.Backend.Status.Capabilities.MaxItemBytes = 5 << 20 }, "", ""},
		{"smaller groups fit", backendOf(15, 0), func(p *Preflight) {
			p.Backend.Status.Capabilities.MaxItemBytes, p.Class.GroupBytes = 1<<20, number[int64](512<<10)
		}, "", ""},
		{"a store that evicts", backendOf(15, 0), func(p *Preflight) { p.Backend.Status.Capabilities = v1alpha1.Capabilities{Evicts: true} }, "", ReasonStoreEvicts},
		{"a store that forgets", backendOf(15, 0), func(p *Preflight) { p.Backend.Status.Capabilities.Durable = false }, "", ReasonStoreForgets},
		{"space for the peak", backendOf(15, 0), func(p *Preflight) {
			p.Backend.Status.CapacityBytes, p.Backend.Status.UsedBytes, p.PeakBytes = 1000, 500, 450
		}, "", ""},
		{"no space for the peak beside the reserve", backendOf(15, 0), func(p *Preflight) {
			p.Backend.Status.CapacityBytes, p.Backend.Status.UsedBytes, p.PeakBytes = 1000, 500, 451
		}, ReasonNoSpace, ""},
		{"capacity unknown", backendOf(15, 0), func(p *Preflight) { p.PeakBytes = 1 << 60 }, "", ""},
	} {
		p := Preflight{Class: &mustDeclare(t, mediaPolicy("rep(3) rs(4,2) rs(12,2)")).Class, BackendName: "demo", Backend: c.backend}
		if c.change != nil {
			c.change(&p)
		}
		refusal, warnings := Feasible(p)
		reason, text := "", ""
		if refusal != nil {
			reason = refusal.Reason
			if refusal.Message == "" || strings.Contains(refusal.Message, "%!") {
				t.Errorf("%s: %s", c.intent, refusal.Message)
			}
		}
		for _, warning := range warnings {
			text += warning.Reason
		}
		if reason != c.refusal || text != c.warnings {
			t.Errorf("%s: refusal %q, warnings %q; want %q, %q", c.intent, reason, text, c.refusal, c.warnings)
		}
	}
}

func TestHeaviestDomain(t *testing.T) {
	for _, c := range []struct {
		sizes  map[string]int
		blocks int
		want   int
	}{
		{map[string]int{"a": 3, "b": 3, "c": 3}, 6, 2}, {map[string]int{"a": 9, "b": 1, "c": 1}, 6, 4},
		{map[string]int{"a": 1, "b": 1}, 2, 1}, {map[string]int{"a": 1}, 5, 1}, {nil, 3, 0},
	} {
		if got := heaviestDomain(c.sizes, c.blocks); got != c.want {
			t.Errorf("%v, %d blocks: %d, want %d", c.sizes, c.blocks, got, c.want)
		}
	}
}

package console

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/api/v1alpha1"
)

// TestBadNodesAreNamed: the overview names the nodes that do not serve, the worst first, since when, and what comes next.
func TestBadNodesAreNamed(t *testing.T) {
	silent, declared := time.Unix(5000, 0), time.Unix(100, 0)
	info := func(name, state, saidBy string, silent *time.Time) api.NodeInfo {
		n := api.NodeInfo{Declared: saidBy, Silent: silent, Since: &declared}
		n.ID, n.State = block.NodeID(name), state
		return n
	}
	seen := &seenBackend{name: "real"}
	seen.nodes.Set(silent, api.NodeList{Patience: api.Patience{OutAfterSeconds: 60}, Nodes: []api.NodeInfo{
		info("n1", "up", "up", nil), info("n2", "suspect", "up", &silent), info("n3", "draining", "draining", nil),
		info("n4", "down", "up", &silent), info("n5", "down", "down", &silent), info("n6", "out", "up", &silent),
	}}, nil)
	counts := &consolev1.NodeCounts{ByState: map[string]int32{}}
	countNodes(counts, (&nodes{sources: &sources{world: &world{backends: &mirror[*v1alpha1.StorageBackend]{}}}}).nodeViews(seen))
	var said []string
	for _, bad := range counts.Bad {
		line := fmt.Sprint(bad.Name, " ", bad.State, " since ", bad.Since.Seconds)
		if bad.GivenUpAt != nil {
			line += fmt.Sprint(", given up at ", bad.GivenUpAt.Seconds)
		}
		said = append(said, line)
	}
	want := []string{"n6 out since 100", "n4 down since 5000, given up at 5060", "n5 down since 100", "n2 suspect since 5000, given up at 5060"}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}

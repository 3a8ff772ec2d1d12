package cli

import (
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/stripe"
)

// Whatever a cluster has to begin with, its first class fits its nodes, and, from three nodes on, still does when one is lost.
func TestTheFirstClassFitsTheNodes(t *testing.T) {
	for nodes := 1; nodes <= 20; nodes++ {
		ladder := api.DefaultClasses()[0].Ladder
		if text := fittingLadder(nodes); text != "" {
			var err error
			if ladder, err = stripe.ParseLadder(text); err != nil {
				t.Fatal(err)
			}
		}
		needed, spare := ladder.Width()+ladder.MaxParity(), 1
		if nodes < 3 {
			spare = 0
		}
		if needed+spare > nodes {
			t.Errorf("%d nodes have the ladder %s, which lies on %d", nodes, ladder, needed)
		}
	}
	if text := fittingLadder(launch.DefaultAgents); text != "" {
		t.Errorf("a cluster has the ladder %s by default, not the gateway's", text)
	}
}

//go:build !race

package gateway_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Not with the race detector, whose own runtime breaks (SIGSEGV in its depot of stacks) in half of the runs of so long a bubble. What runs
// here runs in TestChangesAreToldOf and others too, which it does look at.

// idleTotals are the most calls of all kinds in idleMinutes that each of one and of two gateways makes: the table of docs/catalog.md, and
// a tenth.
var idleTotals = []int{0, 3650, 4970}

func TestIdleGatewaysAskLittle(t *testing.T) {
	t.Parallel()
	for gateways := 1; gateways <= 2; gateways++ {
		synctest.Test(t, func(t *testing.T) {
			i := newIdlers(t, 3)
			var engines []*asked
			for g := range gateways {
				_, engine := i.gateway(fmt.Sprintf("gw%d", g+1))
				engines = append(engines, engine)
			}
			<-time.After(5*time.Minute + 500*time.Millisecond)
			for _, engine := range engines {
				engine.take()
			}
			<-time.After(idleMinutes * time.Minute)
			for g, engine := range engines {
				calls, bytes := engine.take()
				total := 0
				for _, what := range slices.Sorted(maps.Keys(calls)) {
					most := idleCalls[what]
					if what == "scan v" || what == "read v" { // the counts of all starts
						most = 1000 * gateways
					}
					if calls[what] > most {
						t.Errorf("gateway %d of %d: %d times %s in %d minutes, want at most %d", g+1, gateways, calls[what], what, idleMinutes, most)
					}
					total += calls[what]
					t.Logf("%5d %s", calls[what], what)
				}
				if total > idleTotals[gateways] {
					t.Errorf("gateway %d of %d: %d calls in %d minutes, want at most %d", g+1, gateways, total, idleMinutes, idleTotals[gateways])
				}
				t.Logf("gateway %d of %d: %d calls in %d minutes, and %d bytes read", g+1, gateways, total, idleMinutes, bytes)
				if calls["read meta/disowned w"] == 0 || calls["scan view"] == 0 {
					t.Error("the engine does not count")
				}
			}
		})
	}
}

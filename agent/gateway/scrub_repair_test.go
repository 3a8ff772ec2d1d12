package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/wire"
)

// What a scrub does about what it finds, and what it leaves to others.

// throttle limits repair at any one node; 0 lifts the limit.
func (c *cluster) throttle(bytesPerSecond int64) {
	c.t.Helper()
	if _, err := c.gateway.ThrottleRepair(c.t.Context(), api.ThrottleRequest{NodeBytesPerSecond: &bytesPerSecond}); err != nil {
		c.t.Fatal(err)
	}
}

// onlyFinding returns the finding of a scrub that found one thing.
func (c *cluster) onlyFinding() api.ScrubFinding {
	c.t.Helper()
	findings := c.findings()
	if len(findings) != 1 {
		c.t.Fatalf("%d findings, want one: %+v", len(findings), findings)
	}
	return findings[0]
}

// While repair is paused a scrub finds and repairs nothing. What it found is rebuilt once repair goes on.
func TestScrubRepairsNothingWhileRepairIsPaused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	data := noise(60_000, 1)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	c.damage("k", 2)
	c.throttle(0) // nothing else holds it back
	g := c.newGateway("other", awake)
	if _, err := c.gateway.PauseRepair(t.Context()); err != nil { // which the other one has to ask the catalog for
		t.Fatal(err)
	}
	begun, err := g.StartScrub(t.Context(), api.ScrubRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if scrub := c.scrubEnded(begun.Cycle); scrub.Findings != 1 || scrub.Repaired != 0 {
		t.Errorf("%+v", scrub)
	}
	if finding := c.onlyFinding(); finding.Repaired || !strings.Contains(finding.Outcome, "repair is paused") {
		t.Errorf("%+v", finding)
	}
	if status := c.repairStatus(g); status.SlotsRebuilt != 0 || status.Reported != 1 {
		t.Errorf("paused: %+v", status)
	}
	if _, err := g.ResumeRepair(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.await("the slot is rebuilt", func() bool { return c.repairStatus(g).SlotsRebuilt == 1 })
	c.check("k", data)
}

// startLimited starts a scrub that finds damage which the limits of repair keep from being rebuilt for days.
func startLimited(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, 9)
	c.put("k", noise(60_000, 1), api.PutOptions{Scheme: "rs(6,2)"})
	c.damage("k", 2)
	c.throttle(1)
	if _, err := c.gateway.StartScrub(t.Context(), api.ScrubRequest{}); err != nil {
		t.Fatal(err)
	}
	c.await("the scrub waits for the limits of repair", c.gateway.RepairWaits)
	return c
}

// A scrub is paused at once though a group waits for the limits of repair. That group is looked at again.
func TestScrubIsPausedWhileRepairIsLimited(t *testing.T) {
	t.Parallel()
	c := startLimited(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if paused, err := c.gateway.PauseScrub(ctx); err != nil || paused.State != api.ScrubPaused || paused.GroupsDone != 0 || paused.Findings != 0 {
		t.Fatalf("%+v, %v", paused, err)
	}
	c.throttle(0)
	if _, err := c.gateway.ResumeScrub(t.Context()); err != nil {
		t.Fatal(err)
	}
	if scrub := c.scrubEnded(1); scrub.Findings != 1 || scrub.Repaired != 1 || scrub.GroupsDone != 1 {
		t.Errorf("%+v", scrub)
	}
}

// A pause of repair reaches a scrub that waits for the limits of repair, which goes on without it.
func TestPauseOfRepairReachesAScrubThatWaits(t *testing.T) {
	t.Parallel()
	c := startLimited(t)
	if _, err := c.gateway.PauseRepair(t.Context()); err != nil {
		t.Fatal(err)
	}
	if scrub := c.scrubEnded(1); scrub.Findings != 1 || scrub.Repaired != 0 {
		t.Errorf("%+v", scrub)
	}
	if finding := c.onlyFinding(); !strings.Contains(finding.Outcome, "repair is paused") {
		t.Errorf("%+v", finding)
	}
}

// busyFirst has an agent refuse its first run as too busy.
func (c *cluster) busyFirst(agent *testAgent, refused *atomic.Int64) {
	c.t.Helper()
	agent.stop()
	n, err := node.New(node.Options{ID: agent.id, Store: agent.store})
	if err != nil {
		c.t.Fatal(err)
	}
	listener, err := wire.Listen(c.t.Context(), agent.address, false)
	if err != nil {
		c.t.Fatal(err)
	}
	var ran atomic.Bool
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- wire.NewServer(wire.ServerOptions{}).Serve(ctx, listener, func(ctx context.Context, op wire.Op, header []byte, payload *wire.Payload) (any, []byte, func(), error) {
			if op == wire.OpRun && !ran.Swap(true) {
				refused.Add(1)
				return nil, nil, nil, fmt.Errorf("running: %w", wire.ErrBusy)
			}
			return n.Handle(ctx, op, header, payload)
		})
	}()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-ended, n.Close()); err != nil {
			c.t.Errorf("agent %s: %v", agent.id, err)
		}
	})
	agent.stop = stop
}

// A scrub tries again where nodes are too busy for a repair.
func TestScrubRepairsOnceNodesAreNotBusy(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 8)
	c.put("k", noise(60_000, 1), api.PutOptions{Scheme: "rs(6,2)"})
	c.damage("k", 2)
	c.stopGateway()
	var refused atomic.Int64
	for _, agent := range c.agents {
		c.busyFirst(agent, &refused)
	}
	c.startGateway()
	if scrub := c.scrubbed(api.ScrubRequest{}); scrub.Findings != 1 || scrub.Repaired != 1 || refused.Load() == 0 {
		t.Errorf("after %d runs were refused: %+v, %+v", refused.Load(), scrub, c.findings())
	}
}

// A scrub holds a page of the groups and not all of them: the next page is read when its turn comes.
func TestScrubReadsTheGroupsPageByPage(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	const groups = 1001 // a page and one more
	var puts errgroup.Group
	puts.SetLimit(16)
	for i := range groups {
		puts.Go(func() error {
			_, err := c.gateway.Put(t.Context(), fmt.Sprint("tmp/", i), strings.NewReader("x"), api.PutOptions{Size: 1})
			return err
		})
	}
	if err := puts.Wait(); err != nil {
		t.Fatal(err)
	}
	engine := &hooked{Engine: c.engine}
	g := c.newGateway("other", c.over(engine))
	// A walk for the heat report, which reads the groups too, may come between, but not each time.
	c.await("two pages are read to count the groups, and one to look at", func() bool {
		scans := 0
		engine.hook(nil, func(prefix, _ string) {
			if prefix == "g/" {
				scans++
			}
		})
		if _, err := g.StartScrub(t.Context(), api.ScrubRequest{BytesPerSecond: 1}); err != nil {
			t.Fatal(err)
		}
		c.await("the groups were counted", func() bool {
			scrub, err := g.Scrub(t.Context())
			return err == nil && scrub.GroupsTotal == groups
		})
		if _, err := g.PauseScrub(t.Context()); err != nil {
			t.Fatal(err)
		}
		engine.hook(nil, nil)
		return scans == 3
	})
	// What is written while a cycle is under way is not of it.
	young := false
	engine.hook(func(keys []string) error {
		if !young && strings.HasPrefix(keys[0], "g/") { // the look at the first group
			young = true
			if _, err := c.gateway.Put(t.Context(), "tmp/young", strings.NewReader("x"), api.PutOptions{Size: 1}); err != nil {
				t.Error(err)
			}
		}
		return nil
	}, nil)
	begun, err := g.StartScrub(t.Context(), api.ScrubRequest{})
	if err != nil {
		t.Fatal(err)
	}
	scrub := c.scrubEnded(begun.Cycle)
	engine.hook(nil, nil)
	if scrub.GroupsDone != groups || scrub.GroupsTotal != groups || scrub.BytesDone != scrub.BytesTotal || !young {
		t.Errorf("written meanwhile: %t; %+v", young, scrub)
	}
}

// A finding says that objects could not be named where the catalog does not answer for them; that does not make them
// deleted.
func TestFindingsSayWhichObjectsTheyCannotName(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	c.put("k", noise(60_000, 1), api.PutOptions{Scheme: "rs(6,2)"})
	c.damage("k", 2)
	engine := &hooked{Engine: c.engine}
	g := c.newGateway("other", c.over(engine))
	engine.hook(func(keys []string) error {
		if keys[0] == "o/k" {
			return errors.New("out of order")
		}
		return nil
	}, nil)
	begun, err := g.StartScrub(t.Context(), api.ScrubRequest{})
	if err != nil {
		t.Fatal(err)
	}
	c.scrubEnded(begun.Cycle)
	if finding := c.onlyFinding(); len(finding.Objects) != 0 || !strings.Contains(finding.Text, "not all objects could be named") || !strings.Contains(finding.Text, "out of order") || !finding.Repaired {
		t.Errorf("%+v", finding)
	}
}

// The doctor says what it could not find out.
func TestDoctorSaysWhatItCouldNotAsk(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 9)
	engine := &hooked{Engine: c.engine}
	g := c.newGateway("other", c.over(engine))
	asked := false
	engine.hook(func(keys []string) error {
		if kept := slices.Equal(keys, []string{"meta/rebuilt"}); kept && !asked || slices.Equal(keys, []string{"meta/scrub"}) ||
			slices.Equal(keys, []string{"meta/compact"}) {
			asked = asked || kept // the graves that status counts depend on it, too
			return errors.New("out of order")
		}
		return nil
	}, nil)
	findings, err := g.Doctor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"scrub", "compaction", "catalog"} {
		if !slices.ContainsFunc(findings, func(f api.Finding) bool {
			return f.Subject == subject && f.Severity == "error" && strings.Contains(f.Text, "out of order")
		}) {
			t.Errorf("nothing of %s: %+v", subject, findings)
		}
	}
}

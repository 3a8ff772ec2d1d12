package gateway_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// compaction is the compaction as the gateway says it is now.
func (c *cluster) compaction() api.Compaction {
	c.t.Helper()
	compaction, err := c.gateway.Compaction(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return compaction
}

// deadOf is what the status says is dead of a class; nil where it does not know.
func (c *cluster) deadOf(class string) *int64 {
	c.t.Helper()
	status, err := c.gateway.Status(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	at := slices.IndexFunc(status.Classes, func(of api.ClassStatus) bool { return of.Name == class })
	if at < 0 {
		c.t.Fatalf("there is no class %q", class)
	}
	return status.Classes[at].Dead
}

// doctorSays reports whether the doctor says something of a subject.
func (c *cluster) doctorSays(subject, part string) bool {
	c.t.Helper()
	findings, err := c.gateway.Doctor(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return slices.ContainsFunc(findings, func(f api.Finding) bool { return f.Subject == subject && strings.Contains(f.Text, part) })
}

// shows are packed and dead bytes of a class as the gateway's metrics have them; -1 where they have none.
func (c *cluster) shows(class string) (packed, dead int64) {
	c.t.Helper()
	families, err := c.gateway.Figures().Gather()
	if err != nil {
		c.t.Fatal(err)
	}
	of := func(name string) int64 {
		if value, found := sample(c.t, families, name, map[string]string{"class": class}); found {
			return int64(value)
		}
		return -1
	}
	return of("restripe_packed_bytes"), of("restripe_dead_bytes")
}

// lone puts objects one by one, each in a group of its own.
func (c *cluster) lone(count int) {
	for i := range count {
		c.put(loneKey(i), noise(700+i, uint64(i)), api.PutOptions{})
	}
}

func loneKey(i int) string { return "lone/" + string(rune('a'+i)) }

// The status has what is dead once somebody looked, and the doctor tells of it where it is much and nothing is done about it.
func TestDeadSpaceIsTold(t *testing.T) {
	c := newCluster(t, 9)
	c.lone(5)
	if dead := c.deadOf("default"); dead != nil {
		t.Errorf("before anybody looked %d bytes are dead", *dead)
	}
	c.with(compacting, func(o *gateway.Options) { o.CompactSettled = time.Hour }) // it looks, and chooses nothing
	c.until("it has looked", func() bool { return c.compaction().Looked != nil })
	if c.doctorSays("class default", "the compaction is paused") {
		t.Error("the doctor says that it is paused, which it is not")
	}
	if _, err := c.gateway.PauseCompaction(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := c.compaction()
	if len(found.Classes) != 1 || found.Classes[0].Name != "default" || found.Classes[0].Groups != 5 || found.Classes[0].Dead <= 0 {
		t.Fatalf("%+v", found)
	}
	if dead := c.deadOf("default"); dead == nil || *dead != found.Classes[0].Dead {
		t.Errorf("dead are %v, at the last look they were %d", dead, found.Classes[0].Dead)
	}
	if dead := c.deadOf("odd"); dead == nil || *dead != 0 {
		t.Errorf("of a class without small objects dead are %v", dead)
	}
	if !c.doctorSays("class default", "more than twice the 15 % that the class allows") {
		t.Error("the doctor does not say how much is dead while the compaction is paused")
	}
}

// The metrics have what the last look found, also of a gateway that was started after it, and nothing of a class that has no packed
// groups any more.
func TestDeadSpaceIsInTheMetrics(t *testing.T) {
	c := newCluster(t, 9)
	c.lone(5)
	seldom := func(o *gateway.Options) { o.CompactSettled = time.Hour }
	c.with(compacting, seldom)
	c.until("it has looked", func() bool { return c.compaction().Looked != nil })
	if _, err := c.gateway.PauseCompaction(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := c.compaction().Classes
	if len(found) != 1 || found[0].Dead <= 0 || found[0].Bytes <= found[0].Dead {
		t.Fatalf("%+v", found)
	}
	is := func() bool {
		packed, dead := c.shows("default")
		return packed == found[0].Bytes && dead == found[0].Dead
	}
	if !is() {
		packed, dead := c.shows("default")
		t.Errorf("the metrics have %d bytes packed and %d dead, the last look %+v", packed, dead, found[0])
	}
	c.with(compacting, seldom)
	c.until("a gateway that was started later shows it", is)
	for i := range 5 {
		if err := c.gateway.Delete(t.Context(), loneKey(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.gateway.ResumeCompaction(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.until("nothing is said of a class that has no packed groups", func() bool {
		packed, dead := c.shows("default")
		return packed == -1 && dead == -1
	})
}

// The doctor tells of groups that could not be compacted for as long as they are left alone, and a pass on request tries them again.
func TestGroupsThatCannotBeCompactedAreTold(t *testing.T) {
	c := newCluster(t, 9)
	c.lone(5)
	for _, agent := range c.agents[7:] {
		agent.stop()
	}
	c.with(compacting) // two of nine are missing, and a group of the class wants eight
	c.until("groups fail", func() bool { return c.compaction().Failed == 5 })
	pass := c.compaction().Pass
	c.until("later passes have ended", func() bool { now := c.compaction(); return now.Pass > pass+1 && now.Finished != nil })
	if failed := c.compaction().Failed; failed != 5 {
		t.Errorf("after the next pass %d groups have failed", failed)
	}
	if !c.doctorSays("compaction", "5 groups of small objects could not be compacted") {
		t.Error("the doctor does not say that groups could not be compacted")
	}
	for _, agent := range c.agents[7:] {
		c.startAgent(agent)
	}
	c.answering()
	if _, err := c.gateway.StartCompaction(t.Context(), api.CompactionRequest{}); err != nil {
		t.Fatal(err)
	}
	c.until("they are one group", func() bool {
		now := c.compaction()
		return len(now.Classes) == 1 && now.Classes[0].Groups == 1 && now.Failed == 0
	})
	if c.doctorSays("compaction", "could not be compacted") {
		t.Error("the doctor still says that groups could not be compacted")
	}
}

// How much is beyond what a class allows goes by what lives.
func TestDeadSpaceBeyondWhatIsAllowed(t *testing.T) {
	for _, of := range []struct {
		dead, live int64
		percent    int
		is         bool
	}{
		{30, 100, 15, false}, {31, 100, 15, true}, {100, 0, 15, true}, {0, 0, 15, false}, {1 << 40, 1, api.NeverCompact, false}, {9, 1, 0, false},
	} {
		class := api.CompactionClass{Bytes: of.dead + of.live, Dead: of.dead, DeadAtMostPercent: of.percent}
		if class.IsBeyond(2) != of.is {
			t.Errorf("%d dead beside %d under %d %%: %v", of.dead, of.live, of.percent, !of.is)
		}
	}
}

package member

import (
	"maps"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
)

// says is the view of a gateway.
func says(gateway string, count uint64, unheard ...block.NodeID) catalog.View {
	return catalog.View{Gateway: gateway, Count: count, At: int64(count), Unheard: unheard}
}

// A node that comes back in dispute stays for a time that doubles, until it comes back undisputed.
func TestADisputedNodeStaysForGrowingTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := patience{down: time.Second, out: time.Minute}
		var v views
		v.wrote(says("own", 1))
		for turn, disputed := range []bool{true, true, true, false, true} {
			var other []block.NodeID
			if disputed {
				other = []block.NodeID{"n1"}
			}
			v.take([]catalog.View{says("own", 1), says("other", uint64(turn)+2, other...)}, time.Now(), lifeAtLeast)
			v.returned("n1", p)
			began := time.Now()
			for v.stays("n1") {
				<-time.After(time.Second)
			}
			want := []time.Duration{1, 2, 4, 0, 1}[turn] * time.Minute
			if stayed := time.Since(began); stayed != want {
				t.Errorf("the %d. time it stays for %s, want %s", turn+1, stayed, want)
			}
		}
	})
}

// Votes are those of gateways that run, whose views change; a view that is read again and again is no sign of life.
func TestOnlyGatewaysThatRunAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Agents{}
		a.views.wrote(says("own", 1, "n1"))
		other := says("other", 1)
		take := func() { a.views.take([]catalog.View{other}, time.Now(), lifeAtLeast) }
		take()
		if a.IsUnheard("n1") {
			t.Error("one of two gateways that run decides")
		}
		<-time.After(lifeAtLeast + time.Second)
		take()
		if !a.IsUnheard("n1") {
			t.Error("a gateway that ended still counts")
		}
		other = says("other", 2)
		take()
		if a.IsUnheard("n1") {
			t.Error("a gateway that is back does not count")
		}
		other = says("other", 3, "n1")
		take()
		if !a.IsUnheard("n1") {
			t.Error("both gateways do not hear it")
		}
	})
}

// Whoever starts anew says no less than it said before, and what others have heard.
func TestMarksOfStoresOnlyGrow(t *testing.T) {
	v := views{own: catalog.View{Gateway: "own"}}
	before, other := says("own", 7), says("other", 1)
	old, now := block.NewIncarnation(1, "A", ""), block.NewIncarnation(2, "B", "")
	before.Water = map[block.NodeID]block.Watermark{"n1": {Contents: old, Mark: 5}, "n2": {Contents: old, Mark: 3}}
	other.Water = map[block.NodeID]block.Watermark{"n1": {Contents: old, Mark: 4}, "n2": {Contents: now, Mark: 1}}
	v.heard("n1", block.Watermark{Contents: old, Mark: 2})
	v.take([]catalog.View{before, other}, time.Now(), lifeAtLeast)
	v.heard("n2", block.Watermark{Contents: old, Mark: 9})
	v.heard("n3", block.Watermark{Contents: old, Mark: 1})
	water, due := v.nextMarks(time.Minute)
	if want := (map[block.NodeID]block.Watermark{
		"n1": {Contents: old, Mark: 5}, "n2": {Contents: now, Mark: 1}, "n3": {Contents: old, Mark: 1},
	}); !due || !maps.Equal(water, want) {
		t.Errorf("marks %v, want %v", water, want)
	}
	if len(v.seen) != 1 {
		t.Errorf("%d other gateways, want one", len(v.seen))
	}
}

// Marks are written when they have changed, and the more there are the more seldom.
func TestMarksAreWrittenSeldomWhereTheyAreMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for nodes, want := range map[int]time.Duration{3: 5 * time.Second, 10_000: 50 * time.Second} {
			v := views{own: catalog.View{Gateway: "own"}}
			if _, due := v.nextMarks(beatsAtMost); due {
				t.Error("no marks are written")
			}
			for i := range nodes {
				v.heard(block.NodeID(strconv.Itoa(i)), block.Watermark{Contents: "1.A.", Mark: 1})
			}
			marks, due := v.nextMarks(beatsAtMost)
			if !due || len(marks) != nodes {
				t.Errorf("%d marks of %d are to be written at first", len(marks), nodes)
			}
			v.wroteMarks(marks)
			<-time.After(time.Hour)
			if _, due := v.nextMarks(beatsAtMost); due {
				t.Error("marks that are as they were are written")
			}
			v.wroteMarks(marks)
			v.heard("0", block.Watermark{Contents: "1.A.", Mark: 2})
			began := time.Now()
			for due := false; !due; _, due = v.nextMarks(beatsAtMost) {
				<-time.After(time.Second)
			}
			if took := time.Since(began); took != want {
				t.Errorf("of %d nodes a mark that has changed is written after %v, want %v", nodes, took, want)
			}
		}
	})
}

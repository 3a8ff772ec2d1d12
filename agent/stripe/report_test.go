package stripe

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPlanReport(t *testing.T) {
	ladder := Ladder{RS(4, 3), RS(5, 3)}
	report, plan, err := NewPlanReport(ladder, 0, RS(4, 3), RS(5, 3), "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"from":"rs(4,3)","to":"rs(5,3)","mode":"free","objective":"network","cells":20,"rows":4,"columns":5,` +
		`"planner":"restripe","proved":true,"blocksRead":18,"blocksSent":9,"blocksWritten":12,"dataBlocksMoved":0,` +
		`"maxNodeBlocksSent":2,"maxNodeBlocksReceived":3,"bounds":{"blocksRead":16,"blocksSent":9},"baselines":{` +
		`"copy-pool":{"blocksRead":20,"blocksSent":52},"ers1-proxy":{"blocksRead":19,"blocksSent":31},` +
		`"ers2-proxy":{"blocksRead":18,"blocksSent":30},"reencode":{"blocksRead":20,"blocksSent":32},` +
		`"srs-proxy":{"blocksRead":20,"blocksSent":32}}}`
	if string(text) != want || plan.Cost != report.Cost {
		t.Errorf("%s\nwant\n%s", text, want)
	}
	report, _, err = NewPlanReport(Ladder{Replicas(3), RS(12, 2)}, 0, Replicas(3), RS(12, 2), "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(report.Baselines); err != nil || !strings.Contains(string(text), `"ers2-proxy":null`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestBaselinePlannersUseTheirOwnLayout(t *testing.T) {
	two, three := Ladder{RS(4, 2), RS(5, 2), Replicas(3)}, Ladder{RS(4, 2), RS(5, 2), RS(6, 2)}
	for _, c := range []struct {
		ladder  Ladder
		planner string
		mode    Mode
		want    Mode
	}{
		{two, PlannerERS2, "", ModePair}, {two, PlannerERS1, "", ModeRow}, {two, PlannerSRS, "", ModeRow}, {two, "", "", ModeFree},
		{three, PlannerERS2, "", ModeFree}, {two, PlannerERS2, ModeAdj, ModeAdj}, {two, PlannerReencode, "", ModeFree},
	} {
		report, _, err := NewPlanReport(c.ladder, 0, RS(4, 2), RS(5, 2), c.planner, c.mode, "")
		if err != nil || report.Mode != c.want {
			t.Errorf("%s by %s: %+v, %v", c.ladder, c.planner, report, err)
		}
	}
}

func TestLayoutReport(t *testing.T) {
	text, err := json.Marshal(NewLayoutReport(mustLayout(t, Ladder{Replicas(2), RS(2, 1)}, 0, "")))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"rows":1,"columns":2,"partitions":{"rep(2)":[[[0,0]],[[0,1]]],"rs(2,1)":[[[0,0],[0,1]]]},"matrix":[[1,1]]}`
	if string(text) != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
}

func TestExplain(t *testing.T) {
	ladder := Ladder{Replicas(3), RS(3, 2), RS(4, 2), RS(12, 2), RS(12, 3), Replicas(1)}
	layout := mustLayout(t, ladder, 0, "")
	for _, c := range []struct {
		from, to Scheme
		planner  string
		want     string
	}{
		{Replicas(3), RS(3, 2), "", "0 blocks cross the network: each parity node adds the 3 copies it already holds. 24 blocks are read where they are stored and 8 blocks are written. No data block moves."},
		{RS(4, 2), RS(12, 2), "", "0 blocks cross the network: each parity node adds the 3 parity blocks it already holds."},
		{RS(12, 3), RS(12, 2), "", "0 blocks cross the network and none is read: the stripes stay as they are and 1 parity row is deleted."},
		{RS(12, 3), Replicas(1), "", "0 blocks cross the network and none is read: the data stays where it is and 3 parity rows are deleted."},
		{RS(12, 2), RS(12, 2), "", "There is nothing to do: the group is as wanted already."},
		{RS(12, 2), RS(12, 3), "", "12 blocks cross the network: 1 new parity row is needed, and one node gathers each stripe and computes the row."},
		{RS(3, 2), RS(4, 2), "", "4 blocks cross the network: each parity node keeps what it holds and is sent only the sums of cells that change stripes."},
		{RS(3, 2), RS(4, 2), PlannerReencode, "18 blocks cross the network, all of them through one proxy, which receives 12 blocks and sends 6 blocks."},
		{RS(3, 2), RS(4, 2), PlannerCopyPool, "12 data blocks move to new nodes."},
	} {
		if c.from == c.to || c.to.M == 0 {
			if got := Explain(mustPlan(t, layout, c.from, c.to, c.planner, "")); got != c.want {
				t.Errorf("%s to %s: %s", c.from, c.to, got)
			}
			continue
		}
		if got := Explain(mustPlan(t, layout, c.from, c.to, c.planner, "")); !strings.Contains(got, c.want) {
			t.Errorf("%s to %s: %s", c.from, c.to, got)
		}
	}
	wide := mustLayout(t, Ladder{RS(2, 4), RS(4, 4)}, 0, "")
	afresh := Explain(mustPlan(t, wide, RS(2, 4), RS(4, 4), "", LeastReads))
	if !strings.Contains(afresh, "kept only where that saves reads") {
		t.Error(afresh)
	}
	update, err := NewUpdatePlan(layout, RS(3, 2), []int{1})
	if err != nil {
		t.Fatal(err)
	}
	if got := Explain(update); !strings.HasPrefix(got, "2 blocks cross the network: 1 changed cell sends its difference once to each of 2 parity nodes.") {
		t.Error(got)
	}
	repair, err := NewRepairPlan(layout, RS(3, 2), []int{0}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := Explain(repair); !strings.HasPrefix(got, "3 blocks cross the network: 3 survivors of every stripe send") {
		t.Error(got)
	}
}

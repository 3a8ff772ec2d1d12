package pools

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// summary shows what a plan does about each node.
func summary(p *Plan) string {
	var lines []string
	for _, n := range p.Nodes {
		lines = append(lines, fmt.Sprintf("%s %s in %q with %d on %v", n.Action, n.Node, n.Domain, n.PlacementGroups, n.OSDs))
	}
	return strings.Join(lines, "\n")
}

func TestPrepare(t *testing.T) {
	for _, c := range []struct {
		intent  string
		cluster string
		change  func(*State)
		options Options
		want    string
		steps   int
	}{
		{
			intent: "every host with OSDs becomes a node, its rack its failure domain", cluster: "plain", steps: 5 + 5 + 5*3 + 5 + 5*3 + 4 + 2,
			want: `create node0 in "r1" with 32 on [0]
create node1 in "r1" with 64 on [1 2]
create node3 in "r2" with 32 on [3]
create node4 in "r2" with 32 on [4]
create node5 in "" with 32 on [5]`,
		},
		{
			intent: "monitors that allow size 1 already are left as they are", cluster: "plain", options: Options{Buckets: []string{"node0"}},
			change: func(s *State) { s.SizeOneAllowed = true }, steps: 1 + 1 + 3 + 1 + 4, want: `create node0 in "r1" with 32 on [0]`,
		},
		{
			intent: "only OSDs of a class", cluster: "plain", options: Options{DeviceClass: "ssd"}, steps: 2 + 1 + 1 + 3 + 1 + 5,
			want: `create node1 in "r1" with 32 on [2]`,
		},
		{
			intent: "racks as nodes", cluster: "plain", options: Options{NodeType: "rack"}, steps: 2 + 2*(1+1+3+1+3),
			want: "create r1 in \"\" with 64 on [0 1 2]\ncreate r2 in \"\" with 64 on [3 4]",
		},
		{
			intent: "what is made stays", cluster: "made", steps: 0,
			want: `keep node0 in "r1" with 32 on [0]
keep node1 in "r1" with 64 on [1 2]
keep node3 in "r2" with 32 on [3]
keep node4 in "r2" with 32 on [4]
keep node5 in "" with 32 on [5]`,
		},
		{
			intent: "an attempt that ended before the pool was marked is completed", cluster: "made", options: Options{Buckets: []string{"node5"}},
			change: func(s *State) { s.Pool("restripe.node5").Applications = nil }, steps: 2 + 3 + 1 + 3, want: `complete node5 in "" with 32 on [5]`,
		},
		{
			intent: "an attempt that ended after the rule uses it", cluster: "made", options: Options{Buckets: []string{"node5"}},
			change: func(s *State) {
				s.Pools = slices.DeleteFunc(s.Pools, func(p Pool) bool { return p.Name == "restripe.node5" })
			},
			steps: 2 + 1 + 3 + 1 + 3, want: `create node5 in "" with 32 on [5]`,
		},
		{
			intent: "little room for placement groups is shared", cluster: "plain", options: Options{Buckets: []string{"node1"}},
			change: func(s *State) { s.Pool("data").PlacementGroups = 390 }, steps: 2 + 1 + 1 + 3 + 1 + 4, want: `create node1 in "r1" with 8 on [1 2]`,
		},
		{
			intent: "a user", cluster: "made", options: Options{User: "restripe", Buckets: []string{"node0"}}, steps: 1, want: `keep node0 in "r1" with 32 on [0]`,
		},
	} {
		t.Run(strings.ReplaceAll(c.intent, " ", "-"), func(t *testing.T) {
			s := observed(t, c.cluster)
			if c.change != nil {
				c.change(s)
			}
			plan, err := Prepare(s, c.options)
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(plan); got != c.want {
				t.Errorf("the plan is\n%s\nwant\n%s", got, c.want)
			}
			if len(plan.Steps) != c.steps {
				t.Errorf("%d steps, want %d:", len(plan.Steps), c.steps)
				for _, step := range plan.Steps {
					t.Log(step.Command)
				}
			}
		})
	}
}

func TestPrepareRefuses(t *testing.T) {
	for _, c := range []struct {
		intent  string
		cluster string
		change  func(*State)
		options Options
		want    string
	}{
		{"somebody else's pool", "plain", func(s *State) { s.Pool("data").Name = "restripe.node0" }, Options{}, "does not own: it belongs to archive"},
		{"a pool of nobody's on another rule", "made", func(s *State) {
			p := s.Pool("restripe.node0")
			p.Applications, p.Rule = nil, 0
		}, Options{}, "no application tag and another rule"},
		{"a pool that is another node", "made", func(s *State) { s.Pool("restripe.node0").Applications[Application][markNode] = "node9" }, Options{}, "is the node node9"},
		{"a rule of that name that takes all", "made", func(s *State) { s.rule("restripe.node3").Takes = []string{"default"} }, Options{}, "does not take node3 alone"},
		{"no such bucket", "plain", nil, Options{Buckets: []string{"node7"}}, "no bucket node7 in the CRUSH hierarchy; there are node0, node1"},
		{"a bucket without OSDs", "plain", nil, Options{Buckets: []string{"node2"}}, "node2 has no OSDs"},
		{"a bucket of another type", "plain", nil, Options{Buckets: []string{"r1"}}, "r1 is a rack"},
		{"single OSDs", "plain", nil, Options{NodeType: "osd"}, "a bucket of its own"},
		{"no such type", "plain", nil, Options{NodeType: "row"}, "the hierarchy has host, rack, root"},
		{"no such class", "plain", nil, Options{DeviceClass: "nvme"}, "of class nvme"},
		{"hosts outside of racks", "plain", nil, Options{DomainType: "rack"}, "No bucket of type rack lies above host node5"},
		{"no room for placement groups", "plain", func(s *State) { s.Pool("data").PlacementGroups = 4000 }, Options{}, "lower the pg_num of other pools"},
		{"a prefix no pool can have", "plain", nil, Options{Prefix: ".a b"}, "cannot begin the name of a pool"},
	} {
		t.Run(strings.ReplaceAll(c.intent, " ", "-"), func(t *testing.T) {
			s := observed(t, c.cluster)
			if c.change != nil {
				c.change(s)
			}
			var refused *RefusedError
			if plan, err := Prepare(s, c.options); !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want %q; the plan is %v", err, c.want, plan)
			}
		})
	}
}

func TestPrepareRemoval(t *testing.T) {
	s := observed(t, "made")
	plan, err := PrepareRemoval(s, Removal{Nodes: []string{"node1"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(plan.Steps[0].Command, "; ", plan.Steps[1].Command); len(plan.Steps) != 2 ||
		got != "osd pool delete pool=restripe.node1 pool2=restripe.node1 yes_i_really_really_mean_it=true; osd crush rule rm name=restripe.node1" {
		t.Errorf("%d steps: %s", len(plan.Steps), got)
	}
	if plan, err := PrepareRemoval(s, Removal{}); err != nil || len(plan.Steps) != 10 {
		t.Errorf("removing all: %v, %v", plan, err)
	}
	for _, step := range mustRemove(t, s, Removal{}).Steps {
		if strings.Contains(step.Command.String(), "data") || strings.Contains(step.Command.String(), "device_health") {
			t.Errorf("somebody else's pool is touched: %s", step.Command)
		}
	}
	full := Removal{Nodes: []string{"node1"}, Objects: map[string]int64{"restripe.node1": 1}}
	if _, err := PrepareRemoval(s, full); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("removing a pool with objects: %v", err)
	}
	full.DestroyData = true
	if plan := mustRemove(t, s, full); !strings.Contains(plan.Steps[0].Text, "AND THE DATA IN IT") {
		t.Errorf("the step is called %q", plan.Steps[0].Text)
	}
	if _, err := PrepareRemoval(s, Removal{Nodes: []string{"data"}}); err == nil || !strings.Contains(err.Error(), "No pool of Restripe's") {
		t.Errorf("removing somebody else's: %v", err)
	}
	s.Pool("data").Rule = s.rule("restripe.node1").ID
	if plan := mustRemove(t, s, Removal{Nodes: []string{"node1"}}); len(plan.Steps) != 1 || len(plan.Notes) != 1 {
		t.Errorf("a rule that somebody else uses: %+v", plan)
	}
}

func mustRemove(t *testing.T, s *State, r Removal) *Plan {
	t.Helper()
	plan, err := PrepareRemoval(s, r)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func TestApplyCleansUpAfterAFailure(t *testing.T) {
	plan, err := Prepare(observed(t, "plain"), Options{Buckets: []string{"node0"}})
	if err != nil {
		t.Fatal(err)
	}
	m := &recorded{t: t, fail: func(c Command) error {
		if c.Prefix == "osd pool application enable" {
			return &CommandError{Code: 22, Message: "no"}
		}
		return nil
	}}
	done := 0
	if err := plan.Apply(t.Context(), m, func(Step) { done++ }); !refusedWith(err, 22) || !strings.Contains(err.Error(), "tag restripe.node0") {
		t.Errorf("the error is %v", err)
	}
	if last := m.sent[len(m.sent)-1]; last.Prefix != "config rm" {
		t.Errorf("the last command is %s", last)
	}
	if done != 7 { // allow, rule, pool, three settings; and the cleanup
		t.Errorf("%d steps were done", done)
	}
}

func TestApplyWaitsUntilMonitorsAllowSizeOne(t *testing.T) {
	plan, err := Prepare(observed(t, "plain"), Options{Buckets: []string{"node0"}})
	if err != nil {
		t.Fatal(err)
	}
	refusals := 2
	m := &recorded{t: t, fail: func(c Command) error {
		if c.Prefix == "osd pool set" && c.Arguments["var"] == "size" && refusals > 0 {
			refusals--
			return &CommandError{Code: codeNotPermitted, Message: "configuring pool size as 1 is disabled by default."}
		}
		return nil
	}}
	if err := plan.Apply(t.Context(), m, func(Step) {}); err != nil {
		t.Error(err)
	}
}

func TestDeletionIsExplained(t *testing.T) {
	err := fmt.Errorf("to remove: %w", &CommandError{Code: codeNotPermitted, Message: "pool deletion is disabled"})
	if text := ExplainDeletion(err).Error(); !strings.Contains(text, "mon_allow_pool_delete true") {
		t.Error(text)
	}
	if ExplainDeletion(nil) != nil {
		t.Error("no error became one")
	}
}

package pools

import (
	"strings"
	"testing"
)

func TestCheckFindsDrift(t *testing.T) {
	bounded := Client{OSDTimeout: true, MonitorTimeout: true}
	if findings := Check(observed(t, "made"), bounded); len(findings) > 0 {
		t.Fatalf("fresh pools: %+v", findings)
	}
	for _, c := range []struct {
		intent  string
		change  func(*State)
		subject string
		text    string
		error   bool
	}{
		{"the size was changed", func(s *State) { s.Pool("restripe.node0").Size = 3 }, "pool restripe.node0", "its size is 3", true},
		{"min_size is above it", func(s *State) { s.Pool("restripe.node0").MinSize = 2 }, "pool restripe.node0", "does not serve at all", true},
		{"the autoscaler is on", func(s *State) { s.Pool("restripe.node0").AutoscaleMode = "on" }, "pool restripe.node0", "autoscaler", false},
		{"the rule takes all", func(s *State) { s.rule("restripe.node0").Takes = []string{"default"} }, "pool restripe.node0", "takes default, not node0 alone", true},
		{"the pool has another rule", func(s *State) { s.Pool("restripe.node0").Rule = 0 }, "pool restripe.node0", "takes default", true},
		{"the rule has another name", func(s *State) { s.rule("restripe.node0").Name = "mine" }, "pool restripe.node0", "its rule is mine", false},
		{"the rule is gone", func(s *State) { s.Pool("restripe.node0").Rule = 99 }, "pool restripe.node0", "no CRUSH rule", true},
		{"the bucket is gone", func(s *State) { s.bucket("node5").Name = "node6" }, "pool restripe.node5", "gone from the CRUSH hierarchy", true},
		{"a host has no pool", func(s *State) { s.bucket("node2").OSDs = []int{9} }, "host node2", "no pool of Restripe's", false},
		{"the host has no OSDs", func(s *State) { s.bucket("node0").OSDs = nil }, "pool restripe.node0", "no OSDs any more", true},
		{"the host moved to another rack", func(s *State) { s.bucket("node0").Parent = "r2" }, "pool restripe.node0", "no longer lies in its failure domain r1", false},
		{"the pool says of no node", func(s *State) { delete(s.Pool("restripe.node0").Applications[Application], markNode) }, "pool restripe.node0", "does not say which bucket", false},
		{"an OSD is down", func(s *State) { s.OSD(3).Up = false }, "osd.3 of node3", "it is down", true},
		{"an OSD of several is down and out", func(s *State) { s.OSD(1).Up, s.OSD(1).In = false, false }, "osd.1 of node1", "count as lost", true},
		{"an OSD is out", func(s *State) { s.OSD(3).In = false }, "osd.3 of node3", "it is out", false},
		{"an OSD is nearly full", func(s *State) { s.OSD(3).State = append(s.OSD(3).State, "nearfull") }, "osd.3 of node3", "nearly full", false},
		{"an OSD is full", func(s *State) { s.OSD(3).State = append(s.OSD(3).State, "full") }, "osd.3 of node3", "writes to its pool are refused", true},
		{"noout", func(s *State) { s.Flags = append(s.Flags, "noout") }, "flag noout", "not taken out", false},
		{"paused", func(s *State) { s.Flags = append(s.Flags, "pausewr") }, "flag pausewr", "all writes wait", true},
		{"two releases", func(s *State) {
			s.Releases["osd"] = append(s.Releases["osd"], "ceph version 17.2.6 (d7ff0d10654d2280e08f1ab989c7cdf3064446a5) quincy (stable)")
		}, "releases", "several releases run: 16, 17", false},
	} {
		t.Run(strings.ReplaceAll(c.intent, " ", "-"), func(t *testing.T) {
			s := observed(t, "made")
			c.change(s)
			for _, f := range Check(s, bounded) {
				if f.Subject == c.subject && strings.Contains(f.Text, c.text) {
					if (f.Severity == SeverityError) != c.error {
						t.Errorf("its severity is %s", f.Severity)
					}
					if f.Cure == "" {
						t.Error("no cure is named")
					}
					return
				}
			}
			t.Errorf("nothing was found about %s: %+v", c.subject, Check(s, bounded))
		})
	}
	if findings := Check(observed(t, "made"), Client{}); len(findings) != 2 || findings[0].Severity != SeverityError {
		t.Errorf("without time-outs: %+v", findings)
	}
}

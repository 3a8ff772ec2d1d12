package pools

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// recorded is a Monitor that answers as those of a real cluster did: Ceph 16.2 with two racks of two hosts, a host that
// stands alone, one without OSDs, one with an ssd among its OSDs, and a pool of somebody else's. "plain" is the cluster
// before `restripe ceph init` and "made" after it.
type recorded struct {
	t    *testing.T
	name string
	sent []Command
	fail func(Command) error
}

func (r *recorded) Command(_ context.Context, text []byte) ([]byte, error) {
	var words map[string]any
	if err := json.Unmarshal(text, &words); err != nil {
		r.t.Fatal(err)
	}
	command := Command{Prefix: words["prefix"].(string), Arguments: words}
	delete(words, "prefix")
	delete(words, "format")
	r.sent = append(r.sent, command)
	if r.fail != nil {
		if err := r.fail(command); err != nil {
			return nil, err
		}
	}
	answers := map[string]string{"osd crush dump": "crush", "osd dump": "osds", "versions": "versions", "config get": "size-one"}
	answer, asked := answers[command.Prefix]
	if !asked {
		return nil, nil
	}
	return os.ReadFile(filepath.Join("testdata", r.name+"-"+answer+".json"))
}

// observed returns the state that was recorded under a name.
func observed(t *testing.T, name string) *State {
	t.Helper()
	s, err := Observe(t.Context(), &recorded{t: t, name: name})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestObserveReadsWhatMonitorsPrint(t *testing.T) {
	s := observed(t, "made")
	if s.SizeOneAllowed || len(s.OSDs) != 6 || len(s.Releases["osd"]) != 1 {
		t.Errorf("size one %v, %d OSDs, releases %v", s.SizeOneAllowed, len(s.OSDs), s.Releases)
	}
	if got := fmt.Sprint(s.bucket("r1").OSDs); got != "[0 1 2]" {
		t.Errorf("the OSDs below r1 are %s", got)
	}
	if o := s.OSD(2); o == nil || o.Class != "ssd" || !o.Up || !o.In {
		t.Errorf("osd.2 is %+v", o)
	}
	if s.bucket("node0~hdd") != nil {
		t.Error("a shadow bucket is taken for one of the hierarchy")
	}
	want := "[{restripe.node0 node0 r1 [0]} {restripe.node1 node1 r1 [1 2]} {restripe.node3 node3 r2 [3]} {restripe.node4 node4 r2 [4]} {restripe.node5 node5  [5]}]"
	if got := fmt.Sprint(s.Nodes()); got != want {
		t.Errorf("the nodes are\n%s, want\n%s", got, want)
	}
	if p := s.Pool("data"); p.Owned() || p.Size != 3 || p.Applications["archive"] == nil {
		t.Errorf("somebody else's pool is %+v", p)
	}
}

func TestObserveRefusesNonsense(t *testing.T) {
	for _, command := range []string{"osd crush dump", "osd dump", "versions", "config get"} {
		m := &recorded{t: t, name: "plain", fail: func(c Command) error {
			if c.Prefix == command {
				return &CommandError{Code: 13, Message: "access denied"}
			}
			return nil
		}}
		if _, err := Observe(t.Context(), m); !refusedWith(err, 13) {
			t.Errorf("%s: %v", command, err)
		}
	}
	var crush crushDump
	text := `{"buckets":[{"id":-1,"name":"a","items":[{"id":-3}]},{"id":-2,"name":"b","items":[{"id":-3}]},{"id":-3,"name":"host"}]}`
	if err := json.Unmarshal([]byte(text), &crush); err != nil {
		t.Fatal(err)
	}
	if _, err := newState(&crush, &osdDump{}, nil, false); err == nil {
		t.Error("a bucket in two places was accepted")
	}
}

package gateway_test

import (
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/member"
)

func FuzzParseNodes(f *testing.F) {
	f.Add([]byte("nodes:\n- {id: n1, address: '127.0.0.1:1', domain: r1}\n- {id: n2, address: '[::1]:2'}\n"))
	f.Add([]byte("nodes: []"))
	f.Add([]byte("nodes:\n- {id: n1, address: x}"))
	f.Add([]byte("nodes:\n- {id: n1, address: 'a:1'}\n- {id: n1, address: 'a:2'}"))
	f.Add([]byte("nodes:\n- {id: n1, addres5: 'a:1'}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		nodes, err := member.ParseNodes(text)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, node := range nodes {
			if api.CheckNodeID(string(node.ID)) != nil || seen[string(node.ID)] {
				t.Errorf("node %q passed", node.ID)
			}
			seen[string(node.ID)] = true
		}
	})
}

func TestNodeFileRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"nodes: []":                                                    "no nodes",
		"nodes:\n- {id: N1, address: 'a:1'}":                           "only a-z",
		"nodes:\n- {id: n1, address: a}":                               "want host:port",
		"nodes:\n- {id: n1, addres5: 'a:1'}":                           "addres5",
		"nodes:\n- {id: n, address: 'a:1'}\n- {id: n, address: 'a:2'}": "used twice",
	} {
		if _, err := member.ParseNodes([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: have %v, want %q", text, err, want)
		}
	}
}

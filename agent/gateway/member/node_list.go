package member

import (
	"fmt"
	"net"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
)

// LoadNodes reads the file of nodes at a path.
func LoadNodes(path string) ([]catalog.Node, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the node file: %w", err)
	}
	nodes, err := ParseNodes(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return nodes, nil
}

// ParseNodes reads the YAML of a node file, in its order: at least one node, each with an id and an address. Unknown fields
// are refused.
func ParseNodes(text []byte) ([]catalog.Node, error) {
	var file struct {
		Nodes []struct {
			ID      string `json:"id"`
			Address string `json:"address"`
			Domain  string `json:"domain"`
			State   string `json:"state"`
			Spare   bool   `json:"spare"`
		} `json:"nodes"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("node file: %w", err)
	}
	if len(file.Nodes) == 0 {
		return nil, fmt.Errorf("node file: no nodes; give at least one entry with id and address under \"nodes:\"")
	}
	seen := map[string]bool{}
	var nodes []catalog.Node
	for i, entry := range file.Nodes {
		if err := api.CheckNodeID(entry.ID); err != nil {
			return nil, fmt.Errorf("node %d: %w", i+1, err)
		}
		if seen[entry.ID] {
			return nil, fmt.Errorf("node %d: id %q is used twice", i+1, entry.ID)
		}
		seen[entry.ID] = true
		if _, _, err := net.SplitHostPort(entry.Address); err != nil {
			return nil, fmt.Errorf("node %d (%s): address %q: want host:port", i+1, entry.ID, entry.Address)
		}
		state := catalog.NodeState(entry.State)
		switch state {
		case "", catalog.NodeUp, catalog.NodeDown, catalog.NodeDraining:
		default:
			return nil, fmt.Errorf("node %d (%s): state %q: want up, draining (serves, takes no blocks) or down (not expected back: repair rebuilds its blocks elsewhere)", i+1, entry.ID, entry.State)
		}
		nodes = append(nodes, catalog.Node{ID: block.NodeID(entry.ID), Address: entry.Address, Domain: entry.Domain, State: state, Spare: entry.Spare})
	}
	return nodes, nil
}

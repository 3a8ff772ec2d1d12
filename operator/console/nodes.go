package console

import (
	"context"
	"slices"
	"time"

	"connectrpc.com/connect"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/console/contract"
	"github.com/restripe/restripe/operator/gateways"
)

// nodes shows the nodes of backends and steers them.
type nodes struct {
	*sources
	*auditing
	*watching
}

// ListNodes lists the nodes of all backends, or of one.
func (s *nodes) ListNodes(_ context.Context, request *consolev1.ListNodesRequest) (*consolev1.NodeList, error) {
	now := s.nodePicture(request.Backend)
	list := &consolev1.NodeList{Whole: true, Sources: now.sources}
	for _, one := range now.items {
		list.Nodes = append(list.Nodes, one.view)
	}
	return list, nil
}

// WatchNodes does so whenever one changes.
func (s *nodes) WatchNodes(ctx context.Context, request *consolev1.WatchNodesRequest, stream *connect.ServerStream[consolev1.NodeList]) error {
	names := map[string]*consolev1.NodeName{}
	take := func() picture[*consolev1.Node] { return s.nodePicture(request.Backend) }
	return watchList(ctx, s.watching, take, func(d delta[*consolev1.Node]) error {
		list := &consolev1.NodeList{Whole: d.whole, Partial: d.partial, Nodes: d.items, Sources: d.sources}
		for _, node := range d.items {
			names[nodeKey(node)] = &consolev1.NodeName{Backend: node.Backend, Name: node.Name}
		}
		for _, key := range d.removed {
			list.Removed = append(list.Removed, names[key])
			delete(names, key)
		}
		return stream.Send(list)
	})
}

func nodeKey(node *consolev1.Node) string { return node.Backend + "/" + node.Name }

func (s *nodes) nodePicture(backend string) (now picture[*consolev1.Node]) {
	now.sources = s.freshness(backend)
	for _, seen := range s.backends.all(backend) {
		for _, node := range s.nodeViews(seen) {
			now.items = append(now.items, item[*consolev1.Node]{nodeKey(node), node})
		}
	}
	return now
}

// nodeViews are the nodes that the gateways know, and those that are declared and that they do not know.
func (s *nodes) nodeViews(seen *seenBackend) (views []*consolev1.Node) {
	list, known, _ := seen.nodes.Get()
	if !known {
		return nil
	}
	for i := range list.Nodes {
		view := contract.Node(seen.name, &list.Nodes[i])
		view.GivenUpAt = contract.GivenUpAt(&list.Nodes[i], list.Patience)
		views = append(views, view)
	}
	if backend, found := s.world.backends.get(seen.name); found {
		for _, declared := range backend.Spec.Nodes {
			if !slices.ContainsFunc(list.Nodes, func(n api.NodeInfo) bool { return string(n.ID) == declared.Name }) {
				views = append(views, &consolev1.Node{Backend: seen.name, Name: declared.Name, FailureDomain: declared.FailureDomain, State: "missing"})
			}
		}
	}
	return views
}

// changePatience bounds one try of a change at one gateway.
const changePatience = 15 * time.Second

// nodeCall changes a node and returns it as it is then.
type nodeCall func(ctx context.Context, c *client.Client) (api.NodeInfo, error)

// changeNode does a change of a node and records it.
func (s *nodes) changeNode(ctx context.Context, name *consolev1.NodeName, said string, call nodeCall) (*consolev1.NodeChange, error) {
	seen, node, err := s.nodeNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	var after api.NodeInfo
	err = s.act(ctx, subject{object: "node/" + seen.name + "/" + name.Name, before: node}, func(ctx context.Context) (any, error) {
		after, err = gateways.Ask(ctx, seen.pool, changePatience, call)
		if err != nil || after.ID == "" {
			return nil, err
		}
		return after, nil
	})
	if err != nil {
		return nil, err
	}
	seen.wanted.Notify()
	change := &consolev1.NodeChange{Said: name.Name + " " + said}
	if after.ID != "" {
		change.Node = contract.Node(seen.name, &after)
	}
	return change, nil
}

// nodeNamed asks the gateways for a node.
func (s *nodes) nodeNamed(ctx context.Context, name *consolev1.NodeName) (*seenBackend, api.NodeInfo, error) {
	seen, err := s.backendNamed(name.GetBackend())
	if err != nil {
		return nil, api.NodeInfo{}, err
	}
	if name.GetName() == "" {
		return nil, api.NodeInfo{}, refuse(connect.CodeInvalidArgument, "no node is named; give its name")
	}
	node, err := gateways.Ask(ctx, seen.pool, quickPatience, func(ctx context.Context, c *client.Client) (api.NodeInfo, error) {
		return c.Node(ctx, name.Name)
	})
	return seen, node, refusalOf(err)
}

// DrainNode has every block of a node moved to other nodes, or changes how that is done.
func (s *nodes) DrainNode(ctx context.Context, request *consolev1.DrainNodeRequest) (*consolev1.NodeChange, error) {
	if request.GetBytesPerSecond() < 0 {
		return nil, refuse(connect.CodeInvalidArgument, "a limit of %d bytes per second; give 0 or more, 0 for none", request.GetBytesPerSecond())
	}
	return s.changeNode(ctx, request.Node, "is being drained; its blocks move to other nodes", func(ctx context.Context, c *client.Client) (api.NodeInfo, error) {
		return c.DrainNode(ctx, request.Node.Name, api.DrainRequest{BytesPerSecond: request.BytesPerSecond, Paused: request.Paused})
	})
}

// UndrainNode ends a drain.
func (s *nodes) UndrainNode(ctx context.Context, request *consolev1.UndrainNodeRequest) (*consolev1.NodeChange, error) {
	return s.changeNode(ctx, request.Node, "is no longer drained; what was moved stays where it is", func(ctx context.Context, c *client.Client) (api.NodeInfo, error) {
		return c.UndrainNode(ctx, request.Node.Name)
	})
}

// DownNode declares that a node is not expected back.
func (s *nodes) DownNode(ctx context.Context, request *consolev1.DownNodeRequest) (*consolev1.NodeChange, error) {
	return s.changeNode(ctx, request.Node, "is declared down; its blocks are rebuilt on other nodes", func(ctx context.Context, c *client.Client) (api.NodeInfo, error) {
		return c.DownNode(ctx, request.Node.Name)
	})
}

// UpNode takes every declaration about a node back.
func (s *nodes) UpNode(ctx context.Context, request *consolev1.UpNodeRequest) (*consolev1.NodeChange, error) {
	return s.changeNode(ctx, request.Node, "is declared up", func(ctx context.Context, c *client.Client) (api.NodeInfo, error) {
		return c.UpNode(ctx, request.Node.Name)
	})
}

// ReplaceNode has a node come back elsewhere, or another take its place.
func (s *nodes) ReplaceNode(ctx context.Context, request *consolev1.ReplaceNodeRequest) (*consolev1.NodeChange, error) {
	return s.changeNode(ctx, request.Node, "is being replaced", func(ctx context.Context, c *client.Client) (api.NodeInfo, error) {
		return c.ReplaceNode(ctx, request.Node.Name, api.ReplaceRequest{Address: request.Address, With: block.NodeID(request.With), Domain: request.FailureDomain})
	})
}

// RemoveNode makes a node no member any more.
func (s *nodes) RemoveNode(ctx context.Context, request *consolev1.RemoveNodeRequest) (*consolev1.NodeChange, error) {
	if request.Confirm != request.Node.GetName() {
		return nil, refuse(connect.CodeInvalidArgument, "removing a node wants its name twice: confirm is %q, the node is %q", request.Confirm, request.Node.GetName())
	}
	return s.changeNode(ctx, request.Node, "is no member any more", func(ctx context.Context, c *client.Client) (api.NodeInfo, error) {
		_, err := c.RemoveNode(ctx, request.Node.Name) // not done: it goes on by itself
		return api.NodeInfo{}, err
	})
}

// PlaceNode changes the failure domain of a node, and whether it is a spare.
func (s *nodes) PlaceNode(ctx context.Context, request *consolev1.PlaceNodeRequest) (*consolev1.NodeChange, error) {
	return s.changeNode(ctx, request.Node, "has its place changed", func(ctx context.Context, c *client.Client) (api.NodeInfo, error) {
		return c.PlaceNode(ctx, request.Node.Name, api.PlaceRequest{Domain: request.FailureDomain, Spare: request.Spare})
	})
}

// GetScrubs says how far scrubs are, and what they found.
func (s *nodes) GetScrubs(_ context.Context, request *consolev1.GetScrubsRequest) (*consolev1.ScrubReport, error) {
	report := &consolev1.ScrubReport{}
	for _, seen := range s.backends.all(request.Backend) {
		scrub, known, fresh := seen.scrub.Get()
		found, _, alsoFresh := seen.findings.Get()
		report.Sources = append(report.Sources, sourceView("backend "+seen.name, fresh.Worse(alsoFresh)))
		if known {
			report.Scrubs = append(report.Scrubs, contract.Scrub(seen.name, &scrub))
		}
		for i := range found {
			report.Findings = append(report.Findings, contract.Finding(seen.name, &found[i]))
		}
	}
	slices.SortStableFunc(report.Findings, func(a, b *consolev1.ScrubFinding) int { return b.Found.AsTime().Compare(a.Found.AsTime()) })
	return report, nil
}

package console

import (
	"context"
	"math"
	"slices"
	"time"

	"connectrpc.com/connect"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/client"
	api "github.com/restripe/restripe/operator/api/console/v1"
)

// ListNodes lists the nodes of all backends, or of one.
func (s *Server) ListNodes(_ context.Context, request *api.ListNodesRequest) (*api.NodeList, error) {
	now := s.nodePicture(request.Backend)
	list := &api.NodeList{Whole: true, Sources: now.sources}
	for _, one := range now.items {
		list.Nodes = append(list.Nodes, one.view)
	}
	return list, nil
}

// WatchNodes does so whenever one changes.
func (s *Server) WatchNodes(ctx context.Context, request *api.WatchNodesRequest, stream *connect.ServerStream[api.NodeList]) error {
	names := map[string]*api.NodeName{}
	take := func() picture[*api.Node] { return s.nodePicture(request.Backend) }
	return watchList(ctx, s, take, func(d delta[*api.Node]) error {
		list := &api.NodeList{Whole: d.whole, Partial: d.partial, Nodes: d.items, Sources: d.sources}
		for _, node := range d.items {
			names[nodeKey(node)] = &api.NodeName{Backend: node.Backend, Name: node.Name}
		}
		for _, key := range d.removed {
			list.Removed = append(list.Removed, names[key])
			delete(names, key)
		}
		return stream.Send(list)
	})
}

func nodeKey(node *api.Node) string { return node.Backend + "/" + node.Name }

func (s *Server) nodePicture(backend string) (now picture[*api.Node]) {
	now.sources = s.sources(backend)
	for _, look := range s.lookout.all(backend) {
		for _, node := range s.nodeViews(look) {
			now.items = append(now.items, item[*api.Node]{nodeKey(node), node})
		}
	}
	return now
}

// nodeViews are the nodes that the gateways know, and those that are declared and that they do not know.
func (s *Server) nodeViews(look *backendLook) (views []*api.Node) {
	list, known, _ := look.nodes.get()
	if !known {
		return nil
	}
	for i := range list.Nodes {
		views = append(views, nodeView(look.name, &list.Nodes[i]))
	}
	if backend, found := s.world.backends.get(look.name); found {
		for _, declared := range backend.Spec.Nodes {
			if !slices.ContainsFunc(list.Nodes, func(n gateway.NodeInfo) bool { return string(n.ID) == declared.Name }) {
				views = append(views, &api.Node{Backend: look.name, Name: declared.Name, FailureDomain: declared.FailureDomain, State: "missing"})
			}
		}
	}
	return views
}

func nodeView(backend string, n *gateway.NodeInfo) *api.Node {
	view := &api.Node{
		Backend: backend, Name: string(n.ID), Address: n.Address, FailureDomain: n.Domain, State: n.State, Declared: n.Declared, Spare: n.Spare,
		StoreKind: n.StoreKind, Durable: n.Durable, UsedBytes: n.UsedBytes, CapacityBytes: n.CapacityBytes, Slots: n.Slots, Warnings: n.Warnings,
		Fenced: n.Fenced, OutBy: n.OutBy, Replaces: string(n.Replaces), Volume: n.Volume,
		Rates: &api.NodeRates{Read: twoDigits(n.Rates.Read), Sent: twoDigits(n.Rates.Sent), Written: twoDigits(n.Rates.Written)},
	}
	if n.Since != nil {
		view.Since = stamp(*n.Since)
	}
	if d := n.Drain; d != nil {
		view.Drain = &api.Drain{SlotsTotal: d.SlotsTotal, SlotsLeft: d.SlotsLeft, BytesPerSecond: d.BytesPerSecond, Paused: d.Paused, EtaSeconds: knownSeconds(d.ETASeconds)}
	}
	return view
}

// twoDigits rounds a rate, so that watches are not told of every byte.
func twoDigits(rate float64) int64 {
	unit := int64(1)
	for ; rate >= 100; rate /= 10 {
		unit *= 10
	}
	return int64(math.Round(rate)) * unit
}

// changePatience bounds one try of a change at one gateway.
const changePatience = 15 * time.Second

// nodeCall changes a node and returns it as it is then.
type nodeCall func(ctx context.Context, c *client.Client) (gateway.NodeInfo, error)

// changeNode does a change of a node and records it.
func (s *Server) changeNode(ctx context.Context, name *api.NodeName, said string, call nodeCall) (*api.NodeChange, error) {
	look, node, err := s.nodeNamed(ctx, name)
	if err != nil {
		return nil, err
	}
	var after gateway.NodeInfo
	err = s.act(ctx, subject{object: "node/" + look.name + "/" + name.Name, before: node}, func(ctx context.Context) (any, error) {
		after, err = ask(ctx, look.gateways, changePatience, call)
		if err != nil || after.ID == "" {
			return nil, err
		}
		return after, nil
	})
	if err != nil {
		return nil, err
	}
	look.hurry()
	change := &api.NodeChange{Said: name.Name + " " + said}
	if after.ID != "" {
		change.Node = nodeView(look.name, &after)
	}
	return change, nil
}

// nodeNamed asks the gateways for a node.
func (s *Server) nodeNamed(ctx context.Context, name *api.NodeName) (*backendLook, gateway.NodeInfo, error) {
	look, err := s.backendNamed(name.GetBackend())
	if err != nil {
		return nil, gateway.NodeInfo{}, err
	}
	if name.GetName() == "" {
		return nil, gateway.NodeInfo{}, refuse(connect.CodeInvalidArgument, "no node is named; give its name")
	}
	node, err := ask(ctx, look.gateways, lookPatience, func(ctx context.Context, c *client.Client) (gateway.NodeInfo, error) {
		return c.Node(ctx, name.Name)
	})
	return look, node, refusalOf(err)
}

// backendNamed returns the look at a backend. Its name may be left out where there is only one.
func (s *Server) backendNamed(name string) (*backendLook, error) {
	looks := s.lookout.all(name)
	switch {
	case len(looks) == 1:
		return looks[0], nil
	case name != "":
		return nil, refuse(connect.CodeNotFound, "there is no backend %q", name)
	case len(looks) == 0:
		return nil, refuse(connect.CodeFailedPrecondition, "there is no backend; declare a StorageBackend")
	}
	return nil, refuse(connect.CodeInvalidArgument, "there are several backends; say which")
}

// DrainNode has every block of a node moved to other nodes, or changes how that is done.
func (s *Server) DrainNode(ctx context.Context, request *api.DrainNodeRequest) (*api.NodeChange, error) {
	if request.GetBytesPerSecond() < 0 {
		return nil, refuse(connect.CodeInvalidArgument, "a limit of %d bytes per second; give 0 or more, 0 for none", request.GetBytesPerSecond())
	}
	return s.changeNode(ctx, request.Node, "is being drained; its blocks move to other nodes", func(ctx context.Context, c *client.Client) (gateway.NodeInfo, error) {
		return c.DrainNode(ctx, request.Node.Name, gateway.DrainRequest{BytesPerSecond: request.BytesPerSecond, Paused: request.Paused})
	})
}

// UndrainNode ends a drain.
func (s *Server) UndrainNode(ctx context.Context, request *api.UndrainNodeRequest) (*api.NodeChange, error) {
	return s.changeNode(ctx, request.Node, "is no longer drained; what was moved stays where it is", func(ctx context.Context, c *client.Client) (gateway.NodeInfo, error) {
		return c.UndrainNode(ctx, request.Node.Name)
	})
}

// DownNode declares that a node is not expected back.
func (s *Server) DownNode(ctx context.Context, request *api.DownNodeRequest) (*api.NodeChange, error) {
	return s.changeNode(ctx, request.Node, "is declared down; its blocks are rebuilt on other nodes", func(ctx context.Context, c *client.Client) (gateway.NodeInfo, error) {
		return c.DownNode(ctx, request.Node.Name)
	})
}

// UpNode takes every declaration about a node back.
func (s *Server) UpNode(ctx context.Context, request *api.UpNodeRequest) (*api.NodeChange, error) {
	return s.changeNode(ctx, request.Node, "is declared up", func(ctx context.Context, c *client.Client) (gateway.NodeInfo, error) {
		return c.UpNode(ctx, request.Node.Name)
	})
}

// ReplaceNode has a node come back elsewhere, or another take its place.
func (s *Server) ReplaceNode(ctx context.Context, request *api.ReplaceNodeRequest) (*api.NodeChange, error) {
	return s.changeNode(ctx, request.Node, "is being replaced", func(ctx context.Context, c *client.Client) (gateway.NodeInfo, error) {
		return c.ReplaceNode(ctx, request.Node.Name, gateway.ReplaceRequest{Address: request.Address, With: block.NodeID(request.With), Domain: request.FailureDomain})
	})
}

// RemoveNode makes a node no member any more.
func (s *Server) RemoveNode(ctx context.Context, request *api.RemoveNodeRequest) (*api.NodeChange, error) {
	if request.Confirm != request.Node.GetName() {
		return nil, refuse(connect.CodeInvalidArgument, "removing a node wants its name twice: confirm is %q, the node is %q", request.Confirm, request.Node.GetName())
	}
	return s.changeNode(ctx, request.Node, "is no member any more", func(ctx context.Context, c *client.Client) (gateway.NodeInfo, error) {
		return gateway.NodeInfo{}, c.RemoveNode(ctx, request.Node.Name)
	})
}

// PlaceNode changes the failure domain of a node, and whether it is a spare.
func (s *Server) PlaceNode(ctx context.Context, request *api.PlaceNodeRequest) (*api.NodeChange, error) {
	return s.changeNode(ctx, request.Node, "has its place changed", func(ctx context.Context, c *client.Client) (gateway.NodeInfo, error) {
		return c.PlaceNode(ctx, request.Node.Name, gateway.PlaceRequest{Domain: request.FailureDomain, Spare: request.Spare})
	})
}

// GetScrubs says how far scrubs are, and what they found.
func (s *Server) GetScrubs(_ context.Context, request *api.GetScrubsRequest) (*api.ScrubReport, error) {
	report := &api.ScrubReport{}
	for _, look := range s.lookout.all(request.Backend) {
		scrub, known, fresh := look.scrub.get()
		found, _, alsoFresh := look.findings.get()
		report.Sources = append(report.Sources, fresh.worse(alsoFresh).view("backend "+look.name))
		if known {
			report.Scrubs = append(report.Scrubs, scrubView(look.name, &scrub))
		}
		for i := range found {
			report.Findings = append(report.Findings, findingView(look.name, &found[i]))
		}
	}
	slices.SortStableFunc(report.Findings, func(a, b *api.ScrubFinding) int { return b.Found.AsTime().Compare(a.Found.AsTime()) })
	return report, nil
}

func scrubView(backend string, scrub *gateway.Scrub) *api.Scrub {
	view := &api.Scrub{
		Backend: backend, State: string(scrub.State), Depth: string(scrub.Depth), Cycle: scrub.Cycle, GroupsTotal: scrub.GroupsTotal, GroupsDone: scrub.GroupsDone,
		BytesTotal: scrub.BytesTotal, BytesDone: scrub.BytesDone, Findings: scrub.Findings, Repaired: scrub.Repaired, Error: scrub.Error, Started: stamp(scrub.Started),
	}
	if scrub.Finished != nil {
		view.Finished = stamp(*scrub.Finished)
	}
	if scrub.State == gateway.ScrubRunning {
		view.EtaSeconds = knownSeconds(scrub.ETASeconds)
	}
	return view
}

func findingView(backend string, f *gateway.ScrubFinding) *api.ScrubFinding {
	return &api.ScrubFinding{
		Backend: backend, Found: stamp(f.Found), Kind: f.Kind, Group: f.Group.String(), Slot: int32(f.Slot), Node: string(f.Node), Text: f.Text,
		Objects: f.Objects, MoreObjects: int32(f.More), Repaired: f.Repaired, Outcome: f.Outcome,
	}
}

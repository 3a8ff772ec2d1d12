package console

import (
	"cmp"
	"context"

	"connectrpc.com/connect"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	consolev1 "github.com/restripe/restripe/operator/api/console/v1"
	"github.com/restripe/restripe/operator/console/contract"
	"github.com/restripe/restripe/operator/gateways"
)

// How many objects a page has.
const (
	objectsDefault = 100
	objectsMost    = 1000
)

// objects finds objects and moves them.
type objects struct {
	*sources
	*auditing
}

// SearchObjects returns one page of the objects with a prefix, in the order of their keys.
func (s *objects) SearchObjects(ctx context.Context, request *consolev1.SearchObjectsRequest) (*consolev1.SearchObjectsResponse, error) {
	seen, err := s.backendNamed(request.Backend)
	if err != nil {
		return nil, err
	}
	limit := int(min(cmp.Or(max(0, request.Limit), objectsDefault), objectsMost))
	page, err := gateways.Ask(ctx, seen.pool, changePatience, func(ctx context.Context, c *client.Client) (api.ObjectList, error) {
		return c.List(ctx, request.Prefix, string(request.AfterKey), limit)
	})
	if err != nil {
		return nil, refusalOf(err)
	}
	answer := &consolev1.SearchObjectsResponse{}
	for i := range page.Objects {
		view, err := objectView(seen.name, &page.Objects[i])
		if err != nil {
			return nil, err
		}
		answer.Objects = append(answer.Objects, view)
	}
	next, err := api.DecodeKey(page.Next)
	if err != nil {
		return nil, refuse(connect.CodeInternal, "the page mark of the gateway: %w", err)
	}
	answer.NextKey = []byte(next)
	return answer, nil
}

func objectView(backend string, o *api.Object) (*consolev1.Object, error) {
	key, err := api.DecodeKey(o.Key64)
	if err != nil {
		return nil, refuse(connect.CodeInternal, "the key of an object: %w", err)
	}
	view := &consolev1.Object{
		Backend: backend, Key: o.Key, KeyBytes: []byte(key), Class: o.Class, Scheme: o.Scheme, Size: o.Size, Revision: o.Revision.String(),
		Modified: contract.Time(o.Modified), Expires: contract.Time(o.Expires), Metadata: map[string]string{},
	}
	for _, revision := range o.Earlier {
		view.Earlier = append(view.Earlier, revision.String())
	}
	for name, value := range o.Metadata { // which may be of any bytes
		view.Metadata[api.PrintableKey(name)] = api.PrintableKey(value)
	}
	return view, nil
}

// GetObjectLayout says on which nodes the blocks of an object lie, and whether they are there.
func (s *objects) GetObjectLayout(ctx context.Context, request *consolev1.GetObjectLayoutRequest) (*consolev1.ObjectLayout, error) {
	seen, stat, err := s.objectNamed(ctx, request.Backend, request.Key)
	if err != nil {
		return nil, err
	}
	object, err := objectView(seen.name, &stat.Object)
	if err != nil {
		return nil, err
	}
	layout := &consolev1.ObjectLayout{Object: object}
	for i := range stat.Groups {
		layout.Groups = append(layout.Groups, groupView(&stat.Groups[i]))
	}
	return layout, nil
}

// objectNamed asks the gateways for an object.
func (s *objects) objectNamed(ctx context.Context, backend string, key []byte) (*seenBackend, api.Stat, error) {
	seen, err := s.backendNamed(backend)
	if err != nil {
		return nil, api.Stat{}, err
	}
	if len(key) == 0 {
		return nil, api.Stat{}, refuse(connect.CodeInvalidArgument, "no key is given")
	}
	stat, err := gateways.Ask(ctx, seen.pool, changePatience, func(ctx context.Context, c *client.Client) (api.Stat, error) {
		return c.Stat(ctx, string(key))
	})
	return seen, stat, refusalOf(err)
}

func groupView(g *api.GroupStat) *consolev1.Group {
	view := &consolev1.Group{
		Id: g.ID.String(), Scheme: g.Scheme, Ladder: g.Ladder, Mode: g.Mode, Rows: int32(g.Rows), Columns: int32(g.Columns),
		CellBytes: int64(g.CellBytes), Packed: g.Packed, Bytes: g.Bytes,
	}
	for _, slot := range g.Slots {
		view.Slots = append(view.Slots, &consolev1.Slot{Slot: int32(slot.Slot), Role: slot.Role, Node: string(slot.Node), State: slot.State})
	}
	return view
}

// MoveObject takes one object to another scheme of its ladder.
func (s *objects) MoveObject(ctx context.Context, request *consolev1.MoveObjectRequest) (*consolev1.MoveObjectResponse, error) {
	seen, stat, err := s.objectNamed(ctx, request.Backend, request.Key)
	if err != nil {
		return nil, err
	}
	var job api.Transition
	err = s.act(ctx, subject{object: "object/" + seen.name + "/" + stat.Key, before: stat.Object}, func(ctx context.Context) (any, error) {
		// Asked for again elsewhere, it would be another transition: one gateway is asked, once.
		job, err = gateways.AskFirst(ctx, seen.pool, changePatience, func(ctx context.Context, c *client.Client) (api.Transition, error) {
			return c.Move(ctx, string(request.Key), request.To)
		})
		return job, err
	})
	if err != nil {
		return nil, err
	}
	seen.wanted.Notify()
	return &consolev1.MoveObjectResponse{Transition: handView(seen.name, &job), Said: stat.Key + " moves to " + request.To}, nil
}

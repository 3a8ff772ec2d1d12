package catalog

import (
	"bytes"
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/block"
)

// Nodes returns the members of the cluster, by id.
func (c *Catalog) Nodes(ctx context.Context) ([]Node, error) {
	var nodes []Node
	err := c.each(ctx, prefixNode, func(record Record) error {
		node, err := decode[Node](record.Key, record.Value)
		nodes = append(nodes, node)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	return nodes, nil
}

// PutNode adds or replaces the record of a member.
func (c *Catalog) PutNode(ctx context.Context, node Node) error {
	if node.ID == "" {
		return fmt.Errorf("saving a node without an id: %w", ErrBadChange)
	}
	if err := c.assign(ctx, nodeKey(node.ID), encode(node)); err != nil {
		return fmt.Errorf("saving node %s: %w", node.ID, err)
	}
	return nil
}

// RegisterIncarnation records that the contents of a node's store are no longer was but now, before the node serves
// anything (rule 17); was is empty for a node that is new. From then on slots stored under another incarnation are
// suspect. was must be what the catalog said before the agent was asked: if something else was registered since, nothing
// changes and the error is an ErrStale, or a late registration would bring back contents that are no more.
func (c *Catalog) RegisterIncarnation(ctx context.Context, node block.NodeID, was, now block.Incarnation) error {
	if node == "" || now == "" {
		return fmt.Errorf("registering incarnation %q of node %q: %w", now, node, ErrBadChange)
	}
	key := incarnationKey(node)
	err := c.insist(ctx, func(ctx context.Context) (bool, error) {
		values, err := c.engine.Read(ctx, key)
		if err != nil || string(values[0]) == string(now) {
			return err == nil, err
		}
		if string(values[0]) != string(was) {
			return false, final(fmt.Errorf("the catalog says %q meanwhile: %w", values[0], ErrStale))
		}
		failed, err := c.engine.Update(ctx, []Check{{key, values[0]}}, []Write{{Key: key, Value: []byte(now)}})
		return err == nil && len(failed) == 0, err
	})
	if err != nil {
		return fmt.Errorf("registering the store of node %s: %w", node, err)
	}
	return nil
}

// assign gives a record a value by comparing it with what was read, so that a request that arrives late does not bring
// back what was replaced since.
func (c *Catalog) assign(ctx context.Context, key string, value []byte) error {
	return c.insist(ctx, func(ctx context.Context) (bool, error) {
		values, err := c.engine.Read(ctx, key)
		if err != nil || bytes.Equal(values[0], value) {
			return err == nil, err
		}
		failed, err := c.engine.Update(ctx, []Check{{key, values[0]}}, []Write{{Key: key, Value: value}})
		return err == nil && len(failed) == 0, err
	})
}

// Incarnations returns what is registered of each node's store.
func (c *Catalog) Incarnations(ctx context.Context) (map[block.NodeID]block.Incarnation, error) {
	incarnations := map[block.NodeID]block.Incarnation{}
	err := c.each(ctx, prefixIncarnation, func(record Record) error {
		incarnations[block.NodeID(record.Key[len(prefixIncarnation):])] = block.Incarnation(record.Value)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing incarnations: %w", err)
	}
	return incarnations, nil
}

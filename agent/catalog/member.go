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

// ChangeNode replaces the record of a member if it is still was, and returns it with its new Version; a member that is new
// is added to a zero was. It fails with ErrStale, changing nothing, if somebody else changed or added it meanwhile; if
// ErrUnknown is in the chain too, this change may have come before theirs.
func (c *Catalog) ChangeNode(ctx context.Context, was, is Node) (Node, error) {
	if is.ID == "" || was.ID != is.ID && was != (Node{}) {
		return Node{}, fmt.Errorf("changing node %q to %q: %w", was.ID, is.ID, ErrBadChange)
	}
	is.Version = was.Version + 1
	is.Fenced = is.Fenced || is.IsGone()
	key, unclear := nodeKey(is.ID), false
	err := c.insist(ctx, func(ctx context.Context) (bool, error) {
		raw, now, err := c.readNode(ctx, is.ID)
		if err != nil {
			return false, err
		}
		switch {
		case unclear && now == is:
			return true, nil
		case now != was && unclear:
			return false, final(fmt.Errorf("it was changed after an unclear answer: %w, %w", ErrStale, ErrUnknown))
		case now != was:
			return false, final(fmt.Errorf("it was changed meanwhile: %w", ErrStale))
		}
		failed, err := c.engine.Update(ctx, []Check{{key, raw}}, nodeWrites(&is))
		unclear = unclear || err != nil
		return err == nil && len(failed) == 0, err
	})
	if err != nil {
		return Node{}, fmt.Errorf("changing node %s: %w", is.ID, err)
	}
	return is, nil
}

// nodeWrites stores the record of a member. Where it is excluded the registration of its contents goes in the same
// transaction, so that no commit onto it can come later.
func nodeWrites(node *Node) []Write {
	writes := []Write{{Key: nodeKey(node.ID), Value: encode(node)}}
	if node.IsExcluded() {
		writes = append(writes, Write{Key: incarnationKey(node.ID), Kind: Remove})
	}
	return writes
}

// readNode returns the record of a member, raw nil and a zero Node if there is none.
func (c *Catalog) readNode(ctx context.Context, id block.NodeID) (raw []byte, node Node, err error) {
	values, err := c.engine.Read(ctx, nodeKey(id))
	if err != nil || values[0] == nil {
		return nil, Node{}, err
	}
	node, err = decode[Node](nodeKey(id), values[0])
	return values[0], node, err
}

// Membership returns how patient the cluster is with nodes that do not answer.
func (c *Catalog) Membership(ctx context.Context) (Membership, error) {
	values, err := c.engine.Read(ctx, keyMembers)
	if err != nil {
		return Membership{}, fmt.Errorf("reading the patience with nodes: %w", err)
	}
	if values[0] == nil {
		return Membership{}, nil
	}
	return decode[Membership](keyMembers, values[0])
}

// PutMembership sets how patient the cluster is with nodes that do not answer.
func (c *Catalog) PutMembership(ctx context.Context, membership Membership) error {
	if err := c.assign(ctx, keyMembers, encode(membership)); err != nil {
		return fmt.Errorf("saving the patience with nodes: %w", err)
	}
	return nil
}

// RegisterIncarnation records that the contents of a node's store are no longer was but now, before the node serves
// anything (rule 17); was is empty for a node that is new. From then on slots stored under another incarnation are
// suspect. was must be what the catalog said before the agent was asked: if something else was registered since, nothing
// changes and the error is an ErrStale, or a late registration would bring back contents that are no more. It is an
// ErrStale, too, where the node is excluded.
func (c *Catalog) RegisterIncarnation(ctx context.Context, node block.NodeID, was, now block.Incarnation) error {
	if node == "" || now == "" {
		return fmt.Errorf("registering incarnation %q of node %q: %w", now, node, ErrBadChange)
	}
	key, member := incarnationKey(node), nodeKey(node)
	err := c.insist(ctx, func(ctx context.Context) (bool, error) {
		values, err := c.engine.Read(ctx, key, member)
		if err != nil || string(values[0]) == string(now) {
			return err == nil, err
		}
		if string(values[0]) != string(was) {
			return false, final(fmt.Errorf("the catalog says %q meanwhile: %w", values[0], ErrStale))
		}
		if err := checkMember(member, values[1]); err != nil {
			return false, final(err)
		}
		failed, err := c.engine.Update(ctx, []Check{{key, values[0]}, {member, values[1]}}, []Write{{Key: key, Value: []byte(now)}})
		return err == nil && len(failed) == 0, err
	})
	if err != nil {
		return fmt.Errorf("registering the store of node %s: %w", node, err)
	}
	return nil
}

// checkMember refuses a node whose record says that it is excluded.
func checkMember(key string, raw []byte) error {
	if raw == nil {
		return nil
	}
	node, err := decode[Node](key, raw)
	if err == nil && node.IsExcluded() {
		err = fmt.Errorf("its record says that it is %s; declare it up to make it a member again: %w", node.State, ErrStale)
	}
	return err
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

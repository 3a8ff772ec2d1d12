package cluster

import (
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// Nodes returns the members of the cluster, by id.
func (k *Keeper) Nodes(ctx context.Context) ([]Node, error) {
	var nodes []Node
	err := k.each(ctx, schema.PrefixNode, func(record kv.Record) error {
		node, err := codec.Decode[Node](record.Key, record.Value)
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
func (k *Keeper) ChangeNode(ctx context.Context, was, is Node) (Node, error) {
	if is.ID == "" || was.ID != is.ID && was != (Node{}) {
		return Node{}, fmt.Errorf("changing node %q to %q: %w", was.ID, is.ID, schema.ErrBadChange)
	}
	is.Version = was.Version + 1
	is.Fenced = is.Fenced || is.IsGone()
	key, unclear := schema.NodeKey(is.ID), false
	err := k.retry(ctx, func(ctx context.Context) (bool, error) {
		raw, now, err := k.readNode(ctx, is.ID)
		if err != nil {
			return false, err
		}
		switch {
		case unclear && now == is:
			return true, nil
		case now != was && unclear:
			return false, kv.Final(fmt.Errorf("it was changed after an unclear answer: %w, %w", schema.ErrStale, schema.ErrUnknown))
		case now != was:
			return false, kv.Final(fmt.Errorf("it was changed meanwhile: %w", schema.ErrStale))
		}
		failed, err := k.engine.Update(ctx, []kv.Check{{Key: key, Value: raw}}, nodeWrites(&is))
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
func nodeWrites(node *Node) []kv.Write {
	writes := []kv.Write{{Key: schema.NodeKey(node.ID), Value: codec.Encode(node)}, tell(SubjectMembers)}
	if node.IsExcluded() {
		writes = append(writes, kv.Write{Key: schema.IncarnationKey(node.ID), Kind: kv.Remove})
	}
	return writes
}

// readNode returns the record of a member, raw nil and a zero Node if there is none.
func (k *Keeper) readNode(ctx context.Context, id block.NodeID) (raw []byte, node Node, err error) {
	values, err := k.engine.Read(ctx, schema.NodeKey(id))
	if err != nil || values[0] == nil {
		return nil, Node{}, err
	}
	node, err = codec.DecodeToChange[Node](schema.NodeKey(id), values[0])
	return values[0], node, err
}

// Membership returns how patient the cluster is with nodes that do not answer.
func (k *Keeper) Membership(ctx context.Context) (Membership, error) {
	values, err := k.engine.Read(ctx, schema.KeyMembers)
	if err != nil {
		return Membership{}, fmt.Errorf("reading the patience with nodes: %w", err)
	}
	if values[0] == nil {
		return Membership{}, nil
	}
	return codec.Decode[Membership](schema.KeyMembers, values[0])
}

// PutMembership sets how patient the cluster is with nodes that do not answer.
func (k *Keeper) PutMembership(ctx context.Context, membership Membership) error {
	if err := k.assign(ctx, schema.KeyMembers, codec.Encode(membership), tell(SubjectMembers)); err != nil {
		return fmt.Errorf("saving the patience with nodes: %w", err)
	}
	return nil
}

// RegisterIncarnation records that the contents of a node's store are no longer was but now, before the node serves
// anything (rule 17); was is empty for a node that is new. From then on slots stored under another incarnation are
// suspect. was must be what the catalog said before the agent was asked: if something else was registered since, nothing
// changes and the error is an ErrStale, or a late registration would bring back contents that are no more. It is an
// ErrStale, too, where the node is excluded, and where the number of now is not the greater one: the store went back, and
// what was registered may not be there.
func (k *Keeper) RegisterIncarnation(ctx context.Context, node block.NodeID, was, now block.Incarnation) error {
	if node == "" || now == "" {
		return fmt.Errorf("registering incarnation %q of node %q: %w", now, node, schema.ErrBadChange)
	}
	key, member := schema.IncarnationKey(node), schema.NodeKey(node)
	err := k.retry(ctx, func(ctx context.Context) (bool, error) {
		values, err := k.engine.Read(ctx, key, member)
		if err != nil || string(values[0]) == string(now) {
			return err == nil, err
		}
		if string(values[0]) != string(was) {
			return false, kv.Final(fmt.Errorf("the catalog says %q meanwhile: %w", values[0], schema.ErrStale))
		}
		if was.Outdates(now) {
			return false, kv.Final(fmt.Errorf("its contents are older than those that the catalog knows, %q: %w", was, schema.ErrStale))
		}
		if err := checkMember(member, values[1]); err != nil {
			return false, kv.Final(err)
		}
		checks := []kv.Check{{Key: key, Value: values[0]}, {Key: member, Value: values[1]}}
		failed, err := k.engine.Update(ctx, checks, []kv.Write{{Key: key, Value: []byte(now)}, tell(SubjectMembers)})
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
	node, err := codec.Decode[Node](key, raw)
	if err == nil && node.IsExcluded() {
		err = fmt.Errorf("its record says that it is %s; declare it up to make it a member again: %w", node.State, schema.ErrStale)
	}
	return err
}

// Incarnations returns what is registered of each node's store.
func (k *Keeper) Incarnations(ctx context.Context) (map[block.NodeID]block.Incarnation, error) {
	incarnations := map[block.NodeID]block.Incarnation{}
	err := k.each(ctx, schema.PrefixIncarnation, func(record kv.Record) error {
		incarnations[block.NodeID(record.Key[len(schema.PrefixIncarnation):])] = block.Incarnation(record.Value)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing incarnations: %w", err)
	}
	return incarnations, nil
}

package catalog

import (
	"context"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// durableGroups is of how many groups of an object it is asked whether they have parities.
const durableGroups = 64

// readDurable reads the groups of objects that may have to be kept because they have parities.
func (t *transaction) readDurable(ctx context.Context, change *Change) error {
	var keys []string
	for i := range change.Put {
		key := schema.ObjectKey(change.Put[i].Key)
		if change.Put[i].Keep != block.KeepDurable || t.values[key] == nil {
			continue
		}
		was, err := codec.Decode[Object](key, t.values[key])
		if err != nil {
			return err
		}
		for _, id := range groupsOf(was.Extents, 0, was.Size) {
			if key := schema.GroupKey(id); t.values[key] == nil && len(keys) < durableGroups {
				keys = append(keys, key)
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	values, err := t.attempt.ledger.engine.Read(ctx, keys...)
	if err != nil {
		return err
	}
	for i, key := range keys {
		t.values[key] = values[i]
	}
	return nil
}

// isDurable reports whether all groups of an object that were read have parities. One that is not there any more shows that the object
// has moved, which its own record does too.
func (t *transaction) isDurable(was *Object) (bool, error) {
	for _, id := range groupsOf(was.Extents, 0, was.Size) {
		key := schema.GroupKey(id)
		if t.values[key] == nil {
			continue
		}
		group, err := codec.Decode[Group](key, t.values[key])
		if err != nil || len(group.Slots) <= group.Columns && !group.IsDissolved() { // what is dissolved lies in groups with parities
			return false, err
		}
	}
	return true, nil
}

// keep has an object that is put over another keep what it has to of that (rule 50), and reports whether it is to be dropped.
func (t *transaction) keep(object, was *Object) (isLost bool, err error) {
	if was.Key == "" {
		return true, nil
	}
	if was.HasExpired(t.attempt.ledger.now()) {
		t.writes = append(t.writes, schema.DropWrites(was.Key, was.Earlier)...)
		return true, nil
	}
	isDurable := false
	if object.Keep == block.KeepDurable {
		if isDurable, err = t.isDurable(was); err != nil {
			return false, err
		}
	}
	keeps, dropped := schema.Keep(object, was, isDurable)
	t.writes = append(t.writes, schema.DropWrites(was.Key, dropped)...)
	if !keeps {
		return true, nil
	}
	version := *was
	version.Key, version.Keep, version.Earlier = block.EarlierKey(was.Key, was.Revision), 0, nil
	record := schema.ObjectKey(version.Key)
	t.checks = append(t.checks, kv.Check{Key: record})
	t.writes = append(t.writes, kv.Write{Key: record, Value: codec.Encode(version)})
	t.writes = append(t.writes, schema.ExpiryWrites(nil, &version)...)
	return false, nil
}

// tryDropped removes an earlier version that its object does not name any more, with the record that says so. It may find that the
// version changed meanwhile, which is errRace.
func (o *objects) tryDropped(ctx context.Context, name, key string) error {
	record := schema.ObjectKey(key)
	values, err := o.engine.Read(ctx, record, schema.KeyFloor)
	if err != nil {
		return err
	}
	checks := []kv.Check{{Key: record}}
	var writes []kv.Write
	if values[0] != nil { // else it has expired
		version, err := codec.DecodeToChange[Object](record, values[0])
		if err != nil {
			return err
		}
		if checks, writes, err = o.remove(name, values[1], values[0], &version); err != nil {
			return err
		}
	}
	failed, err := o.engine.Update(ctx, checks, append(writes, kv.Write{Key: schema.PrefixDropped + key, Kind: kv.Remove}))
	if err == nil && len(failed) > 0 {
		err = errRace
	}
	return err
}

package cluster

import (
	"bytes"
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// ClassesVersion changes with every change of a class, so that it tells, for one small read, whether Classes is worth
// asking.
func (k *Keeper) ClassesVersion(ctx context.Context) (int64, error) {
	values, err := k.engine.Read(ctx, schema.KeyClasses)
	if err != nil {
		return 0, fmt.Errorf("reading the version of the classes: %w", err)
	}
	return codec.DecodeCount(schema.KeyClasses, values[0])
}

// Classes returns the classes as of one instant, by name, those that were removed too, and the version they have.
func (k *Keeper) Classes(ctx context.Context) (classes []Class, version int64, err error) {
	err = k.retry(ctx, func(ctx context.Context) (bool, error) {
		raw, list, err := k.readClasses(ctx, codec.Decode[Class])
		if err != nil {
			return false, err
		}
		again, err := k.engine.Read(ctx, schema.KeyClasses)
		if err != nil || !bytes.Equal(raw, again[0]) {
			return false, err
		}
		classes = list
		version, err = codec.DecodeCount(schema.KeyClasses, raw)
		return err == nil, err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("listing classes: %w", err)
	}
	return classes, version, nil
}

// readClasses returns the classes as they were found one page after the other, and the version before.
func (k *Keeper) readClasses(ctx context.Context, decode func(string, []byte) (Class, error)) (version []byte, classes []Class, err error) {
	values, err := k.engine.Read(ctx, schema.KeyClasses)
	if err != nil {
		return nil, nil, err
	}
	err = k.each(ctx, schema.PrefixClass, func(record kv.Record) error {
		class, err := decode(record.Key, record.Value)
		classes = append(classes, class)
		return err
	})
	return values[0], classes, err
}

// ChangeClasses stores the classes that decide returns when it is given the classes as they are, in one transaction in
// which nobody changes another class. It may call decide several times. An error of decide is returned as it is, and
// changes nothing; so do no classes.
func (k *Keeper) ChangeClasses(ctx context.Context, decide func(classes []Class) ([]Class, error)) error {
	return k.retry(ctx, func(ctx context.Context) (bool, error) {
		raw, classes, err := k.readClasses(ctx, codec.DecodeToChange[Class])
		if err != nil {
			return false, fmt.Errorf("listing classes: %w", err)
		}
		changed, err := decide(classes)
		if err != nil || len(changed) == 0 {
			return err == nil, kv.Final(err)
		}
		version, err := codec.DecodeCount(schema.KeyClasses, raw)
		if err != nil {
			return false, err
		}
		writes := []kv.Write{{Key: schema.KeyClasses, Value: codec.EncodeCount(version + 1), Notify: true}}
		for i := range changed {
			if changed[i].Name == "" || len(changed[i].Name) > kv.KeyLimit-len(schema.PrefixClass) {
				return false, kv.Final(fmt.Errorf("a class with a name of %d bytes: %w", len(changed[i].Name), schema.ErrBadChange))
			}
			writes = append(writes, kv.Write{Key: schema.ClassKey(changed[i].Name), Value: codec.Encode(changed[i])})
		}
		// decide saw the classes of this version, or the check fails: they do not change without it.
		failed, err := k.engine.Update(ctx, []kv.Check{{Key: schema.KeyClasses, Value: raw}}, writes)
		if err != nil {
			return false, fmt.Errorf("saving classes: %w", err)
		}
		return len(failed) == 0, nil
	})
}

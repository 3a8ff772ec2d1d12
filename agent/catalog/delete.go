package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// request is the outcome of a delete, kept under a name that is used once, so that it can be asked for later and a late
// or repeated request does nothing.
type request struct {
	State IntentState `cbor:"1,keyasint"`
	At    int64       `cbor:"2,keyasint"` // Unix milliseconds

	Answer []byte `cbor:"3,keyasint,omitempty"` // of other requests than deletes, what their client was told
	Key    string `cbor:"4,keyasint,omitempty"` // of the object that is changed
}

// errRace says that a record changed between reading and writing it.
var errRace = errors.New("record changed meanwhile")

// Delete removes an object and says whether there was one. With ifRevision it fails with ErrStale, as a *StaleError
// with ViolationRevision, if the object has another revision or none. Without, an absent object is (false,
// ErrNoObject).
//
// The delete is one transaction under a request name of its own (rule 8): if the answer is lost, the row it left, or
// one put there in its stead, settles the question, also when ctx is cancelled. ErrNotActive says that the object was
// not deleted by this call; ErrUnknown that it could not be found out.
func (o *objects) Delete(ctx context.Context, key string, ifRevision *block.Stamp) (existed bool, err error) {
	name, err := o.requestName()
	if err != nil {
		return false, fmt.Errorf("deleting object %q: %w", key, err)
	}
	return o.DeleteOnce(ctx, name, key, ifRevision)
}

// DeleteOnce is Delete under a name that the client gives it: asked for again it does nothing, and answers as before.
func (o *objects) DeleteOnce(ctx context.Context, name RequestName, key string, ifRevision *block.Stamp) (existed bool, err error) {
	for {
		existed, err = o.delete(ctx, string(name), key, ifRevision)
		if !errors.Is(err, errRace) {
			break
		}
	}
	if err != nil {
		return existed, fmt.Errorf("deleting object %q: %w", key, err)
	}
	return existed, nil
}

// delete tries once; errRace says that nothing happened and the object is another one now.
func (o *objects) delete(ctx context.Context, name, key string, ifRevision *block.Stamp) (bool, error) {
	values, err := o.engine.Read(ctx, schema.ObjectKey(key), schema.KeyFloor, name)
	if err != nil {
		return false, err
	}
	if values[2] != nil {
		answer, done, err := o.Answered(ctx, RequestName(name), key)
		if err == nil && len(answer) > 0 {
			return false, ErrOtherRequest
		}
		return done, err
	}
	raw := values[0]
	object := Object{}
	if raw != nil {
		if object, err = codec.DecodeToChange[Object](schema.ObjectKey(key), raw); err != nil {
			return false, err
		}
	}
	now := revisionAt(&object, o.now())
	if ifRevision != nil && *ifRevision != now {
		return false, &StaleError{Details: []StaleDetail{{Violation: ViolationRevision, Key: key}}}
	}
	if now.IsZero() {
		return false, ErrNoObject
	}
	checks, writes, err := o.remove(name, values[1], raw, &object)
	if err != nil {
		return false, err
	}
	checks = append(checks, kv.Check{Key: name})
	writes = append(writes, kv.Write{Key: name, Value: codec.Encode(request{State: IntentCommitted, At: o.now().UnixMilli(), Key: key})})
	failed, err := o.engine.Update(ctx, checks, writes)
	switch {
	case err != nil:
		return o.settleRequest(context.WithoutCancel(ctx), name, key, err)
	case len(failed) > 0:
		return false, errRace
	}
	return true, nil
}

// revisionAt is the revision that an object has for those who ask at a time: none, once it has expired.
func revisionAt(object *Object, at time.Time) block.Stamp {
	if object.HasExpired(at) {
		return block.Stamp{}
	}
	return object.Revision
}

// remove is the update that takes an object out whose record was raw, with the floor as it was read then. The name is that of a request.
func (o *objects) remove(name string, floor, raw []byte, object *Object) ([]kv.Check, []kv.Write, error) {
	given, held := o.hold(strings.TrimPrefix(name, schema.PrefixRequest), 0, object.Key, object.Extents)
	dropped := schema.Lives{}
	dropped.Add(given, -1)
	checks, raised, err := o.raise(floor, object.Newest())
	writes := slices.Concat(dropped.Writes(), held, schema.ExpiryWrites(object, nil), schema.DropWrites(object.Key, object.Earlier), raised,
		[]kv.Write{{Key: schema.ObjectKey(object.Key), Kind: kv.Remove}})
	return append(checks, kv.Check{Key: schema.ObjectKey(object.Key), Value: raw}), writes, err
}

// settleRequest finds out whether a delete took effect, and sees to it that it never does if it did not yet.
func (o *objects) settleRequest(ctx context.Context, name, key string, cause error) (existed bool, err error) {
	row := codec.Encode(request{State: IntentAborted, At: o.now().UnixMilli(), Key: key})
	var outcome []byte
	err = o.retry(ctx, func(ctx context.Context) (bool, error) {
		values, err := o.engine.Read(ctx, name)
		if err != nil {
			return false, err
		}
		if outcome = values[0]; outcome != nil {
			return true, nil
		}
		_, err = o.engine.Update(ctx, []kv.Check{{Key: name}}, []kv.Write{{Key: name, Value: row}})
		return false, err
	})
	if err != nil {
		return false, fmt.Errorf("%w: %w; settling it: %w", ErrUnknown, cause, err)
	}
	if bytes.Equal(outcome, row) {
		return false, fmt.Errorf("%w: %w", ErrNotActive, cause)
	}
	return true, nil
}

func (o *objects) requestName() (RequestName, error) {
	var name [16]byte
	if _, err := io.ReadFull(o.random, name[:]); err != nil {
		return "", fmt.Errorf("naming the request: %w", err)
	}
	return RequestNamed(o.now(), name), nil
}

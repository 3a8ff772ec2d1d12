package catalog

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// KeySchema is the key of the record that says which version the records of a catalog have, or why it is set aside.
const KeySchema = keySchema

// aside begins the schema record of a catalog that is not in service.
const aside = "aside: "

// Aside returns the schema record of a catalog that nothing opens; the error says reason.
func Aside(reason string) []byte { return []byte(aside + reason) }

// InService returns the schema record of a catalog that gateways of this release open.
func InService() []byte { return []byte(strconv.Itoa(SchemaVersion)) }

// IsCounter reports whether the record under key is a counter, and not a value.
func IsCounter(key string) bool { return strings.HasPrefix(key, prefixLive) }

// asideError says that a catalog with this schema record is not in service; nil if it may be.
func asideError(schema []byte) error {
	if reason, is := strings.CutPrefix(string(schema), aside); is {
		return final(fmt.Errorf("%w: %s", ErrAside, reason))
	}
	return nil
}

// SetAside takes the catalog in engine out of service for a reason: the starts of gateways that it knows end, with ErrClaimed, and
// none begins. What they had announced stays as it is. It does nothing more where the catalog is set aside for the same reason
// already, and fails with ErrAside where it is for another one.
func SetAside(ctx context.Context, engine kv.Engine, reason string) error {
	c := build(engine, "aside/none")
	err := c.retry(ctx, func(ctx context.Context) (bool, error) {
		values, err := c.engine.Read(ctx, keySchema)
		if err != nil {
			return false, err
		}
		if !bytes.Equal(values[0], InService()) && !bytes.Equal(values[0], Aside(reason)) {
			if err := asideError(values[0]); err != nil {
				return false, err
			}
			return false, final(fmt.Errorf("%w: its schema version is %q, not %d", ErrBadChange, values[0], SchemaVersion))
		}
		mark := filler{c.engine, string(Aside(reason)), "say it again"}
		if err := mark.begin(ctx, values[0]); err != nil {
			return false, err
		}
		// None begins from here on, so these are all.
		var writes []kv.Write
		err = c.auditor.each(ctx, prefixGateway, func(record kv.Record) error {
			writes = append(writes, kv.Write{Key: record.Key, Kind: kv.Remove})
			return nil
		})
		if err != nil {
			return false, err
		}
		return true, mark.write(ctx, writes)
	})
	if err != nil {
		return fmt.Errorf("setting the catalog aside: %w", err)
	}
	return nil
}

// SetAside sets this catalog aside, from under its own gateway too; see the function.
func (c *Catalog) SetAside(ctx context.Context, reason string) error {
	return SetAside(ctx, c.session.Engine, reason)
}

// Records returns all records as of one instant.
func (c *Catalog) Records(ctx context.Context) (kv.Snapshot, error) {
	return c.session.Engine.Snapshot(ctx)
}

// Size says how much the engine holds.
func (c *Catalog) Size(ctx context.Context) (kv.Size, error) { return c.session.Engine.Size(ctx) }

// PutBack puts the catalog in engine, which was set aside for the same reason, into service again.
func PutBack(ctx context.Context, engine kv.Engine, reason string) error {
	failed, err := engine.Update(ctx, []kv.Check{{Key: keySchema, Value: Aside(reason)}}, []kv.Write{{Key: keySchema, Value: InService()}})
	if err == nil && len(failed) > 0 {
		err = fmt.Errorf("%w: it is not set aside, or for another reason", ErrBadChange)
	}
	if err != nil {
		return fmt.Errorf("putting the catalog back into service: %w", err)
	}
	return nil
}

package transfer

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// asidePatience is how long setting a catalog aside is tried.
const asidePatience = 30 * time.Second

// mark is a schema record of a catalog that is set aside for a reason, another one each time: a request of an earlier time that
// comes late finds that it is not meant.
func mark(reason string) []byte { return catalog.Aside(reason + " [" + rand.Text()[:10] + "]") }

// isMarked reports whether a schema record says that the catalog is set aside for a reason.
func isMarked(schema []byte, reason string) bool {
	return bytes.HasPrefix(schema, catalog.Aside(reason+" ["))
}

// isInService reports whether a schema record is that of a catalog in service, of a version that this program knows.
func isInService(record []byte) bool {
	version := schema.VersionOf(record)
	return version >= schema.OldestVersion && version <= schema.Version
}

// IsMoved reports whether a schema record says that the catalog was set aside to be moved to an address.
func IsMoved(schema []byte, address string) bool { return isMarked(schema, Moved(address)) }

// SetAside takes the catalog in engine out of service for a reason: the starts of gateways that it knows end, with ErrClaimed, and
// none begins. What they had announced stays as it is. It fails with ErrAside where the catalog is set aside for another reason.
func SetAside(ctx context.Context, engine kv.Engine, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, asidePatience)
	defer cancel()
	err := kv.Retry(ctx, kv.PauseDoubling, func(ctx context.Context) (bool, error) {
		values, err := engine.Read(ctx, catalog.KeySchema)
		if err != nil {
			return false, err
		}
		if was := values[0]; !isMarked(was, reason) && !isInService(was) {
			return false, kv.Final(fmt.Errorf("%w, or of another release: its schema version is %q", catalog.ErrAside, was))
		}
		// Also where it is set aside already: what put it back may be on its way.
		set := mark(reason)
		checks := []kv.Check{{Key: catalog.KeySchema, Value: values[0]}}
		failed, err := engine.Update(ctx, checks, []kv.Write{{Key: catalog.KeySchema, Value: set}})
		if err != nil || len(failed) > 0 {
			return false, err
		}
		// None begins from here on, so these are all.
		var writes []kv.Write
		err = kv.Each(ctx, engine, catalog.PrefixPresent, func(record kv.Record) error {
			writes = append(writes, kv.Write{Key: record.Key, Kind: kv.Remove})
			return nil
		})
		if err != nil {
			return false, err
		}
		for batch := range slices.Chunk(writes, batchRecords) {
			failed, err := engine.Update(ctx, []kv.Check{{Key: catalog.KeySchema, Value: set}}, batch)
			if err != nil || len(failed) > 0 {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("setting the catalog aside: %w", err)
	}
	return nil
}

// PutBack puts the catalog in engine, which was set aside for the same reason, into service again.
func PutBack(ctx context.Context, engine kv.Engine, reason string) error {
	values, err := engine.Read(ctx, catalog.KeySchema, schema.KeyVersion)
	if err == nil && !isMarked(values[0], reason) {
		err = fmt.Errorf("%w: it is not set aside, or for another reason", catalog.ErrBadChange)
	}
	if err == nil {
		err = replace(ctx, engine, values[0], schema.InService(values[1]))
	}
	if err != nil {
		return fmt.Errorf("putting the catalog back into service: %w", err)
	}
	return nil
}

// replace gives a catalog another schema record, if it has the one that was read.
func replace(ctx context.Context, engine kv.Engine, was, now []byte) error {
	failed, err := engine.Update(ctx, []kv.Check{{Key: catalog.KeySchema, Value: was}}, []kv.Write{{Key: catalog.KeySchema, Value: now}})
	if err == nil && len(failed) > 0 {
		err = fmt.Errorf("%w: somebody else works on it", kv.ErrInUse)
	}
	return err
}

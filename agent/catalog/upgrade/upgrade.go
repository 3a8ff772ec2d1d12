// Package upgrade raises the schema version of a catalog that an earlier release made, once nobody works with it any more who does not
// know the later one.
package upgrade

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// patience is how long an engine that gives no clear answer is asked.
const patience = 30 * time.Second

// Raise gives the catalog in engine the schema version of this release, and then ends the starts of all gateways but those that are
// known to know it: one that was paused, and is of the release before, must not go on. It may be done again. It fails with
// catalog.ErrAside where the catalog is set aside.
func Raise(ctx context.Context, engine kv.Engine, knows func(gateway string) bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := kv.Retry(ctx, kv.PauseDoubling, func(ctx context.Context) (bool, error) { return raise(ctx, engine) })
	if err == nil {
		err = kv.Retry(ctx, kv.PauseDoubling, func(ctx context.Context) (bool, error) { return end(ctx, engine, knows) })
	}
	if err != nil {
		return fmt.Errorf("upgrading the catalog: %w", err)
	}
	return nil
}

// raise is a turn of raising the version. From then on no gateway of the release before opens the catalog.
func raise(ctx context.Context, engine kv.Engine) (done bool, err error) {
	values, err := engine.Read(ctx, catalog.KeySchema, schema.KeyVersion)
	if err != nil {
		return false, err
	}
	switch version := schema.VersionOf(values[0]); {
	case version == 0:
		return false, kv.Final(fmt.Errorf("%w: its schema version is %q", catalog.ErrAside, values[0]))
	case version >= catalog.SchemaVersion:
		return true, nil
	}
	now := []byte(strconv.Itoa(catalog.SchemaVersion))
	_, err = engine.Update(ctx,
		[]kv.Check{{Key: catalog.KeySchema, Value: values[0]}, {Key: schema.KeyVersion, Value: values[1]}},
		[]kv.Write{{Key: catalog.KeySchema, Value: now}, {Key: schema.KeyVersion, Value: now}})
	return false, err // the next turn sees
}

// end is a turn of ending starts.
func end(ctx context.Context, engine kv.Engine, knows func(gateway string) bool) (done bool, err error) {
	var others []kv.Record
	err = kv.Each(ctx, engine, catalog.PrefixPresent, func(record kv.Record) error {
		if !knows(strings.TrimPrefix(record.Key, catalog.PrefixPresent)) {
			others = append(others, record)
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for _, record := range others {
		failed, err := engine.Update(ctx, []kv.Check{{Key: record.Key, Value: record.Value}}, []kv.Write{{Key: record.Key, Kind: kv.Remove}})
		if err != nil || len(failed) > 0 {
			return false, err
		}
	}
	return true, nil
}

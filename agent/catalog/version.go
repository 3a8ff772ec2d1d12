package catalog

import (
	"context"
	"fmt"
	"strconv"

	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// The versions of records that this release knows. The fingerprints of version 1 were of another kind. Since version 3 a group may have
// empty columns, of which the release before knows nothing.
const (
	SchemaVersion = 3 // of catalogs that are made now
	OldestVersion = 2 // that is opened
)

// KeyVersion is the key of the record that repeats the schema version for what works on a catalog that is set aside. Version 2 has none.
const KeyVersion = schema.KeyVersion

// VersionOf returns the version that the record under KeySchema or KeyVersion says; 0 if it says none.
func VersionOf(record []byte) int {
	version, _ := strconv.Atoi(string(record)) // what is no number is no version
	return version
}

// InService returns the schema record of a catalog in service whose record under KeyVersion is as given.
func InService(version []byte) []byte {
	return []byte(strconv.Itoa(max(OldestVersion, VersionOf(version))))
}

// HasEmptyColumns reports whether everybody who works with the catalog, as far as this session knows, knows of empty columns.
func (c *Catalog) HasEmptyColumns() bool { return c.version.Load() >= SchemaVersion }

// Refresh looks whether the schema version was raised.
func (c *Catalog) Refresh(ctx context.Context) error {
	values, err := c.engine.Read(ctx, schema.KeySchema)
	if err != nil {
		return fmt.Errorf("reading the schema version: %w", err)
	}
	c.version.Store(max(c.version.Load(), int64(VersionOf(values[0]))))
	return nil
}

// checkVersion refuses the records of other releases.
func checkVersion(version int) error {
	switch {
	case version > SchemaVersion:
		return kv.Final(fmt.Errorf("%w: its records have version %d, this program knows versions up to %d: "+
			"use a newer release of restripe, or name another catalog", kv.ErrNewer, version, SchemaVersion))
	case version < OldestVersion:
		return kv.Final(fmt.Errorf("%w: its records have version %d, this program knows versions from %d on: "+
			"read the objects with the release that wrote them and put them into a new catalog", ErrOlder, version, OldestVersion))
	}
	return nil
}

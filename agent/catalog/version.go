package catalog

import (
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/catalog/schema"
)

// SchemaVersion is the version of the records of catalogs that are made now.
const SchemaVersion = schema.Version

// IsUpgraded reports whether everybody who works with the catalog, as far as this session knows, knows the
// records of this release: groups with empty columns, and objects that expire or have metadata.
func (c *Catalog) IsUpgraded() bool { return c.version.Load() >= SchemaVersion }

// Refresh looks whether the schema version was raised.
func (c *Catalog) Refresh(ctx context.Context) error {
	values, err := c.engine.Read(ctx, schema.KeySchema)
	if err != nil {
		return fmt.Errorf("reading the schema version: %w", err)
	}
	c.version.Store(max(c.version.Load(), int64(schema.VersionOf(values[0]))))
	return nil
}

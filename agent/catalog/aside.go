package catalog

import (
	"strings"

	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// KeySchema is the key of the record that says which version the records of a catalog have, or why it is set aside.
const KeySchema = schema.KeySchema

// Aside returns the schema record of a catalog that nothing opens; the error says reason.
func Aside(reason string) []byte { return schema.Aside(reason) }

// PrefixPresent begins the keys of the records that say which start a gateway has at present.
const PrefixPresent = schema.PrefixGateway

// IsCounter reports whether the record under key is a counter, and not a value.
func IsCounter(key string) bool { return strings.HasPrefix(key, schema.PrefixLive) }

// Raw returns the engine without the conditions of the session, for what works on the records as such.
func (c *Catalog) Raw() *kv.Observed { return c.session.Observed }

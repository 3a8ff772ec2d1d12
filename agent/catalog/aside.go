package catalog

import (
	"fmt"
	"strings"

	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// KeySchema is the key of the record that says which version the records of a catalog have, or why it is set aside.
const KeySchema = schema.KeySchema

// aside begins the schema record of a catalog that is not in service.
const aside = "aside: "

// Aside returns the schema record of a catalog that nothing opens; the error says reason.
func Aside(reason string) []byte { return []byte(aside + reason) }

// PrefixPresent begins the keys of the records that say which start a gateway has at present.
const PrefixPresent = schema.PrefixGateway

// IsCounter reports whether the record under key is a counter, and not a value.
func IsCounter(key string) bool { return strings.HasPrefix(key, schema.PrefixLive) }

// asideError says that a catalog with this schema record is not in service; nil if it may be.
func asideError(schema []byte) error {
	if reason, is := strings.CutPrefix(string(schema), aside); is {
		return kv.Final(fmt.Errorf("%w: %s", ErrAside, reason))
	}
	return nil
}

// Raw returns the engine without the conditions of the session, for what works on the records as such.
func (c *Catalog) Raw() *kv.Observed { return c.session.Observed }

package schema

import (
	"fmt"
	"strings"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// aside begins the schema record of a catalog that is not in service.
const aside = "aside: "

// Aside returns the schema record of a catalog that nothing opens; the error says reason.
func Aside(reason string) []byte { return []byte(aside + reason) }

// AsideError says that a catalog with this schema record is not in service; nil if it may be.
func AsideError(record []byte) error {
	if reason, is := strings.CutPrefix(string(record), aside); is {
		return kv.Final(fmt.Errorf("%w: %s", ErrAside, reason))
	}
	return nil
}

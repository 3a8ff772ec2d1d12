package open_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/catalog/open"
)

func TestACatalogInAFile(t *testing.T) {
	catalog, warnings, err := open.Catalog(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "catalog.db"), "gw1", "start", time.Minute)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v, warnings %v", err, warnings)
	}
	if err := catalog.Close(); err != nil {
		t.Error(err)
	}
}

// What is no address is refused with the forms that an address has, and without what may be a password in it.
func TestAddressesAreRefused(t *testing.T) {
	for _, address := range []string{"", "sqlite:", "file:/catalog.db", "secret"} {
		_, err := open.Engine(t.Context(), address)
		if err == nil || !strings.Contains(err.Error(), "want sqlite:FILE, redis://host:port or rediss://host:port") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

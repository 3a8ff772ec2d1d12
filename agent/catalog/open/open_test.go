package open_test

import (
	"net"
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
	for _, address := range []string{"", "sqlite", "sqlite:", "file:/catalog.db", "mysql://user:secret@host/db"} {
		engine, err := open.Engine(t.Context(), address)
		if err == nil {
			t.Errorf("%q was opened: %v", address, engine.Close())
			continue
		}
		if !strings.Contains(err.Error(), "want "+open.Addresses) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// Where nobody listens, the error says what to look at.
func TestAServerThatIsNotThereIsSaid(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	server := listener.Addr().String()
	for _, address := range []string{"redis://" + server, "etcd://" + server, "postgresql://user:secret@" + server + "/db"} {
		_, err := open.Engine(t.Context(), address)
		if err == nil || !strings.Contains(err.Error(), "see that the server runs and is reachable from here") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("where nobody listens: %v", err)
		}
	}
}

package postgres_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/catalog/postgres"
)

// What is wrong with an address is said without what may be a password in it.
func TestAddresses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ address, want string }{
		{"postgres://user@host/database", ""},
		{"postgresql://user:s3cr3t@host:5433/database?catalog=another_1&sslmode=verify-full", ""},
		{"postgres://user:s3cr3t@one:5432,two:5433/database?target_session_attrs=read-write", ""},
		{"postgres://user@host/database?passfile=" + file, ""},
		{"http://user:s3cr3t@host/database", "want postgres://user@host:port/database"},
		{"postgres:user:s3cr3t", "want postgres://user@host:port/database"},
		{"postgres://user:s3cr3t%zz@host/database", "percent-encoded"},
		{"postgres://user:s3cr3t@host:port/database", "percent-encoded"},
		{"postgres://user:s3cr3t@host/database?%zz=s3cr3t", "percent-encoded"},
		{"postgres://user:s3cr3t@host/database?sslmode=s3cr3t", "parameters that PostgreSQL knows"},
		{"postgres://user:s3cr3t@host/database?catalog=Upper", "letters a to z"},
		{"postgres://user:s3cr3t@host/database?catalog=pg_own", "does not begin with pg_"},
		{"postgres://user:s3cr3t@host/database?catalog=a%22b", "letters a to z"},
		{"postgres://user@host/database?passfile=" + file + ".no", file + ".no"},
		{"postgres://user:s3cr3t@host/database?sslmode=verify-ca&sslrootcert=" + file + ".no", file + ".no"},
	} {
		err := postgres.Check(test.address)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", test.address, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cr3t") || strings.Contains(postgres.Location(test.address), "s3cr3t") {
			t.Errorf("%s: the password is told: %v, %s", test.address, err, postgres.Location(test.address))
		}
	}
	if got, want := postgres.Location("postgres://user:s3cr3t@one:1,two:2/db"), "postgres://one:1,two:2/db?catalog=restripe"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

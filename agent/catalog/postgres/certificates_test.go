package postgres_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/catalog/postgres/postgrestest"
	"github.com/restripe/restripe/agent/pki"
)

// With sslmode=verify-full both sides show certificates of one authority, and the password is in a file.
func TestCertificates(t *testing.T) {
	authority, err := pki.Create(filepath.Join(t.TempDir(), "authority"), "test")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if _, err := authority.Issue(pki.Identity{Role: pki.RoleGateway, Name: "catalog"}, []string{"127.0.0.1"}, 0, folder); err != nil {
		t.Fatal(err)
	}
	s := postgrestest.Prepare(t, newest(t), "ssl=on", "ssl_cert_file=tls.crt", "ssl_key_file=tls.key", "ssl_ca_file=ca.crt")
	write := func(path, text string) string {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own := func(path, text string) string { // the server's
		if _, err := postgrestest.Account(write(path, text)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s.Do("initdb", "--pgdata="+s.Data(), "--username=owner", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync",
		"--pwfile="+own(filepath.Join(s.Directory, "password"), "s3cr3t\n"))
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		own(filepath.Join(s.Data(), name), string(text))
	}
	own(filepath.Join(s.Data(), "pg_hba.conf"), "hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca\n")
	s.Run()
	write(filepath.Join(folder, "pgpass"), fmt.Sprintf("127.0.0.1:%d:postgres:owner:s3cr3t\n", s.Port))
	address := func(parameters string) string {
		return "postgres://owner@" + s.Host() + "/postgres?" + strings.ReplaceAll(parameters, "FOLDER", folder)
	}
	const shown = "&sslcert=FOLDER/tls.crt&sslkey=FOLDER/tls.key"
	engine := open(t, address("sslmode=verify-full&sslrootcert=FOLDER/ca.crt&passfile=FOLDER/pgpass"+shown))
	defer shut(t, engine)
	put(t.Context(), t, engine, "k", "v")
	for parameters, want := range map[string]string{
		"sslmode=verify-full&passfile=FOLDER/pgpass" + shown:                            "certificate",
		"sslmode=verify-full&sslrootcert=FOLDER/ca.crt&passfile=FOLDER/pgpass":          "certificate",
		"sslmode=verify-full&sslrootcert=FOLDER/ca.crt&passfile=FOLDER/tls.crt" + shown: "password",
		"sslmode=disable&passfile=FOLDER/pgpass":                                        "pg_hba.conf",
	} {
		if got := refusal(t, address(parameters)); !strings.Contains(got, want) || strings.Contains(got, "s3cr3t") {
			t.Errorf("opening with %s: %s, want %s", parameters, got, want)
		}
	}
}

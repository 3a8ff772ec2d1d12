package etcd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/catalog/etcd"
)

// An address that is refused says what is wrong with it, and never the password in it.
func TestAddresses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("s3cr3t\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for address, complaint := range map[string]string{
		"":                                         "want etcd://",
		"etcd:":                                    "want etcd://",
		"etcd://":                                  "host:port",
		"etcd://127.0.0.1":                         "host:port",
		"etcd://:2379":                             "host:port",
		"etcd://b,127.0.0.1:1":                     `"b" is not host:port`,
		"etcd://127.0.0.1:1,":                      `"" is not host:port`,
		"etcd://127.0.0.1:1/path":                  "path",
		"etcd://127.0.0.1:1?catalog=a/b":           "slashes",
		"etcd://127.0.0.1:1?catalog=":              "empty",
		"etcd://127.0.0.1:1?cacert=x":              "etcds://",
		"etcds://127.0.0.1:1?cacert=/none":         "/none",
		"etcds://h:1?cacert=" + file:               "no certificate is in",
		"etcds://127.0.0.1:1?cert=/none":           "/none",
		"etcds://127.0.0.1:1?color=x":              "color",
		"etcd://h:1?passwordfile=/none":            "/none",
		"etcd://h:1?passwordfile=" + file:          "a user goes with a password",
		"etcd://user@h:1":                          "a user goes with a password",
		"etcd://u:s3cr3t@h:1?passwordfile=" + file: "beside",
		"http://user:s3cr3t@127.0.0.1:1":           "etcd://",
		"etcd://user:s3cr3t@127.0.0.1:1?color=x":   "color",
		"etcd://user:s3cr3t%zz@127.0.0.1:1":        "percent",
		"etcd://user:s3cr3t@127.0.0.1:1?a=%zz":     "percent",
		"etcd://user:s3cr3t@127.0.0.1":             "host:port",
	} {
		err := etcd.Check(address)
		if err == nil || !strings.Contains(err.Error(), complaint) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v, want %s", address, err, complaint)
		}
		if location := etcd.Location(address); location != "etcd:" {
			t.Errorf("%s is shown as %s", address, location)
		}
		if _, err := etcd.Open(t.Context(), address); err == nil {
			t.Errorf("%s was opened", address)
		}
	}
	for _, address := range []string{
		"etcd://a.example.org:2379", "etcd://[::1]:2379/", "etcd://user:w%40rd@a.example.org:2379,b.example.org:2379/?catalog=photos",
		"etcd://user@h:1?passwordfile=" + file, "etcds://h:1", "etcds://a:1,b:2/",
	} {
		if err := etcd.Check(address); err != nil {
			t.Error(err)
		}
	}
	for address, want := range map[string]string{
		"etcd://user:s3cr3t@a:1,b:2/?catalog=photos": "etcd://a:1,b:2/?catalog=photos",
		"etcds://user:s3cr3t@[::1]:2379":             "etcds://[::1]:2379",
	} {
		if got := etcd.Location(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
}

package daemon

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/tui/cli/program"
)

// TestListenAddresses: what other machines can reach is refused unless it is allowed, for everybody or for those who say who they
// are; and a name is no loopback address.
func TestListenAddresses(t *testing.T) {
	command := &cobra.Command{Use: "serve"}
	for address, allowed := range map[string][2]bool{ // without and with --allow-remote
		"127.0.0.1:7480": {true, true}, "127.7.7.7:0": {true, true}, "[::1]:7480": {true, true}, "localhost:1": {true, true},
		"0.0.0.0:7480": {false, true}, ":7480": {false, true}, "10.0.0.5:7480": {false, true}, "[::]:0": {false, true},
		"host:7480": {false, true},
		"7480":      {}, "": {}, "127.0.0.1": {}, "::1:7480": {},
	} {
		for _, test := range []struct {
			allowed    Remote
			asks, want bool
		}{
			{RemoteNobody, true, allowed[0]}, {RemoteAnybody, false, allowed[1]}, {RemoteKnown, true, allowed[1]},
			{RemoteKnown, false, allowed[0]}, {"x", true, false},
		} {
			err := test.allowed.Check(command, "listen", address, test.asks, "say who may")
			var wrong *program.UsageError
			if (err == nil) != test.want || err != nil && !errors.As(err, &wrong) {
				t.Errorf("--listen %q, %+v: %v", address, test, err)
			}
		}
	}
}

// TestPasswordsAreNoArguments: an address with a password comes from a file or the environment.
func TestPasswordsAreNoArguments(t *testing.T) {
	t.Setenv(CatalogVariable, "redis://:s3cr3t@host:6379")
	directory := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	command := &cobra.Command{Use: "serve"}
	for value, want := range map[string]string{
		"": "redis://:s3cr3t@host:6379", "sqlite:/a/catalog.db": "sqlite:/a/catalog.db", "redis://host:6379": "redis://host:6379",
		"redis://user@host:6379": "redis://user@host:6379", "@" + write("one", "rediss://u:p@host:1\n"): "rediss://u:p@host:1",
		"redis://:s3cr3t@host:6379": "", "rediss://u:s3c@r3t@host:6379/1": "", "redis://u:%zz@host": "",
		"@" + write("none", "\n"): "", "@" + write("two", "a\nb\n"): "", "@" + filepath.Join(directory, "absent"): "",
	} {
		got, err := SecretAddress(command, "catalog", value, CatalogVariable)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("--catalog %q is %q, %v, want %q", value, got, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "s3c") || !strings.Contains(err.Error(), "--catalog")) {
			t.Errorf("--catalog %q: %v", value, err)
		}
	}
}

// TestLifelines: a server that was given one ends with who holds it, and no other does.
func TestLifelines(t *testing.T) {
	in, held := io.Pipe()
	s := &program.Streams{In: in, Messages: &bytes.Buffer{}}
	tied, cancel := withLifeline(t.Context(), s, true)
	defer cancel()
	if _, err := held.Write([]byte("still here")); err != nil {
		t.Fatal(err)
	}
	if tied.Err() != nil {
		t.Error("it ended while the lifeline was held")
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	<-tied.Done()

	loose, cancel := withLifeline(t.Context(), &program.Streams{In: strings.NewReader("")}, false)
	if loose.Err() != nil {
		t.Error("a server without a lifeline ended")
	}
	cancel()
	if loose.Err() == nil {
		t.Error("a server that is told to end does not")
	}
}

func TestAddressOfAnAgent(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "new", "state")
	for _, address := range []string{"127.0.0.1:1", "127.0.0.1:23456"} {
		if err := writeAddress(directory, address); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(directory, agentAddressFile)); err != nil || string(text) != address+"\n" {
			t.Errorf("the file holds %q, %v", text, err)
		}
	}
	if entries, err := os.ReadDir(directory); err != nil || len(entries) != 1 {
		t.Errorf("%d files are there: %v", len(entries), err)
	}
	if err := writeAddress(filepath.Join(directory, agentAddressFile), "x"); err == nil {
		t.Error("a file was taken for a directory")
	}
}

package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/tui/tree"
)

// smallGroups is the size of a group of the class that most objects of these tests are in.
const smallGroups = 64 << 10

const roundTripClasses = `classes:
- {name: default, ladder: "rep(2),rs(2,1)", prefixes: [""]}
- {name: small, ladder: "rep(2),rs(2,1)", prefixes: [small/], groupBytes: 64KiB, packBelow: 4KiB}
- {name: coded, ladder: "rep(2),rs(2,1)", default: "rs(2,1)", prefixes: [coded/], groupBytes: 64KiB, packBelow: "0"}
`

// startCluster starts a cluster over directories and returns the address of its gateway.
func startCluster(t *testing.T, agents int, classes string) string {
	t.Helper()
	program, err := exec.LookPath("restripe") // the scripts' runner puts it there
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	plant(t, folder, map[string]string{"classes.yaml": classes})
	cluster, err := launch.Start(t.Context(), launch.Options{
		Directory: filepath.Join(folder, "state"), Binary: program, Agents: agents, ClassFile: filepath.Join(folder, "classes.yaml"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cluster.Gateway()
}

// failing is what ends a test, of the testing package and of rapid.
type failing interface {
	Fatalf(format string, values ...any)
}

// mustDo runs a command that has to end well and returns its output.
func mustDo(t failing, gateway string, in io.Reader, arguments ...string) []byte {
	var out, messages bytes.Buffer
	code := Execute(append([]string{programName, "--gateway", gateway}, arguments...), in, &out, &messages)
	if code != program.ExitDone {
		t.Fatalf("restripe %q: exit code %d: %s", arguments, code, messages.String())
	}
	return out.Bytes()
}

// TestStandardInputComesBack puts from standard input, whose length nobody knows beforehand, at every size beside that of
// a group, and reads it back. At one byte more than a multiple of a group's size the last byte is a group of its own.
func TestStandardInputComesBack(t *testing.T) {
	t.Parallel()
	gateway := startCluster(t, 3, roundTripClasses)
	const group = 4 << 20
	for _, c := range []struct {
		class string
		size  int
	}{
		{"", group + 1}, {"", group}, {"", group - 1}, {"", 2*group + 1}, {"", 0}, {"", 1},
		{"small/", smallGroups - 1}, {"small/", smallGroups}, {"small/", smallGroups + 1}, {"small/", 2*smallGroups + 1},
		{"small/", 10*smallGroups + 1}, {"small/", 4 << 10}, {"small/", 4<<10 - 1},
		{"coded/", 1}, {"coded/", smallGroups + 1}, {"coded/", 7*smallGroups + 1}, {"coded/", 0},
	} {
		key := c.class + strconv.Itoa(c.size)
		want := contents(uint64(c.size), c.size)
		for name, in := range map[string]io.Reader{"": bytes.NewReader(want), "-end": iotest.DataErrReader(bytes.NewReader(want))} {
			mustDo(t, gateway, in, "put", "-", key+name)
			if have := mustDo(t, gateway, nil, "get", key+name, "-"); !bytes.Equal(have, want) {
				at, err := tree.FirstDifference(bytes.NewReader(have), bytes.NewReader(want))
				t.Errorf("%s: %d bytes came back, want %d; they differ from byte %d on (%v)", key+name, len(have), len(want), at, err)
			}
		}
		list := string(mustDo(t, gateway, nil, "ls", key, "-o", "wide"))
		if c.size > 999 && !strings.Contains(list, "  "+words.Number(int64(c.size))+"  ") {
			t.Errorf("%s is listed as\n%s", key, list)
		}
	}
}

// TestWhatGoesInComesOut puts and reads objects of any size beside the boundaries of groups and packing, as files and from
// standard input, whole and in part, before and after they move.
func TestWhatGoesInComesOut(t *testing.T) {
	t.Parallel()
	gateway := startCluster(t, 3, roundTripClasses)
	folder := t.TempDir()
	near := rapid.Custom(func(r *rapid.T) int {
		at := rapid.SampledFrom([]int{0, 64, 4 << 10, smallGroups, 2 * smallGroups, 3 * smallGroups}).Draw(r, "boundary")
		return max(0, at+rapid.IntRange(-2, 2).Draw(r, "beside"))
	})
	rapid.Check(t, func(r *rapid.T) {
		size := near.Draw(r, "size")
		want := contents(rapid.Uint64().Draw(r, "seed"), size)
		key := rapid.SampledFrom([]string{"small/a", "coded/a", "small/ä/%2F", "coded/b?c#d"}).Draw(r, "key")
		if path := filepath.Join(folder, "in"); rapid.Bool().Draw(r, "file") {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				r.Fatal(err)
			}
			mustDo(r, gateway, nil, "put", path, key)
		} else {
			mustDo(r, gateway, bytes.NewReader(want), "put", "-", key)
		}
		if to := rapid.SampledFrom([]string{"", "", "", "", "rep(2)", "rs(2,1)"}).Draw(r, "move to"); to != "" {
			mustDo(r, gateway, nil, "move", key, to)
		}
		path := filepath.Join(folder, "out")
		mustDo(r, gateway, nil, "get", key, path)
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, want) {
			r.Fatalf("%s: %d bytes came back as a file, want %d: %v", key, len(have), size, err)
		}
		if size == 0 {
			return
		}
		first := min(size-1, near.Draw(r, "first"))
		last := max(first, min(size-1, near.Draw(r, "last")))
		span, part := fmt.Sprintf("%d-%d", first, last), want[first:last+1]
		switch rapid.IntRange(0, 3).Draw(r, "spelling") {
		case 1:
			span = fmt.Sprintf("%d+%d", first, last-first+1)
		case 2:
			span, part = fmt.Sprintf("%d-", first), want[first:]
		case 3:
			span, part = fmt.Sprintf("%d-%d", first, size+100), want[first:]
		}
		if have := mustDo(r, gateway, nil, "get", key, "--range", span); !bytes.Equal(have, part) {
			r.Fatalf("%s, range %s of %d: %d bytes came back, want %d", key, span, size, len(have), len(part))
		}
	})
}

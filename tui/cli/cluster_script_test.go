package cli

import (
	"bytes"
	"cmp"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/restripe/restripe/tui/tree"
)

// TestClusterScripts runs the stories of testdata/cluster: each starts a cluster of its own, over directories, and does
// things to it that the stories of testdata/script cannot: damage to stores, processes by hand, contents of any size.
func TestClusterScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/cluster",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv(gatewayVariable, "")
			env.Setenv("KUBECONFIG", "")
			env.Setenv("XDG_CACHE_HOME", env.WorkDir+"/.cache")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, negated bool, arguments []string){
			"reach":   reach,
			"until":   until,
			"exits":   exits,
			"content": content,
			"same":    same,
			"capture": capture,
			"listens": listens,
			"lose":    lose,
			"damage":  damage,
		},
	})
}

// content FILE BYTES makes a file of so many bytes that no two places have in common.
func content(ts *testscript.TestScript, negated bool, arguments []string) {
	if negated || len(arguments) != 2 {
		ts.Fatalf("usage: content FILE BYTES")
	}
	size, err := strconv.Atoi(arguments[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(arguments[0]), contents(uint64(size), size), 0o644))
}

// contents returns bytes that a seed makes.
func contents(seed uint64, size int) []byte {
	text := make([]byte, size)
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	if _, err := rand.NewChaCha8(key).Read(text); err != nil {
		panic("invariant: the generator reads whole: " + err.Error())
	}
	return text
}

// same A B compares two files byte for byte, and says where they differ; text of any length stays out of the log.
func same(ts *testscript.TestScript, negated bool, arguments []string) {
	if negated || len(arguments) != 2 {
		ts.Fatalf("usage: same FILE FILE")
	}
	a, b := []byte(ts.ReadFile(arguments[0])), []byte(ts.ReadFile(arguments[1]))
	if bytes.Equal(a, b) {
		return
	}
	at, err := tree.FirstDifference(bytes.NewReader(a), bytes.NewReader(b))
	ts.Check(err)
	ts.Fatalf("%s has %d bytes and %s has %d; they differ from byte %d on", arguments[0], len(a), arguments[1], len(b), at)
}

// capture VARIABLE REGEXP keeps what the parentheses of a pattern match in the last output.
func capture(ts *testscript.TestScript, negated bool, arguments []string) {
	if negated || len(arguments) != 2 {
		ts.Fatalf("usage: capture VARIABLE REGEXP")
	}
	pattern, err := regexp.Compile("(?m)" + arguments[1])
	ts.Check(err)
	found := pattern.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("%s has no one match in:\n%s", arguments[1], ts.ReadFile("stdout"))
	}
	ts.Setenv(arguments[0], found[1])
}

// listens VARIABLE FILE waits until a server has written into FILE where it listens, and keeps the address.
func listens(ts *testscript.TestScript, negated bool, arguments []string) {
	if negated || len(arguments) != 2 {
		ts.Fatalf("usage: listens VARIABLE FILE")
	}
	path, announced := ts.MkAbs(arguments[1]), regexp.MustCompile(`(?m) listening on (\S+)$`)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(reachPatience); time.Now().Before(deadline); <-ticker.C {
		text, err := os.ReadFile(path)
		if found := announced.FindSubmatch(text); err == nil && found != nil {
			ts.Setenv(arguments[0], string(found[1]))
			return
		}
	}
	ts.Fatalf("%s: no server has said where it listens", arguments[1])
}

// blocksOf returns the files of the blocks in the store of a node.
func blocksOf(ts *testscript.TestScript, state, node string) (paths []string) {
	values := ts.MkAbs(filepath.Join(state, "nodes", node, "store", "values"))
	ts.Check(filepath.WalkDir(values, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(entry.Name(), "b ") {
			paths = append(paths, path)
		}
		return err
	}))
	if len(paths) == 0 {
		ts.Fatalf("%s holds no blocks", node)
	}
	return paths
}

// lose STATE NODE takes every block of a node away behind the back of its agent.
func lose(ts *testscript.TestScript, negated bool, arguments []string) {
	if negated || len(arguments) != 2 {
		ts.Fatalf("usage: lose STATE NODE")
	}
	for _, path := range blocksOf(ts, arguments[0], arguments[1]) {
		ts.Check(os.Remove(path))
	}
}

// damage STATE NODE changes a bit in the middle of the largest block of a node, the newest of equals: others may be dead,
// and wait for their delete.
func damage(ts *testscript.TestScript, negated bool, arguments []string) {
	if negated || len(arguments) != 2 {
		ts.Fatalf("usage: damage STATE NODE")
	}
	var path string
	var text []byte
	for _, candidate := range blocksOf(ts, arguments[0], arguments[1]) {
		read, err := os.ReadFile(candidate)
		ts.Check(err)
		if cmp.Or(cmp.Compare(len(read), len(text)), cmp.Compare(attemptOf(candidate), attemptOf(path))) > 0 {
			path, text = candidate, read
		}
	}
	text[len(text)/2] ^= 1
	ts.Check(os.Chmod(path, 0o644))
	ts.Check(os.WriteFile(path, text, 0o644))
}

// attemptOf returns the last word of a block's file name, which grows with every attempt that wrote one.
func attemptOf(path string) string { return path[strings.LastIndex(path, " ")+1:] }

package clients_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	conformanceOutput = flag.String("clients.conformance", "", "file that gets what the tests of S3 by others print")
	shrink            = flag.Bool("update", false, "take the tests of S3 that pass off "+failuresFile)
)

// failuresFile has the tests of S3 by others that fail here, below the reason.
const failuresFile = "testdata/s3-failures.txt"

// conformer is the user of the tests.
var conformer = accessKey{"CONFORMANCE", "the-secret-of-tests-of-others"}

const conformerFile = `users:
- name: conformance
  accessKey: {id: CONFORMANCE, secret: the-secret-of-tests-of-others}
  objects: [{may: [admin]}]
`

// TestConformance runs the tests of S3 that versitygw has for any server, at a cluster of their own, in which there are no other buckets.
// Those that fail are the ones in failuresFile, and no others.
func TestConformance(t *testing.T) {
	s := start(t)
	known := knownFailures(t)
	file := filepath.Join(s.directory, "users.yaml")
	writeFile(t, file, []byte(conformerFile))
	g, _ := s.another(t, "gw2", "--users", file)
	command := exec.Command(filepath.Join(filepath.Dir(python(t)), "versitygw-tests"), "-endpoint", "http://"+g.s3)
	command.Env = s3Environment(conformer)
	began := time.Now()
	said := finish(t, command)
	if *conformanceOutput != "" {
		writeFile(t, *conformanceOutput, []byte(said.out+said.messages))
	}
	if said.code != 0 {
		t.Errorf("it ends with the exit code %d: %s", said.code, said.messages[max(0, len(said.messages)-2000):])
	}
	passed, failed, ran := 0, 0, map[string]bool{}
	for line := range strings.Lines(said.out) {
		var result struct{ Name, Error string }
		if err := json.Unmarshal([]byte(line), &result); err != nil {
			t.Fatalf("it prints %q: %v", line, err)
		}
		ran[result.Name] = true
		reason, expected := known[result.Name]
		switch {
		case result.Error == "" && expected && *shrink:
			takeOff(t, result.Name)
		case result.Error == "" && expected:
			t.Errorf("%s passes: take it off %s (%s)", result.Name, failuresFile, reason)
		case result.Error == "":
			passed++
		case !expected:
			t.Errorf("%s fails: %s", result.Name, result.Error)
		default:
			failed++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !ran[name] {
			t.Errorf("%s is in %s, and was not run", name, failuresFile)
		}
	}
	if len(ran) == 0 {
		t.Error("no test was run")
	}
	t.Logf("of %d tests %d pass, and %d fail as they are known to, in %v", len(ran), passed, failed, time.Since(began).Round(time.Second))
}

// takeOff takes a test off failuresFile.
func takeOff(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(failuresFile)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, failuresFile, []byte(strings.Replace(string(text), "\n  "+name+"\n", "\n", 1)))
}

// knownFailures reads failuresFile: the reason for each test.
func knownFailures(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(failuresFile)
	if err != nil {
		t.Fatal(err)
	}
	known, reason := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		switch line = strings.TrimSpace(line); {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasSuffix(line, ":"):
			reason = strings.TrimSuffix(line, ":")
		case reason == "" || known[line] != "":
			t.Errorf("%s: %q has no reason above it, or two", failuresFile, line)
		default:
			known[line] = reason
		}
	}
	return known
}

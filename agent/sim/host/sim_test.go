package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/sim"
)

var seeds = flag.Uint64("sim.seeds", 20, "short seeds that TestSeeds tries")

// build makes a guest program, with files of the repository replaced by others.
func build(t *testing.T, replaced map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "sim.wasm")
	arguments := []string{"build", "-o", path}
	if len(replaced) > 0 {
		overlay, err := json.Marshal(map[string]any{"Replace": replaced})
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(folder, "overlay.json")
		if err := os.WriteFile(name, overlay, 0o644); err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, "-overlay", name)
	}
	command := exec.Command("go", append(arguments, "../guest")...)
	command.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-buildvcs=false")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building the guest: %v\n%s", err, output)
	}
	return path
}

func load(t *testing.T, path string) *machine {
	t.Helper()
	m, err := newMachine(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.close(t.Context()); err != nil {
			t.Errorf("closing the machine: %v", err)
		}
	})
	return m
}

func runSeed(t *testing.T, m *machine, seed uint64, size sim.Size) outcome {
	t.Helper()
	done, err := m.run(t.Context(), seed, size, nil)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// The whole promise of the simulation: a run is a function of its seed.
func TestSeeds(t *testing.T) {
	m := load(t, build(t, nil))
	t.Run("the same seed gives the same journal", func(t *testing.T) {
		journals := map[string]uint64{}
		for seed := uint64(1); seed <= 4; seed++ {
			first, second := runSeed(t, m, seed, sim.Short), runSeed(t, m, seed, sim.Short)
			if first.Hash != second.Hash {
				t.Errorf("seed %d gave the journals %s and %s", seed, first.Hash, second.Hash)
			}
			if other, same := journals[first.Hash]; same {
				t.Errorf("seeds %d and %d gave the same journal", other, seed)
			}
			journals[first.Hash] = seed
		}
	})
	t.Run("seeds that once failed", func(t *testing.T) {
		for _, kept := range keptSeeds(t) {
			if done := runSeed(t, m, kept.seed, kept.size); done.Violation != "" {
				t.Errorf("seed %d %s, kept because %s: %s", kept.seed, kept.size, kept.found, done.Violation)
			}
		}
	})
	t.Run("first seeds", func(t *testing.T) {
		tried := m.try(t.Context(), options{size: sim.Short, from: 1, count: *seeds, workers: 2}, watch{failed: func(f failure) { t.Error(f) }})
		t.Log(tried)
		if tried.operations == 0 || tried.commits == 0 || tried.faults == 0 {
			t.Error("nothing happened: the test shows nothing")
		}
	})
}

type keptSeed struct {
	seed  uint64
	size  sim.Size
	found string
}

// keptSeeds reads testdata/seeds.txt: a seed, its size, and what it found, on a line each.
func keptSeeds(t *testing.T) (kept []keptSeed) {
	t.Helper()
	text, err := os.ReadFile("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var k keptSeed
		if _, err := fmt.Sscan(line, &k.seed, &k.size); err != nil {
			t.Fatalf("testdata/seeds.txt: line %q: %v", line, err)
		}
		k.found = strings.Join(strings.Fields(line)[2:], " ")
		kept = append(kept, k)
	}
	return kept
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for _, arguments := range []string{"", "-guest x", "-guest x -seed 1 -size huge", "-guest x -count 1 -workers 0", "-guest x -seed 1 more"} {
		if _, err := parse(strings.Fields(arguments)); err == nil {
			t.Errorf("%q was accepted", arguments)
		}
	}
}

func TestABrokenGuestIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "guest.wasm")
	if err := os.WriteFile(path, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := newMachine(t.Context(), path, ""); err == nil {
		t.Fatal("a file that is no program was accepted")
	}
}

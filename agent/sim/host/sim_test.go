package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/sim"
)

var seeds = flag.Uint64("sim.seeds", 20, "short seeds that TestSeeds tries")

// made builds a guest program, with files of the repository replaced by others.
func made(t *testing.T, replaced map[string]string) *machine {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guest")
	if err := build(t.Context(), path, replaced); err != nil {
		t.Fatal(err)
	}
	return &machine{guest: path}
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
	m := made(t, nil)
	t.Run("the same seed gives the same journal", func(t *testing.T) {
		journals := map[string]uint64{}
		for seed := uint64(1); seed <= 20; seed++ {
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
	folder := t.TempDir()
	for name, script := range map[string]string{"ends badly": "echo it hurts >&2; exit 3", "says nothing": "", "is no program": "\x00"} {
		path := filepath.Join(folder, strings.ReplaceAll(name, " ", "-"))
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		_, err := (&machine{guest: path}).run(t.Context(), 17, sim.Short, nil)
		if err == nil || !strings.Contains(err.Error(), "seed 17") || !strings.Contains(script, "hurts") != !strings.Contains(err.Error(), "it hurts") {
			t.Errorf("a guest that %s: %v", name, err)
		}
	}
	if _, err := (&machine{guest: filepath.Join(folder, "missing")}).run(t.Context(), 17, sim.Short, nil); err == nil {
		t.Error("a guest that is not there was run")
	}
}

func TestEditsThatDoNotFitAreRefused(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.go"), []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, was := range []string{"two", "three"} {
		if _, err := apply(folder, []edit{{"a.go", was, ""}}, t.TempDir()); err == nil {
			t.Errorf("%q was replaced", was)
		}
	}
}

func TestUnframe(t *testing.T) {
	framed := "a\x00\x00PB\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02bc\x00\x00PB\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x09d"
	if plain := unframe([]byte(framed)); string(plain) != "abcd" {
		t.Errorf("%q", plain)
	}
}

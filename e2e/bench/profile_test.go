//go:build linux

package main

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/kernel"
	"github.com/restripe/restripe/agent/stripe"
)

// What the kernel does counts as the kernel's, its assembly included, and only under the role that called it.
func TestProfileSeesTheKernel(t *testing.T) {
	const k, m, length = 6, 3, 64 << 10
	var terms []kernel.Term
	for row := range m {
		for column := range k {
			terms = append(terms, kernel.Term{Output: row, Input: column, Coefficient: stripe.Coefficient(row, column)})
		}
	}
	matrix, err := kernel.Compile(m, k, terms)
	if err != nil {
		t.Fatal(err)
	}
	blocks := make([][]byte, k+m)
	for i := range blocks {
		blocks[i] = kernel.Buffer(length)
	}
	printer := kernel.NewFingerprinter(kernel.Key{1})
	const wanted = 400 * time.Millisecond
	path := filepath.Join(t.TempDir(), "kernel.pprof")
	if err := profileInto(path, func() error {
		return inRole(t.Context(), "agent", func(context.Context) error {
			began, err := ownTime()
			for used := began; err == nil && used-began < wanted; used, err = ownTime() {
				for range 100 {
					matrix.Apply(blocks[k:], blocks[:k])
					matrix.AccumulateColumn(blocks[k:], 1, blocks[1])
					matrix.AccumulateDelta(blocks[k:], 2, blocks[2], blocks[3])
					printer.Sum(blocks[0])
				}
			}
			return err
		})
	}); err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"", "agent"} {
		packages, err := timeByPackage(t.Context(), role, path)
		if err != nil {
			t.Fatal(err)
		}
		if got, all := secondsOf(packages, kernelPackages...), secondsOf(packages); all < wanted.Seconds()/4 || got < all/2 {
			t.Errorf("role %q: %.2f s of %.2f s are the kernel's: %v", role, got, all, packages)
		}
	}
	if packages, err := timeByPackage(t.Context(), "gateway", path); err != nil || secondsOf(packages) != 0 {
		t.Errorf("a role that did nothing used %v, %v", packages, err)
	}
}

// A step is profiled both ways; gateway and agents both have a part, and no more than all of it. Samples come 100 times
// a second, so that together there are enough for each role to have some.
func TestProfileStep(t *testing.T) {
	steps, err := parseSteps("rs(4,2)->rs(6,2)")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := newCorpus(8, 4<<20)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{options: options{objectBytes: 4 << 20}, state: t.TempDir(), messages: io.Discard, began: time.Now()}
	found, err := b.profileStep(t.Context(), steps[0], objects, time.Second/2)
	if err != nil {
		t.Fatal(err)
	}
	changes := []step{steps[0], {from: steps[0].to, to: steps[0].from}}
	if !slices.EqualFunc(found, changes, func(p transitionProfile, change step) bool { return p.change == change }) {
		t.Fatalf("profiles of %v", found)
	}
	var all, gateway, agents float64
	for _, p := range found {
		if p.transitions < 1 {
			t.Errorf("%s: no transition was profiled", p.change)
		}
		all, gateway, agents = all+secondsOf(p.all), gateway+secondsOf(p.gateway), agents+secondsOf(p.agents)
	}
	if gateway <= 0 || agents <= 0 || gateway+agents > all+0.001 {
		t.Errorf("of %.2f s the gateway used %.2f s and the agents %.2f s", all, gateway, agents)
	}
}

package main

import (
	"os"
	"testing"
	"time"
)

func TestScratch(t *testing.T) {
	b := &bench{options: options{concurrency: 8}, state: t.TempDir(), messages: os.Stderr, began: time.Now()}
	objects, _ := newCorpus(64, 1<<20)
	found, err := b.profiles(t.Context(), objects)
	if err != nil { t.Fatal(err) }
	for _, p := range found {
		total := 0.0
		for _, x := range p.packages { total += x.seconds }
		t.Logf("%s %s total %.2f s for %d MiB", p.operation, p.role, total, 64*profileRounds)
		for i, x := range p.packages { if i < 10 { t.Logf("   %5.1f%% %s", 100*x.seconds/total, x.name) } }
	}
}

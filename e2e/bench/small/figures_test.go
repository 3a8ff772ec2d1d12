package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/e2e/bench/provenance"
)

var programDirectory string

func TestMain(m *testing.M) {
	directory, err := os.MkdirTemp("", "restripe-small-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programDirectory = directory
	code := m.Run()
	if err := os.RemoveAll(directory); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// program builds what is measured, once.
var program = sync.OnceValues(func() (string, error) {
	b := &bench{messages: &bytes.Buffer{}, began: time.Now()}
	b.directory = programDirectory
	err := b.build(context.Background())
	return b.binary, err
})

// brief is a bench whose parts are over within seconds.
func brief(t *testing.T) *bench {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds the program and runs clusters; -short leaves them out")
	}
	b := &bench{messages: &bytes.Buffer{}, began: time.Now()}
	b.directory, b.objects, b.writes, b.second, b.lasting, b.held = t.TempDir(), 300, 200, 1, 4, 2000
	t.Chdir("../../..")
	var err error
	if b.binary, err = program(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { t.Logf("%s", b.messages) })
	return b
}

// Of the real program: in place each object takes 1 + m blocks and at least as many bytes, in mode batch fewer, and never less than the
// code makes of it. A compaction sends what it moves, and of its parities at least all but one.
func TestWhatIsSentIsWhatTheCodeMakesOfIt(t *testing.T) {
	b := brief(t)
	codes, err := b.codes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	keys, err := b.byKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runs := slices.Concat(codes, keys)
	for i := 0; i < len(runs); i += 2 {
		one, peer := &runs[i], &runs[i+1]
		k, m := float64(one.k), float64(one.m)
		if one.mode != api.PackBatch || peer.mode != api.PackAtOnce || peer.scheme != one.scheme {
			t.Fatalf("%+v has the peer %+v", one, peer)
		}
		if alone := (1 + m) * float64(peer.puts); peer.blocks != alone || peer.groups != float64(peer.puts) {
			t.Errorf("%s: %d objects alone took %.0f blocks of %.0f groups, not %.0f", peer.name, peer.puts, peer.blocks, peer.groups, alone)
		}
		if one.blocks > (k+m)*one.groups || one.blocks >= peer.blocks {
			t.Errorf("%s: %.0f blocks in %.0f groups, and %.0f in place", one.name, one.blocks, one.groups, peer.blocks)
		}
		for run, least := range map[*traffic]float64{one: 1 + m/k, peer: 1 + m} {
			if sent := run.putWire / run.putBytes; sent < least {
				t.Errorf("%s: %.3f bytes were sent for one put, by the code %.3f", run.name, sent, least)
			}
			if read := run.getWire / run.putBytes; read < 0.98 { // zeros at the end of an object do not travel
				t.Errorf("%s: %.3f bytes were sent for one read", run.name, read)
			}
			if moving := 1 + (m-1)/k; run.compactWire < moving*run.moved {
				t.Errorf("%s: a compaction moved %.0f bytes and sent %.0f", run.name, run.moved, run.compactWire)
			}
		}
		// Beside them there are names, of others that are in the group too, and questions for the blocks that are there.
		most := 768.0
		if peer.mixed { // parities are as long as the longest object in the group
			most += peer.putBytes / float64(peer.puts) / 4
		}
		if each := (peer.putWire - (1+m)*peer.putBytes) / peer.blocks; each > most {
			t.Errorf("%s: beside its bytes %.0f were sent for a block, more than %.0f", peer.name, each, most)
		}
		if puts, _, _ := one.saved(peer); puts < 0.1 && one.refused == 0 { // groups of a short run are far from full
			t.Errorf("%s: %.3f is saved of puts", one.name, puts)
		}
	}
	if updated := &runs[len(runs)-2]; updated.moved <= 0 {
		t.Errorf("where all puts are updates a compaction moved nothing: %+v", updated)
	}
	wants(t, reportCodes(codes), "| rs(3,2), full |", "| rs(5,4), padded |", "| 51 % |", "| 43 % |")
	wants(t, reportKeys(keys), "| uniform, only updates |", "| Zipf 0.8 |")
}

// More clients at a time send less for a byte. One client in mode batch sends as many blocks as in place.
func TestLargerBatchesSendLess(t *testing.T) {
	b := brief(t)
	batches, err := b.byBatch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	alone, most, peer := &batches[0], &batches[len(batches)-2], &batches[len(batches)-1]
	if peer.mode != api.PackAtOnce || alone.clients != 1 || most.clients != 400 {
		t.Fatalf("%+v, %+v, %+v", alone, most, peer)
	}
	if alone.blocks != 3*float64(alone.puts) {
		t.Errorf("one client had %d objects take %.0f blocks", alone.puts, alone.blocks)
	}
	if most.blocks > 0.75*alone.blocks {
		t.Errorf("400 clients had %d objects take %.0f blocks, and one %.0f", most.puts, most.blocks, alone.blocks)
	}
	if most.putWire/most.putBytes > 0.75*alone.putWire/alone.putBytes && most.refused == 0 {
		t.Errorf("400 clients sent %.0f bytes for %.0f, and one %.0f for %.0f", most.putWire, most.putBytes, alone.putWire, alone.putBytes)
	}
	wants(t, reportBatches(batches), "| 400 |", "| 47 % |", "| 1, in place | 1.0 |")
}

// Where puts come rarely each goes alone in all modes but batch; where they come often less is sent for each.
func TestRatesDecideWhatIsSent(t *testing.T) {
	b := brief(t)
	steps, err := b.ratesOf(t.Context(), []int{10, 1600})
	if err != nil {
		t.Fatal(err)
	}
	sent := map[int]map[api.PackMode]float64{10: {}, 1600: {}}
	for i := range steps {
		s := &steps[i]
		if len(s.latencies) != s.offered*b.second {
			t.Errorf("of %d puts %d were made", s.offered*b.second, len(s.latencies))
		}
		sent[s.offered][s.mode] = s.wire / s.bytes
		if s.wire < (1+4.0/5)*s.bytes {
			t.Errorf("%d a second, %s: %.0f bytes were sent for %.0f", s.offered, s.mode, s.wire, s.bytes)
		}
		if s.mode == api.PackAtOnce && s.waited > 0 || s.mode == api.PackBatch && int(s.waited) != len(s.latencies) {
			t.Errorf("%d a second, %s: %.0f waited", s.offered, s.mode, s.waited)
		}
	}
	if sent[1600][api.PackBatch] >= sent[10][api.PackAtOnce] || sent[1600][api.PackAuto] >= sent[10][api.PackAuto] {
		t.Errorf("for a byte %v was sent", sent)
	}
	wants(t, reportRates(steps), "| 10 |", "| 1600 |")
}

// Room is that of the code and no less, three copies take three times the bytes, and a group of many takes less of the catalog.
func TestRoomAndFootprint(t *testing.T) {
	b := brief(t)
	flat, err := b.flat(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if ratio := flat.loaded.ratio(); ratio < 5.0/3 || ratio > 3 { // 1 + m, if each object had a group of its own
		t.Errorf("objects that are put once take %.3f", ratio)
	}
	if flat.copied < 3 || flat.copied > 3.6 || len(flat.moments) == 0 {
		t.Errorf("three copies take %.3f; %d moments", flat.copied, len(flat.moments))
	}
	if least := (2 + 2.0/3) * flat.written; flat.written != float64(flatRate*b.lasting*trafficSize) || flat.wire < least {
		t.Errorf("%.0f bytes were written and %.0f sent", flat.written, flat.wire)
	}
	wants(t, reportFlat(flat), "| put once |", "| second half, mean |")
	footprint, err := b.footprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	alone, batch := footprint.catalogs[0], footprint.catalogs[1]
	if alone.groups != float64(alone.objects) || batch.groups >= alone.groups/2 || batch.bytes <= 0 || batch.bytes > alone.bytes*0.75 {
		t.Errorf("%+v and %+v", alone, batch)
	}
	last := footprint.held[len(footprint.held)-1]
	if last.objects != b.held || last.resident <= 0 || last.catalog <= footprint.held[0].catalog {
		t.Errorf("%+v", footprint.held)
	}
	wants(t, reportFootprint(footprint), "| at-once | 1.0 |", "| 2000 |")
}

func TestDistributionsAreWhatTheySay(t *testing.T) {
	distinct := func(d distribution) int {
		drawn := d.draw(rand.New(rand.NewPCG(1, 2)), 4000)
		if len(drawn) != 4000 || slices.Max(drawn) >= max(1, int(d.space*4000)) {
			t.Errorf("%s: %d drawn, up to %d", d.name, len(drawn), slices.Max(drawn))
		}
		return len(slices.Compact(slices.Sorted(slices.Values(drawn))))
	}
	uniform, moderate, heavy, updated := distinct(uniformKeys), distinct(moderateKeys), distinct(heavyKeys), distinct(updatedKeys)
	if uniform < 3700 || moderate >= uniform || heavy >= moderate || updated > 2000 {
		t.Errorf("of 4000 keys %d, %d, %d and %d are different", uniform, moderate, heavy, updated)
	}
}

func TestFormulaIsThatOfThePaper(t *testing.T) {
	for _, of := range []struct {
		k, m       int
		puts, gets float64
	}{{3, 2, 4.0 / 9, 1.0 / 3}, {4, 3, 9.0 / 16, 0.45}, {5, 4, 0.64, 8.0 / 15}} {
		one := traffic{k: of.k, m: of.m}
		if puts, gets := one.formula(); max(puts-of.puts, of.puts-puts, gets-of.gets, of.gets-gets) > 1e-9 {
			t.Errorf("(%d,%d) saves %f and %f", of.k, of.m, puts, gets)
		}
	}
}

func TestSectionsSayWhereTheyAreFrom(t *testing.T) {
	text := from(provenance.Facts{Commit: "abc", Load: "0.10", Command: "go run", Cores: 2})
	wants(t, text, "`go run`", "commit abc", "0.10 before on 2 cores")
}

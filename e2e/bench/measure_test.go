//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

// As many values lie at or above a median as at or below it, and order does not matter.
func TestMedian(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := sample(rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 20).Draw(t, "values"))
		median := values.median()
		above, below := 0, 0
		for _, value := range values {
			if value >= median {
				above++
			}
			if value <= median {
				below++
			}
		}
		if 2*above < len(values) || 2*below < len(values) || median < values.least() || median > values.most() {
			t.Fatalf("median %v of %v", median, values)
		}
		if shuffled := sample(rapid.Permutation([]float64(values)).Draw(t, "shuffled")); shuffled.median() != median {
			t.Fatalf("median %v of %v, %v of %v", median, values, shuffled.median(), shuffled)
		}
	})
}

func TestOver(t *testing.T) {
	ratios := sample{1, 4}.over(sample{2, 2})
	if ratios[0] != 0.5 || ratios[1] != 2 {
		t.Errorf("%v", ratios)
	}
}

func TestQuantile(t *testing.T) {
	durations := []time.Duration{4, 1, 3, 2}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.99: 4, 1: 4} {
		if got := quantile(durations, q); got != want {
			t.Errorf("quantile %v is %d, want %d", q, got, want)
		}
	}
}

func TestSameBytes(t *testing.T) {
	want := make([]byte, 600<<10)
	if _, err := io.ReadFull(bytesOf(1), want); err != nil {
		t.Fatal(err)
	}
	wrong := bytes.Clone(want)
	wrong[500<<10] ^= 1
	for name, c := range map[string]struct {
		got       []byte
		different bool
		short     bool
	}{
		"same": {got: want}, "one bit": {got: wrong, different: true}, "short": {got: want[:300<<10], short: true},
		"long": {got: append(bytes.Clone(want), 0), different: true},
	} {
		err := sameBytes(bytes.NewReader(c.got), bytesOf(1), int64(len(want)))
		if errors.Is(err, errDifferent) != c.different || errors.Is(err, io.ErrUnexpectedEOF) || (err == nil) != (!c.different && !c.short) {
			if !(c.short && errors.Is(err, io.ErrUnexpectedEOF)) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Objects differ from each other, and are the same in every run.
func TestCorpus(t *testing.T) {
	one, err := newCorpus(3, 100)
	if err != nil {
		t.Fatal(err)
	}
	two, err := newCorpus(3, 100)
	if err != nil || !bytes.Equal(one[2], two[2]) || bytes.Equal(one[0], one[1]) {
		t.Errorf("%x %x %x %v", one[0], one[1], two[2], err)
	}
}

func TestServerOf(t *testing.T) {
	dealt := map[int]int{}
	for i := range 28 {
		dealt[serverOf(keyOf("rs(4,2)/3/", i), 14)]++
	}
	for i := range 14 {
		if dealt[i] != 2 {
			t.Errorf("server %d has %d of 28 keys", i, dealt[i])
		}
	}
}

// The plain clients keep objects in real servers, and notice what is not there.
func TestPlainClients(t *testing.T) {
	for kind, addresses := range map[launch.StoreKind][]string{
		launch.StoreMemcached: {server.Memcached(t, "-I", "8m").Addr, server.Memcached(t, "-I", "8m").Addr},
		launch.StoreRedis:     {server.Redis(t).Addr, server.Redis(t).Addr},
	} {
		t.Run(string(kind), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			c, err := newPlainClient(ctx, kind, addresses)
			if err != nil {
				t.Fatal(err)
			}
			objects, err := newCorpus(4, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			for i, data := range objects {
				if err := c.set(ctx, keyOf("plain/1/", i), data); err != nil {
					t.Fatal(err)
				}
			}
			for i, data := range objects {
				got := make([]byte, len(data))
				if err := c.get(ctx, keyOf("plain/1/", i), got); err != nil || !bytes.Equal(got, data) {
					t.Errorf("object %d: %v", i, err)
				}
			}
			if err := c.get(ctx, keyOf("plain/2/", 0), make([]byte, 1)); err == nil {
				t.Error("an object was found that nobody put")
			}
			if err := c.close(); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := newPlainClient(t.Context(), launch.StoreMemcached, []string{"127.0.0.1:1"}); err == nil {
		t.Error("a server was found where there is none")
	}
}

func TestClassesFor(t *testing.T) {
	steps, err := parseSteps("rs(4,1)->rs(5,1)")
	if err != nil {
		t.Fatal(err)
	}
	text := classesFor(steps[0], []contender{restripePlanner, ersPlanner, reencodePlanner}, 1<<20)
	if strings.Count(text, "name:") != 2 || !strings.Contains(text, "mode: pair") || !strings.Contains(text, "ladder: 'rs(4,1),rs(5,1)'") {
		t.Error(text)
	}
}

package catalogtest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
)

// Instance is one engine under test with records of its own.
type Instance struct {
	Engine kv.Engine

	// Second opens the same records once more, while Engine is open. Nil where the engine has no notion of it.
	Second func() (kv.Engine, error)

	// Exclusive says that Second must fail with kv.ErrInUse.
	Exclusive bool

	// Crash ends whatever serves the records as SIGKILL would, and opens them again. Nil for engines that do not last.
	Crash func() kv.Engine

	// Server is the TCP address of what serves the records, host:port, and Dial opens them at another address, which leads there.
	// Empty and nil where nothing is between the engine and its records but the process; requests and answers are lost in it then.
	Server string
	Dial   func(address string) (kv.Engine, error)
}

// engineTests are those of what is promised of every engine, catalogTests those of what the catalog makes of it.
var (
	engineTests = []test{
		{"ConditionalUpdate", conditionalUpdate},
		{"Values", values},
		{"LargestUpdate", largestUpdate},
		{"Counters", counters},
		{"OrderedScan", orderedScan},
		{"ScanPrefixes", scanPrefixes},
		{"ScanPages", scanPages},
		{"SnapshotReads", snapshotReads},
		{"Snapshots", snapshots},
		{"OneWinner", oneWinner},
		{"Coalescing", coalescing},
		{"Linearizable", linearizable},
		{"LinearizableThroughFaults", linearizableThroughFaults},
		{"LinearizableOverACrash", linearizableOverACrash},
		{"Watching", watching},
		{"WatchingThroughFaults", watchingThroughFaults},
		{"CancelledContext", cancelledContext},
		{"Closed", closed},
		{"TwoOpeners", twoOpeners},
		{"Crash", crash},
	}
	catalogTests = []test{
		{"OtherReleases", otherReleases},
		{"Catalogs", catalogs},
		{"CatalogsThroughFaults", catalogsThroughFaults},
		{"LargeObjects", largeObjects},
		{"Classes", classes},
		{"Members", members},
		{"Exclusion", exclusion},
	}
)

type test struct {
	name string
	run  func(*testing.T, Instance)
}

// Run runs the suite. open returns an engine without records; the suite closes it.
func Run(t *testing.T, open func(t *testing.T) Instance) {
	for _, test := range slices.Concat(engineTests, catalogTests) {
		t.Run(test.name, func(t *testing.T) {
			instance := open(t)
			t.Cleanup(func() {
				if err := instance.Engine.Close(); err != nil {
					t.Errorf("closing the engine: %v", err)
				}
			})
			test.run(t, instance)
		})
	}
}

// deadline bounds every test of the suite.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func update(t *testing.T, engine kv.Engine, checks []kv.Check, writes ...kv.Write) []int {
	t.Helper()
	failed, err := engine.Update(deadline(t), checks, writes)
	if err != nil {
		t.Fatalf("updating: %v", err)
	}
	return failed
}

func read(t *testing.T, engine kv.Engine, keys ...string) [][]byte {
	t.Helper()
	values, err := engine.Read(deadline(t), keys...)
	if err != nil {
		t.Fatalf("reading: %v", err)
	}
	if len(values) != len(keys) {
		t.Fatalf("reading %d keys: got %d values", len(keys), len(values))
	}
	return values
}

func set(key, value string) kv.Write {
	return kv.Write{Key: key, Value: []byte(value)}
}

func cancelledContext(t *testing.T, instance Instance) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := instance.Engine.Update(ctx, nil, []kv.Write{set("k", "v")}); !errors.Is(err, context.Canceled) {
		t.Errorf("Update under a cancelled context: %v", err)
	}
	if _, err := instance.Engine.Read(ctx, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("Read under a cancelled context: %v", err)
	}
	if _, err := instance.Engine.Scan(ctx, "k", "", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("Scan under a cancelled context: %v", err)
	}
	update(t, instance.Engine, nil, set("k", "after"))
	if got := string(read(t, instance.Engine, "k")[0]); got != "after" {
		t.Errorf("after a cancelled call the engine holds %q", got)
	}
}

func closed(t *testing.T, instance Instance) {
	update(t, instance.Engine, nil, set("k", "v"))
	for range 2 {
		if err := instance.Engine.Close(); err != nil {
			t.Fatalf("closing: %v", err)
		}
	}
	if _, err := instance.Engine.Read(deadline(t), "k"); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
	if _, err := instance.Engine.Scan(deadline(t), "k", "", 1); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Scan after Close: %v", err)
	}
	if _, err := instance.Engine.Update(deadline(t), nil, nil); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Update after Close: %v", err)
	}
}

func twoOpeners(t *testing.T, instance Instance) {
	if instance.Second == nil {
		t.Skip("the engine cannot be opened twice")
	}
	update(t, instance.Engine, nil, set("k", "first"))
	second, err := instance.Second()
	if instance.Exclusive {
		if !errors.Is(err, kv.ErrInUse) {
			t.Fatalf("opening twice: %v", err)
		}
		t.Log(err)
		update(t, instance.Engine, nil, set("k", "still first"))
		if err := instance.Engine.Close(); err != nil {
			t.Fatal(err)
		}
		if second, err = instance.Second(); err != nil {
			t.Fatalf("opening after the first was closed: %v", err)
		}
		if got := string(read(t, second, "k")[0]); got != "still first" {
			t.Errorf("the second opener reads %q", got)
		}
	} else {
		if err != nil {
			t.Fatalf("opening twice: %v", err)
		}
		if failed := update(t, second, []kv.Check{{Key: "k", Value: []byte("first")}}, set("k", "second")); failed != nil {
			t.Errorf("the second opener does not see what the first wrote")
		}
		if failed := update(t, instance.Engine, []kv.Check{{Key: "k", Value: []byte("first")}}, set("k", "first again")); failed == nil {
			t.Errorf("the first opener does not see what the second wrote")
		}
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

func otherReleases(t *testing.T, instance Instance) {
	update(t, instance.Engine, nil, set("meta/schema", "99"))
	_, err := catalog.Open(deadline(t), instance.Engine, catalog.Owner("gateway", "start"))
	if !errors.Is(err, kv.ErrNewer) {
		t.Fatalf("opening a catalog from a newer release: %v", err)
	}
	t.Log(err)
	update(t, instance.Engine, nil, set("meta/schema", "1"))
	if _, err = catalog.Open(deadline(t), instance.Engine, catalog.Owner("gateway", "start")); !errors.Is(err, catalog.ErrOlder) {
		t.Fatalf("opening a catalog from an older release: %v", err)
	}
	t.Log(err)
}

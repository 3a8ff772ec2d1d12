package upgrade_test

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/catalogtest"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/catalog/schema"
	"github.com/restripe/restripe/agent/catalog/transfer"
	"github.com/restripe/restripe/agent/catalog/upgrade"
)

// older makes a catalog as the release before has made it.
func older(t *testing.T) kv.Engine {
	t.Helper()
	engine := mem.New()
	open(t, engine, "maker", "first")
	was := strconv.Itoa(schema.OldestVersion)
	_, err := engine.Update(t.Context(), nil, []kv.Write{
		{Key: catalog.KeySchema, Value: []byte(was)}, {Key: schema.KeyVersion, Kind: kv.Remove},
	})
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

func open(t *testing.T, engine kv.Engine, gateway, start string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Open(t.Context(), engine, catalog.Owner(gateway, start))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// versionOf returns the schema record of an engine, as a number.
func versionOf(t *testing.T, engine kv.Engine) int {
	t.Helper()
	values, err := engine.Read(t.Context(), catalog.KeySchema)
	if err != nil {
		t.Fatal(err)
	}
	return schema.VersionOf(values[0])
}

// After the version was raised, starts that may be of the release before change nothing any more, and the others learn of it.
func TestRaise(t *testing.T) {
	engine := older(t)
	paused, knowing := open(t, engine, "paused", "first"), open(t, engine, "knowing", "first")
	nodes, incarnations := catalogtest.Enroll(t.Context(), t, knowing)
	if knowing.IsUpgraded() {
		t.Fatal("a catalog of the release before has empty columns")
	}
	for range 2 {
		if err := upgrade.Raise(t.Context(), engine, func(gateway string) bool { return gateway == "knowing" }); err != nil {
			t.Fatal(err)
		}
		if is := versionOf(t, engine); is != catalog.SchemaVersion {
			t.Fatalf("the version is %d", is)
		}
	}
	if _, err := catalogtest.PutAlone(t.Context(), paused, "a", 0, nodes, incarnations); !errors.Is(err, catalog.ErrClaimed) {
		t.Errorf("a start that nobody knows to know the version goes on: %v", err)
	}
	if _, err := catalogtest.PutAlone(t.Context(), knowing, "b", 0, nodes, incarnations); err != nil {
		t.Error(err)
	}
	if err := knowing.Refresh(t.Context()); err != nil || !knowing.IsUpgraded() {
		t.Errorf("who looks does not learn of it: %v", err)
	}
	if !open(t, engine, "paused", "second").IsUpgraded() {
		t.Error("who begins does not learn of it")
	}
}

// Copies of a catalog, backups, and one that was set aside and put back are of its version.
func TestCopiesHaveTheVersion(t *testing.T) {
	for _, raised := range []bool{false, true} {
		engine, want := older(t), schema.OldestVersion
		if raised {
			want = catalog.SchemaVersion
			if err := upgrade.Raise(t.Context(), engine, func(string) bool { return true }); err != nil {
				t.Fatal(err)
			}
		}
		if err := transfer.SetAside(t.Context(), engine, "a reason"); err != nil {
			t.Fatal(err)
		}
		if err := upgrade.Raise(t.Context(), engine, func(string) bool { return true }); !errors.Is(err, catalog.ErrAside) {
			t.Errorf("a catalog that is set aside was raised: %v", err)
		}
		if err := transfer.PutBack(t.Context(), engine, "a reason"); err != nil {
			t.Fatal(err)
		}
		if is := versionOf(t, engine); is != want {
			t.Errorf("put back it is of version %d, was of %d", is, want)
		}
		silent := func(string, int64, float64) {}
		backup, restored, moved := mem.New(), mem.New(), mem.New()
		if _, err := transfer.Backup(t.Context(), engine, backup, silent); err != nil {
			t.Fatal(err)
		}
		if _, err := transfer.Restore(t.Context(), backup, restored, silent); err != nil {
			t.Fatal(err)
		}
		move := transfer.Move{Live: engine, To: moved, Progress: silent, Aside: func(ctx context.Context) (kv.Engine, error) {
			return engine, transfer.SetAside(ctx, engine, transfer.Moved("there"))
		}}
		if _, err := move.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for what, copied := range map[string]kv.Engine{"restored": restored, "moved": moved} {
			if is := versionOf(t, copied); is != want {
				t.Errorf("%s it is of version %d, was of %d", what, is, want)
			}
			if has := open(t, copied, "g", "first").IsUpgraded(); has != raised {
				t.Errorf("%s it has empty columns: %v, want %v", what, has, raised)
			}
		}
	}
}

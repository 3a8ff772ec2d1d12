package catalogtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// told waits for a token.
func told(ctx context.Context, t *testing.T, tokens <-chan struct{}, what string) {
	t.Helper()
	select {
	case _, open := <-tokens:
		if !open {
			t.Fatalf("%s: the watch has ended", what)
		}
	case <-ctx.Done():
		t.Fatalf("%s: nobody is told", what)
	}
}

func tell(key, value string) kv.Write { return kv.Write{Key: key, Value: []byte(value), Notify: true} }

// watching checks that watchers of a key learn of what other clients told of it.
func watching(t *testing.T, instance Instance) {
	ctx := deadline(t)
	writer := instance.Engine
	if instance.Second != nil && !instance.Exclusive {
		second, err := instance.Second()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := second.Close(); err != nil {
				t.Error(err)
			}
		})
		writer = second
	}
	limited, stop := context.WithCancel(ctx)
	both, other := instance.Engine.Watch(ctx, "a", "b\x00\xff"), instance.Engine.Watch(limited, "c")
	told(ctx, t, both, "at first")
	told(ctx, t, other, "at first")
	for i := range 20 {
		key := []string{"a", "b\x00\xff"}[i%2]
		update(t, writer, nil, tell(key, fmt.Sprint(i)))
		told(ctx, t, both, fmt.Sprintf("after change %d", i))
		if got := string(read(t, instance.Engine, key)[0]); got != fmt.Sprint(i) {
			t.Errorf("who is told of change %d reads %q", i, got)
		}
	}
	// What is not made, or not told of, gives no token; c's comes after theirs.
	if failed := update(t, writer, []kv.Check{{Key: "a"}}, tell("a", "not made")); failed == nil {
		t.Error("a check that does not hold has held")
	}
	update(t, writer, nil, set("a", "not told of"), kv.Write{Key: "sum", Kind: kv.Increment, Add: 1, Notify: true})
	update(t, writer, nil, kv.Write{Key: "c", Kind: kv.Count, Add: 3, Notify: true})
	told(ctx, t, other, "after the change of c")
	select {
	case <-both:
		t.Error("watchers of a are told of what nobody told of")
	default:
	}
	update(t, writer, nil, kv.Write{Key: "c", Kind: kv.Remove, Notify: true}, tell("a", "last"))
	told(ctx, t, both, "after many")
	told(ctx, t, other, "after a removal")
	update(t, writer, nil, kv.Write{Key: "c", Kind: kv.Remove, Notify: true})
	told(ctx, t, other, "after a removal of what is not there")
	stop()
	ended(ctx, t, other)
	if err := instance.Engine.Close(); err != nil {
		t.Fatal(err)
	}
	ended(ctx, t, both)
	ended(ctx, t, instance.Engine.Watch(ctx, "a"))
}

// ended waits until a watch has.
func ended(ctx context.Context, t *testing.T, tokens <-chan struct{}) {
	t.Helper()
	for {
		select {
		case _, open := <-tokens:
			if !open {
				return
			}
		case <-ctx.Done():
			t.Fatal("a watch does not end")
		}
	}
}

// watchingThroughFaults checks that a watcher whose connections are cut learns of every change in the end.
func watchingThroughFaults(t *testing.T, instance Instance) {
	ctx := deadline(t)
	watcher := through(t, instance, seedOf(t))
	tokens := watcher.Watch(ctx, "version")
	for i := range 40 {
		want := fmt.Sprint(i)
		update(t, instance.Engine, nil, tell("version", want))
		for got := ""; got != want; {
			told(ctx, t, tokens, fmt.Sprintf("of version %d", i))
			value, err := readThroughFaults(ctx, watcher, "version")
			if err != nil {
				t.Fatal(err)
			}
			got = string(value)
		}
	}
}

// readThroughFaults reads until it is answered.
func readThroughFaults(ctx context.Context, engine kv.Engine, key string) ([]byte, error) {
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		values, err := engine.Read(attempt, key)
		cancel()
		if err == nil {
			return values[0], nil
		}
		if errors.Is(err, kv.ErrClosed) || ctx.Err() != nil {
			return nil, err
		}
		breathe(ctx)
	}
}

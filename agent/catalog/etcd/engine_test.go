package etcd_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/catalog/catalogtest"
	"github.com/restripe/restripe/agent/catalog/etcd"
	"github.com/restripe/restripe/agent/catalog/kv"
)

// open opens a cluster, which is warned of only by what is expected.
func open(t *testing.T, address string, expected ...string) *etcd.Engine {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	engine, err := etcd.Open(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	warnings := engine.Warnings()
	for _, part := range expected {
		if !strings.Contains(strings.Join(warnings, "\n"), part) {
			t.Errorf("warned of %q, want %q", warnings, part)
		}
	}
	if len(warnings) > len(expected) || engine.MayLose() {
		t.Errorf("warned of: %q; may lose what it acknowledged: %t", warnings, engine.MayLose())
	}
	return engine
}

// suite runs the suite over a cluster, all of whose members die where it asks for a crash, and come back.
func suite(t *testing.T, members cluster, expected ...string) {
	count := 0
	catalogtest.Run(t, func(t *testing.T) catalogtest.Instance {
		count++
		query := fmt.Sprintf("/?catalog=test%d", count)
		all := members.address(query)
		first := members[0].settings.Client
		return catalogtest.Instance{
			Engine: open(t, all, expected...),
			Second: func() (kv.Engine, error) { return etcd.Open(context.Background(), all) },
			Crash: func() kv.Engine {
				members.crash(t)
				return open(t, all, expected...)
			},
			Server: first,
			Dial: func(server string) (kv.Engine, error) {
				if server == first {
					return etcd.Open(context.Background(), all)
				}
				return etcd.Open(context.Background(), "etcd://"+server+query)
			},
		}
	})
}

const alone = "has one member"

func TestEngine(t *testing.T)           { suite(t, start(t, 1, nil), alone) }
func TestFullThreeMembers(t *testing.T) { leave(t); suite(t, start(t, 3, nil)) }

// leave skips what one member shows as well where time is short, as with the race detector.
func leave(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves it out")
	}
}

package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/catalog/catalogtest"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/postgres"
	"github.com/restripe/restripe/agent/catalog/postgres/postgrestest"
)

func TestEngine(t *testing.T) { suite(t, newest(t)) }

func TestFullEarlierReleases(t *testing.T) {
	if testing.Short() {
		t.Skip("-short leaves it out")
	}
	for _, folder := range programs(t) {
		if folder != newest(t) {
			suite(t, folder)
		}
	}
}

// suite runs the suite of engines over a release of the server.
func suite(t *testing.T, folder string) {
	t.Helper()
	t.Run(release(t, folder), func(t *testing.T) {
		s := postgrestest.Start(t, folder)
		count := 0
		catalogtest.Run(t, func(t *testing.T) catalogtest.Instance {
			count++
			return instance(t, s, s.Address(fmt.Sprintf("catalog=test%d", count)))
		})
	})
}

// instance opens what the suite tests.
func instance(t *testing.T, s *postgrestest.Server, address string) catalogtest.Instance {
	t.Helper()
	engine := open(t, address)
	if warnings := engine.Warnings(); len(warnings) > 0 || engine.MayLose() {
		t.Errorf("a durable server is warned of: %q", warnings)
	}
	return catalogtest.Instance{
		Engine: engine,
		Second: func() (kv.Engine, error) { return postgres.Open(context.Background(), address) },
		Crash: func() kv.Engine {
			s.Kill()
			s.Run()
			return open(t, address)
		},
		Server: s.Host(),
		Dial: func(server string) (kv.Engine, error) {
			return postgres.Open(context.Background(), strings.Replace(address, s.Host(), server, 1))
		},
	}
}

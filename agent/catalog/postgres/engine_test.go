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

func TestEngine(t *testing.T) {
	for _, folder := range programs(t) {
		t.Run(release(t, folder), func(t *testing.T) {
			if testing.Short() && folder != newest(t) {
				t.Skip("-short leaves it out")
			}
			s := postgrestest.Start(t, folder)
			count := 0
			catalogtest.Run(t, func(t *testing.T) catalogtest.Instance {
				count++
				return instance(t, s, s.Address(fmt.Sprintf("catalog=test%d", count)))
			})
		})
	}
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

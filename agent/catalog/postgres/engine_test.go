package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/restripe/restripe/agent/catalog/catalogtest"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/postgres"
)

func TestEngine(t *testing.T) {
	for _, folder := range programs(t) {
		t.Run(release(t, folder), func(t *testing.T) {
			if testing.Short() && folder != newest(t) {
				t.Skip("-short leaves it out")
			}
			s := start(t, folder)
			count := 0
			catalogtest.Run(t, func(t *testing.T) catalogtest.Instance {
				count++
				return s.instance(t, s.address(fmt.Sprintf("catalog=test%d", count)))
			})
		})
	}
}

// instance opens what the suite tests.
func (s *server) instance(t *testing.T, address string) catalogtest.Instance {
	t.Helper()
	engine := open(t, address)
	if warnings := engine.Warnings(); len(warnings) > 0 || engine.MayLose() {
		t.Errorf("a durable server is warned of: %q", warnings)
	}
	return catalogtest.Instance{
		Engine: engine,
		Second: func() (kv.Engine, error) { return postgres.Open(context.Background(), address) },
		Crash: func() kv.Engine {
			s.kill(t)
			s.run(t)
			return open(t, address)
		},
		Server: s.host(),
		Dial: func(server string) (kv.Engine, error) {
			return postgres.Open(context.Background(), strings.Replace(address, s.host(), server, 1))
		},
	}
}

package catalogtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/catalog"
)

// classes runs two Catalogs over the engine that both add to one class: no addition is lost, and the first to ask says
// since when accesses are counted.
func classes(t *testing.T, instance Instance) {
	ctx := deadline(t)
	var both []*catalog.Catalog
	for i := range 2 {
		c, err := catalog.Open(ctx, instance.Engine, catalog.Owner(fmt.Sprintf("gateway%d", i), "start"))
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, c)
	}
	const rounds = 6
	var all sync.WaitGroup
	var mu sync.Mutex
	var sinces []time.Time
	for client := range clients {
		all.Go(func() {
			c := both[client%2]
			for i := range rounds {
				err := c.ChangeClasses(ctx, func(classes []catalog.Class) ([]catalog.Class, error) {
					class := catalog.Class{Name: "shared"}
					if len(classes) > 0 {
						class = classes[0]
					}
					class.Body = fmt.Appendf(slices.Clone(class.Body), "%d.%d;", client, i)
					return []catalog.Class{class}, nil
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
			since, err := c.HeatSince(ctx)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			sinces = append(sinces, since)
		})
	}
	all.Wait()
	list, version, err := both[0].Classes(ctx)
	if err != nil || len(list) != 1 || version != clients*rounds {
		t.Fatalf("%d classes of version %d, %v", len(list), version, err)
	}
	for client := range clients {
		for i := range rounds {
			if addition := fmt.Sprintf("%d.%d;", client, i); !strings.Contains(";"+string(list[0].Body), ";"+addition) {
				t.Errorf("addition %s is lost", addition)
			}
		}
	}
	for _, since := range sinces {
		if !since.Equal(sinces[0]) {
			t.Errorf("counted since %v, and since %v", since, sinces[0])
		}
	}
	if err := both[1].Audit(ctx); err != nil {
		t.Error(err)
	}
}

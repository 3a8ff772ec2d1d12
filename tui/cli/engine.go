package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/redis"
	"github.com/restripe/restripe/agent/catalog/sqlite"
)

// openCatalog opens the catalog at address for one start of the gateway id; blocks that die stay readable for the grace.
// The caller closes it.
func openCatalog(ctx context.Context, address, id, start string, grace time.Duration) (*catalog.Catalog, error) {
	engine, err := openEngine(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("opening the catalog: %w", err)
	}
	opened, err := catalog.Open(ctx, engine, catalog.Owner(id, start), catalog.WithGrace(grace))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the catalog: %w", err), engine.Close())
	}
	return opened, nil
}

// openEngine chooses the engine by the scheme of address.
func openEngine(ctx context.Context, address string) (catalog.Engine, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch {
	case scheme == "sqlite" && rest != "":
		return sqlite.Open(ctx, rest)
	case scheme == "redis" || scheme == "rediss":
		engine, err := redis.Open(ctx, address)
		if err != nil {
			return nil, fmt.Errorf("%w; see that the server runs, is reachable from here, and takes the user and password of redis://user:password@host:port", err)
		}
		return engine, nil
	}
	return nil, fmt.Errorf("%q is not the address of a catalog: want sqlite:FILE, redis://host:port or rediss://host:port", scheme+":")
}

// Package open opens a catalog by its address. It is the one place that knows every engine.
package open

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/redis"
	"github.com/restripe/restripe/agent/catalog/sqlite"
)

// Catalog opens the catalog at an address, which is sqlite:FILE, redis://host:port or rediss://host:port, for one start of the
// gateway id; blocks that die stay readable for the grace. The caller closes it. warnings say what the engine may lose.
func Catalog(ctx context.Context, address, id, start string, grace time.Duration) (opened *catalog.Catalog, warnings []string, err error) {
	engine, err := Engine(ctx, address)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the catalog: %w", err)
	}
	if engine, warns := engine.(interface{ Warnings() []string }); warns {
		warnings = engine.Warnings()
	}
	opened, err = catalog.Open(ctx, traced{engine}, catalog.Owner(id, start), catalog.WithGrace(grace))
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("opening the catalog: %w", err), engine.Close())
	}
	return opened, warnings, nil
}

// Check reports what is wrong with the address of a catalog, and with the files that it names, without opening it.
func Check(address string) error {
	scheme, rest, _ := strings.Cut(address, ":")
	switch {
	case scheme == "sqlite" && rest != "":
		return nil
	case scheme == "redis" || scheme == "rediss":
		return redis.Check(address)
	}
	return fmt.Errorf("%q is not the address of a catalog: want sqlite:FILE, redis://host:port or rediss://host:port", scheme+":")
}

// WithoutSecrets returns an address that may be shown to everybody.
func WithoutSecrets(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.User == nil {
		return address
	}
	parsed.User = url.User(parsed.User.Username())
	return parsed.String()
}

// Engine opens the engine that the scheme of an address names. The caller closes it.
func Engine(ctx context.Context, address string) (kv.Engine, error) {
	if err := Check(address); err != nil {
		return nil, err
	}
	if path, is := strings.CutPrefix(address, "sqlite:"); is {
		return sqlite.Open(ctx, path)
	}
	engine, err := redis.Open(ctx, address)
	if err == nil {
		return engine, nil
	}
	var unreachable *net.OpError
	var refused *rueidis.RedisError
	switch {
	case errors.As(err, &unreachable):
		err = fmt.Errorf("%w; see that the server runs and is reachable from here", err)
	case errors.As(err, &refused):
		err = fmt.Errorf("%w; give the right user and password in redis://user:password@host:port", err)
	}
	return nil, err
}

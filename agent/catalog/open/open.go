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

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/rueidis"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/etcd"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/postgres"
	"github.com/restripe/restripe/agent/catalog/redis"
	"github.com/restripe/restripe/agent/catalog/sqlite"
)

// Addresses are the forms that the address of a catalog has.
const Addresses = "sqlite:FILE, redis://host:port, etcd://host:port,host:port, postgres://user@host:port/database, " +
	"or rediss:// or etcds:// for TLS"

// Catalog opens the catalog at an address, which has one of the forms of Addresses, for one start of the gateway id; blocks that die
// stay readable for the grace. The caller closes it. warnings say what the engine may lose.
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
	case scheme == "etcd" || scheme == "etcds":
		return etcd.Check(address)
	case scheme == "postgres" || scheme == "postgresql":
		return postgres.Check(address)
	}
	return fmt.Errorf("%q is not the address of a catalog: want %s", scheme+":", Addresses)
}

// WithoutSecrets returns an address that may be shown to everybody.
func WithoutSecrets(address string) string {
	if strings.HasPrefix(address, "postgres") {
		return postgres.Location(address)
	}
	if strings.HasPrefix(address, "etcd") {
		return etcd.Location(address)
	}
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
	var engine kv.Engine
	var err error
	form := ""
	switch scheme, rest, _ := strings.Cut(address, ":"); scheme {
	case "sqlite":
		engine, err = sqlite.Open(ctx, rest)
	case "etcd", "etcds":
		engine, err = etcd.Open(ctx, address)
	case "postgres", "postgresql":
		engine, err = postgres.Open(ctx, address)
		form = "postgres://user@host:port/database, or the password in the file of a passfile parameter"
	default:
		engine, err = redis.Open(ctx, address)
		form = "redis://user:password@host:port"
	}
	if err != nil {
		return nil, advised(err, form)
	}
	return engine, nil
}

// advised adds to the error of who did not reach a server, or was not let in, what to do.
func advised(err error, form string) error {
	var unreachable *net.OpError
	var refused *rueidis.RedisError
	var rejected *pgconn.PgError
	switch {
	case errors.As(err, &rejected) && !strings.HasPrefix(rejected.Code, "28"), errors.Is(err, context.Canceled):
	case errors.As(err, &unreachable):
		err = fmt.Errorf("%w; see that the server runs and is reachable from here", err)
	case errors.As(err, &refused), rejected != nil:
		err = fmt.Errorf("%w; give the right user and password in %s", err, form)
	}
	return err
}

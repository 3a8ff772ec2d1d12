package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// How soon a server is noticed to be gone that says so to nobody.
const (
	connectTimeout = 10 * time.Second
	silentTimeout  = 30 * time.Second
)

// names are those of catalogs: of schemas that need no quotes.
var names = regexp.MustCompile(`^[a-z][a-z0-9_]{0,40}$`)

const form = "want postgres://user@host:port/database, with special characters percent-encoded"

// target is what an address names; location is the address without secrets.
type target struct {
	location, schema string
	config           *pgconn.Config
}

// Check reports what is wrong with an address, and with the files that it names, without reaching the server.
func Check(address string) error {
	_, err := parse(address)
	return err
}

// Location returns an address without what may be secret in it; only its scheme where it is none.
func Location(address string) string {
	target, err := parse(address)
	if err != nil {
		return "postgres:"
	}
	return target.location
}

// parse reads address. Errors of the client repeat addresses, in which there may be a password: of them only those of files are told.
func parse(address string) (*target, error) {
	base, query, _ := strings.Cut(address, "?")
	parameters, err := url.ParseQuery(query)
	if err != nil || !strings.HasPrefix(base, "postgres://") && !strings.HasPrefix(base, "postgresql://") {
		return nil, errors.New("reading the address of the catalog: " + form)
	}
	schema := parameters.Get("catalog")
	if schema == "" {
		schema = "restripe"
	}
	if !names.MatchString(schema) || strings.HasPrefix(schema, "pg_") {
		return nil, errors.New("reading the address of the catalog: its parameter catalog names a schema of letters a to z, digits and " +
			"underscores, which does not begin with pg_")
	}
	parameters.Del("catalog")
	if file := parameters.Get("passfile"); file != "" {
		if _, err := os.Stat(file); err != nil { // the client would go on without a password
			return nil, fmt.Errorf("reading the passfile of the catalog: %w", err)
		}
	}
	config, err := pgconn.ParseConfig(base + "?" + parameters.Encode())
	var file *fs.PathError
	switch {
	case errors.As(err, &file):
		return nil, fmt.Errorf("reading a file that the address of the catalog names: %w", file)
	case err != nil:
		return nil, errors.New("reading the address of the catalog: " + form + ", and parameters that PostgreSQL knows")
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout > connectTimeout {
		config.ConnectTimeout = connectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "restripe"
	}
	config.DialFunc = dial
	hosts := []string{net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))}
	for _, other := range config.Fallbacks {
		host := net.JoinHostPort(other.Host, strconv.Itoa(int(other.Port)))
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	location := "postgres://" + strings.Join(hosts, ",") + "/" + config.Database + "?catalog=" + schema
	return &target{location: location, schema: schema, config: config}, nil
}

// connecting marks the context of who connects.
type connecting struct{}

// errNoCancel says why nothing is cancelled on the server: a transaction that waits for standbys would take effect without them.
var errNoCancel = errors.New("calls are not cancelled on the server")

// dial connects for who makes a connection, and for nobody else: the client would dial to cancel what runs in a broken one.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	if ctx.Value(connecting{}) == nil {
		return nil, errNoCancel
	}
	dialer := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: silentTimeout / 2, Interval: silentTimeout / 6, Count: 3},
		Control:         silence,
	}
	return dialer.DialContext(ctx, network, address)
}

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
	hosts            []*pgconn.Config // one for each server
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
	hosts := perHost(config)
	var named []string
	for _, host := range hosts {
		named = append(named, net.JoinHostPort(host.Host, strconv.Itoa(int(host.Port))))
	}
	location := "postgres://" + strings.Join(named, ",") + "/" + config.Database + "?catalog=" + schema
	return &target{location: location, schema: schema, config: config, hosts: hosts}, nil
}

// perHost takes a configuration apart into one for each server, with all the ways to connect to it.
func perHost(config *pgconn.Config) (hosts []*pgconn.Config) {
	ways := append([]*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}}, config.Fallbacks...)
	for _, way := range ways {
		known := slices.IndexFunc(hosts, func(host *pgconn.Config) bool { return host.Host == way.Host && host.Port == way.Port })
		if known >= 0 {
			hosts[known].Fallbacks = append(hosts[known].Fallbacks, way)
			continue
		}
		host := config.Copy()
		host.Host, host.Port, host.TLSConfig, host.Fallbacks = way.Host, way.Port, way.TLSConfig, nil
		hosts = append(hosts, host)
	}
	return hosts
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

package open

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/ceph"
	"github.com/restripe/restripe/agent/store/file"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/agent/store/memcached"
	"github.com/restripe/restripe/agent/store/redis"
)

// ErrAddress is wrapped where the address of a store is not one.
var ErrAddress = errors.New("not the address of a store")

// schemes lists what Open takes, for people.
const schemes = "file:/directory, memcached://host:port, redis://host:port/database, rediss://host:port/database, ceph:pool or mem:"

// opener opens a store whose address has been read.
type opener func(ctx context.Context) (store.Store, error)

// Open opens the store at address. The caller closes it. Errors name the address without its secrets and say what to
// do; they wrap ErrAddress, the sentinels of package store, or those of package file.
func Open(ctx context.Context, address string) (store.Store, error) {
	open, err := read(address)
	if err != nil {
		return nil, err
	}
	return open(ctx)
}

// Check reports what is wrong with an address, and with the files that it names, without reaching the store. Errors are as of Open.
func Check(address string) error {
	_, err := read(address)
	return err
}

// read reads an address and the files that it names.
func read(address string) (opener, error) {
	scheme, rest, found := strings.Cut(address, ":")
	if !found {
		return nil, fmt.Errorf("%w: %q has no scheme; write %s", ErrAddress, Redact(address), schemes)
	}
	switch scheme {
	case "mem":
		if rest != "" {
			return nil, fmt.Errorf("%w: %q; a store in memory takes no more than mem:", ErrAddress, Redact(address))
		}
		return func(context.Context) (store.Store, error) { return mem.New(0), nil }, nil
	case "file":
		return readFile(rest)
	case "memcached":
		return readMemcached(address)
	case "redis", "rediss":
		return readRedis(address)
	case "ceph":
		return readCeph(rest)
	}
	return nil, fmt.Errorf("%w: %q has the unknown scheme %q; write %s", ErrAddress, Redact(address), scheme, schemes)
}

// Redact returns address without what may be secret: the user's name, the password and the query. Where those cannot be
// told from the rest, it returns the scheme alone.
func Redact(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if found {
		scheme += "://"
	} else {
		scheme, rest = "", address
	}
	at, query := strings.LastIndexByte(rest, '@'), strings.IndexAny(rest, "?#")
	switch {
	case query >= 0 && query < at: // of a query, or of a password that is not percent-encoded
		return scheme + "..."
	case query >= 0:
		rest = rest[:query]
	}
	rest = rest[at+1:]
	authority, _, _ := strings.Cut(rest, "/")
	if _, port, found := strings.Cut(authority, ":"); found && strings.HasPrefix(scheme, "redis") && strings.Trim(port, "0123456789") != "" &&
		!strings.HasPrefix(authority, "[") { // user:password with the host forgotten
		return scheme + "..."
	}
	return scheme + rest
}

// readFile takes file:path, file:///path and file://localhost/path.
func readFile(path string) (opener, error) {
	if authority, found := strings.CutPrefix(path, "//"); found {
		host, rest, _ := strings.Cut(authority, "/")
		if host != "" && host != "localhost" {
			return nil, fmt.Errorf("%w: %q names the directory of another host, %q; write file:/directory", ErrAddress, "file:"+path, host)
		}
		path = "/" + rest
	}
	if path == "" || path == "/" {
		return nil, fmt.Errorf("%w: %q names no directory; write file:/var/lib/restripe", ErrAddress, "file:"+path)
	}
	return func(ctx context.Context) (store.Store, error) {
		s, err := file.Open(ctx, path)
		if err != nil {
			return nil, err
		}
		return s, nil
	}, nil
}

// parse reads an address with a host; errors never show what the parser saw.
func parse(address, defaultPort string) (*url.URL, error) {
	location, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%w: %q cannot be read; percent-encode special characters of the user's name and password", ErrAddress, Redact(address))
	}
	host, port := location.Hostname(), location.Port()
	if host == "" {
		return nil, fmt.Errorf("%w: %q names no host; write %s://host:port", ErrAddress, Redact(address), location.Scheme)
	}
	if port == "" {
		port = defaultPort
	}
	location.Host = net.JoinHostPort(host, port)
	return location, nil
}

func readMemcached(address string) (opener, error) {
	location, err := parse(address, "11211")
	if err != nil {
		return nil, err
	}
	if location.User != nil {
		return nil, fmt.Errorf("%w: %q has credentials, and SASL is not supported; protect memcached by its network", ErrAddress, Redact(address))
	}
	if location.Path != "" && location.Path != "/" || location.RawQuery != "" {
		return nil, fmt.Errorf("%w: %q has more than a host and a port; write memcached://host:port", ErrAddress, Redact(address))
	}
	return func(ctx context.Context) (store.Store, error) {
		s, err := memcached.Open(ctx, location.Host, memcached.Options{})
		if err != nil {
			return nil, fmt.Errorf("%w; see that the server runs and is reachable from here", err)
		}
		return s, nil
	}, nil
}

func readRedis(address string) (opener, error) {
	location, err := parse(address, "6379")
	if err != nil {
		return nil, err
	}
	options := redis.Options{Address: location.Host}
	if location.User != nil {
		options.Username = location.User.Username()
		options.Password, _ = location.User.Password()
	}
	if database := strings.Trim(location.Path, "/"); database != "" {
		if options.Database, err = strconv.Atoi(database); err != nil || options.Database < 0 {
			return nil, fmt.Errorf("%w: %q: %q is not the number of a database; write for example redis://host:6379/0", ErrAddress, Redact(address), database)
		}
	}
	if options.TLS, err = readTLS(location); err != nil {
		return nil, fmt.Errorf("opening %s: %w", Redact(address), err)
	}
	return func(ctx context.Context) (store.Store, error) {
		s, err := redis.Open(ctx, options)
		switch {
		case errors.Is(err, store.ErrAuth):
			return nil, fmt.Errorf("%w; give the right user and password in redis://user:password@host:port", err)
		case err != nil:
			return nil, fmt.Errorf("%w; see that the server runs, is reachable from here, and does or does not speak TLS as the address says", err)
		}
		return s, nil
	}, nil
}

// readCeph takes ceph:pool?conf=/etc/ceph/ceph.conf&keyring=/etc/ceph/ceph.client.restripe.keyring&user=restripe.
func readCeph(rest string) (opener, error) {
	pool, parameters, _ := strings.Cut(rest, "?")
	name, err := url.PathUnescape(pool)
	if err != nil || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("%w: %q does not name a pool; write ceph:pool?conf=/etc/ceph/ceph.conf", ErrAddress, Redact("ceph:"+rest))
	}
	query, err := url.ParseQuery(parameters)
	if err != nil {
		return nil, fmt.Errorf("%w: the parameters of %q cannot be read; percent-encode special characters", ErrAddress, Redact("ceph:"+rest))
	}
	for parameter := range query {
		if parameter != "conf" && parameter != "keyring" && parameter != "user" {
			return nil, fmt.Errorf("%w: %q: unknown parameter %q; ceph: takes conf, keyring and user", ErrAddress, Redact("ceph:"+rest), parameter)
		}
	}
	options := ceph.Options{Pool: name, Config: query.Get("conf"), Keyring: query.Get("keyring"), User: query.Get("user")}
	return func(ctx context.Context) (store.Store, error) {
		s, err := ceph.Open(ctx, options)
		if err != nil {
			return nil, err
		}
		return s, nil
	}, nil
}

// readTLS returns the TLS settings of an address, nil for none.
func readTLS(location *url.URL) (*tls.Config, error) {
	query := location.Query()
	for name := range query {
		if location.Scheme != "rediss" || name != "ca" && name != "cert" && name != "key" {
			return nil, fmt.Errorf("%w: unknown parameter %q; rediss: takes ca, cert and key", ErrAddress, name)
		}
	}
	if location.Scheme != "rediss" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: location.Hostname()}
	if name := query.Get("ca"); name != "" {
		authorities, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the certificate authorities: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(authorities) {
			return nil, fmt.Errorf("%s holds no certificate; give a PEM file as ca", name)
		}
	}
	if query.Get("cert") != "" || query.Get("key") != "" {
		certificate, err := tls.LoadX509KeyPair(query.Get("cert"), query.Get("key"))
		if err != nil {
			return nil, fmt.Errorf("reading the client's certificate: %w; give PEM files as cert and key, both", err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return config, nil
}

package etcd

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/restripe/restripe/agent/catalog/credentials"
)

// How long connections take, after which silence they are taken for broken, and how soon they are tried again.
const (
	connectLimit = 5 * time.Second
	probeAfter   = 10 * time.Second // gRPC asks no more often, and members take no more than one in 5 s
	probeLimit   = 5 * time.Second
	againFirst   = 50 * time.Millisecond
	againLast    = time.Second
)

// nameLimit is the longest name of a catalog, in bytes; it is part of every key.
const nameLimit = 100

// parsedAddress is an address in parts; location is the address without secrets.
type parsedAddress struct {
	location, name string
	hosts          []string
	config         clientv3.Config
}

// Check reports what is wrong with an address, and with the files that it names, without reaching the cluster.
func Check(address string) error {
	_, err := parse(address)
	return err
}

// Location returns an address without what may be secret in it; only its scheme where it is none.
func Location(address string) string {
	parsed, err := parse(address)
	if err != nil {
		return "etcd:"
	}
	return parsed.location
}

// defaultName is that of a catalog whose address names none.
const defaultName = "restripe"

const wanted = "want etcd://host:port,host:port, or etcds://user@host:port?cacert=FILE&passwordfile=FILE"

// parse reads address. The package url does not take several hosts.
func parse(address string) (parsedAddress, error) {
	var none parsedAddress
	scheme, rest, _ := strings.Cut(address, "://")
	hosts, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		hosts, tail = rest[:i], rest[i:]
	}
	user := ""
	if i := strings.LastIndex(hosts, "@"); i >= 0 {
		user, hosts = hosts[:i+1], hosts[i+1:]
	}
	parsed, err := url.Parse(scheme + "://" + user + "host" + tail)
	if err != nil || scheme != "etcd" && scheme != "etcds" {
		// The error would repeat the address and the password in it.
		return none, errors.New("reading the address of the catalog: " + wanted + ", with special characters percent-encoded")
	}
	p := parsedAddress{location: scheme + "://" + hosts, name: defaultName, hosts: strings.Split(hosts, ",")}
	wrong := func(format string, arguments ...any) (parsedAddress, error) {
		return none, fmt.Errorf("reading the address of the catalog %s: "+format, append([]any{p.location}, arguments...)...)
	}
	for _, host := range p.hosts {
		if name, port, err := net.SplitHostPort(host); err != nil || name == "" || port == "" {
			return wrong("%q is not host:port; %s", host, wanted)
		}
		p.config.Endpoints = append(p.config.Endpoints, map[string]string{"etcd": "http://", "etcds": "https://"}[scheme]+host)
	}
	if parsed.Path != "" && parsed.Path != "/" || parsed.Fragment != "" {
		return wrong("it has a path; %s", wanted)
	}
	query, err := url.ParseQuery(parsed.RawQuery)
	if err != nil {
		return wrong("its parameters are not percent-encoded; %s", wanted)
	}
	files := map[string]string{}
	for key, values := range query {
		switch value := values[len(values)-1]; {
		case key == "catalog":
			p.name = value
		case slices.Contains(credentials.Parameters, key):
			files[key] = value
		default:
			return wrong("there is no %s=; there are catalog, cacert, cert, key and passwordfile", key)
		}
	}
	if p.name == "" || len(p.name) > nameLimit || strings.Contains(p.name, "/") {
		return wrong("the name %q must not be empty, have slashes or more than %d bytes", p.name, nameLimit)
	}
	if p.name != defaultName {
		p.location += "/?catalog=" + url.QueryEscape(p.name)
	}
	if err := p.user(parsed.User, files); err != nil {
		return wrong("%w", err)
	}
	if scheme == "etcds" {
		p.config.TLS, err = credentials.TLS(files)
	} else {
		err = credentials.NeedTLS(files, "etcds")
	}
	if err != nil {
		return wrong("%w", err)
	}
	p.connect()
	return p, nil
}

// user takes down who asks, with the password that stands in the address or in a file.
func (p *parsedAddress) user(user *url.Userinfo, files map[string]string) (err error) {
	p.config.Username = user.Username()
	written, isWritten := user.Password()
	if p.config.Password, err = credentials.Password(files, written, isWritten); err != nil {
		return err
	}
	if (p.config.Username == "") != (p.config.Password == "") {
		return errors.New("a user goes with a password: user@host:port?passwordfile=FILE")
	}
	return nil
}

// connect sets how the members are connected with. The client repeats nothing by itself, as it takes an answer that somebody cancelled
// for none; and it probes only while it waits, since members end connections that are probed without.
func (p *parsedAddress) connect() {
	p.config.DialTimeout, p.config.DialKeepAliveTime, p.config.DialKeepAliveTimeout = connectLimit, probeAfter, probeLimit
	p.config.MaxUnaryRetries = 1
	p.config.MaxCallSendMsgSize = MemberBytes + overheadBytes
	p.config.Logger = zap.NewNop()
	p.config.DialOptions = []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: againFirst, Multiplier: 1.6, Jitter: 0.2, MaxDelay: againLast},
		MinConnectTimeout: connectLimit,
	})}
}

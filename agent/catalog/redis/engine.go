package redis

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/restripe/restripe/agent/catalog/credentials"
	"github.com/restripe/restripe/agent/catalog/kv"
)

// Engine is a kv.Engine over one Redis server or cluster.
type Engine struct {
	client    rueidis.Client
	location  string
	records   string // the hash
	index     string // the sorted set of its fields
	channel   string // tells of keys
	snapshots string // the set of those that are read
	hub       kv.Hub
	listen    sync.Once
	deaf      context.CancelFunc // ends the subscription
	hearing   context.Context
	mayLose   bool
	warnings  []string
	closed    atomic.Bool
}

var (
	_ kv.Engine    = (*Engine)(nil)
	_ kv.Reporting = (*Engine)(nil)
)

// Open connects to the server that address names: redis://user:password@host:port/database, or rediss:// for TLS, with the files
// ?passwordfile=, ?cacert=, ?cert= and ?key=. The query parameter catalog names one of several catalogs on a server; default "restripe".
func Open(ctx context.Context, address string) (*Engine, error) {
	location, name, options, err := parse(address)
	if err != nil {
		return nil, err
	}
	client, err := rueidis.NewClient(options)
	if err != nil {
		return nil, fmt.Errorf("connecting to the catalog %s: %w", location, err)
	}
	tag := "{restripe:" + name + "}"
	e := &Engine{
		client: client, location: location, records: tag + "records", index: tag + "index", channel: tag + "told", snapshots: tag + "snapshots",
	}
	e.hub.Deafen()
	e.hearing, e.deaf = context.WithCancel(context.Background())
	if err := e.inspect(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Check reports what is wrong with an address, and with the files that it names, without reaching the server.
func Check(address string) error {
	_, _, _, err := parse(address)
	return err
}

// parse reads address; location is address without secrets.
func parse(address string) (location, name string, options rueidis.ClientOption, err error) {
	parsed, err := url.Parse(address)
	if err != nil {
		// The error would repeat the address and the password in it.
		return "", "", options, errors.New("reading the address of the catalog: want redis://user:password@host:port/database, with special characters percent-encoded")
	}
	query := parsed.Query()
	files := map[string]string{}
	for _, key := range credentials.Parameters {
		if query.Has(key) {
			files[key] = query.Get(key)
			query.Del(key)
		}
	}
	parsed.RawQuery = query.Encode()
	location = parsed.Redacted()
	name = query.Get("catalog")
	if name == "" {
		name = "restripe"
	}
	if strings.ContainsAny(name, "{}") {
		return "", "", options, fmt.Errorf("reading the address of the catalog %s: the name %q must not have braces", location, name)
	}
	query.Del("catalog")
	parsed.RawQuery = query.Encode()
	options, err = rueidis.ParseURL(parsed.String())
	if err != nil {
		return "", "", options, fmt.Errorf("reading the address of the catalog %s: want redis://user:password@host:port/database", location)
	}
	_, isWritten := parsed.User.Password()
	if options.Password, err = credentials.Password(files, options.Password, isWritten); err == nil {
		err = secure(&options, files)
	}
	if err != nil {
		return "", "", options, fmt.Errorf("reading the address of the catalog %s: %w", location, err)
	}
	options.DisableRetry = true
	options.DisableCache = true
	return location, name, options, nil
}

// secure sets what TLS is done with, where there is TLS.
func secure(options *rueidis.ClientOption, files map[string]string) error {
	if options.TLSConfig == nil {
		return credentials.NeedTLS(files, "rediss")
	}
	secured, err := credentials.TLS(files)
	if err != nil {
		return err
	}
	options.TLSConfig.RootCAs, options.TLSConfig.GetClientCertificate = secured.RootCAs, secured.GetClientCertificate
	return nil
}

// inspect refuses a server that would lose the catalog, and collects what the operator should know.
func (e *Engine) inspect(ctx context.Context) error {
	warn := func(format string, arguments ...any) {
		e.warnings = append(e.warnings, fmt.Sprintf("The catalog %s ", e.location)+fmt.Sprintf(format, arguments...))
	}
	if err := e.client.Do(ctx, e.client.B().Ping().Build()).Error(); err != nil {
		return fmt.Errorf("asking the catalog %s: %w", e.location, err)
	}
	settings := map[string]string{}
	for _, name := range []string{"maxmemory-policy", "appendonly", "appendfsync"} {
		values, err := e.client.Do(ctx, e.client.B().ConfigGet().Parameter(name).Build()).AsStrMap()
		if _, refused := rueidis.IsRedisErr(err); err != nil && !refused {
			return fmt.Errorf("asking the catalog %s for %s: %w", e.location, name, err)
		}
		if err != nil || values[name] == "" {
			warn("does not say what %s is set to: see that it neither evicts keys nor loses acknowledged writes.", name)
			continue
		}
		settings[name] = values[name]
	}
	if policy := settings["maxmemory-policy"]; strings.HasPrefix(policy, "allkeys-") {
		return fmt.Errorf("opening the catalog %s: the server evicts keys (maxmemory-policy %s) and would lose the catalog: "+
			"set maxmemory-policy noeviction, or name another server", e.location, policy)
	}
	replication, err := e.client.Do(ctx, e.client.B().Info().Section("replication").Build()).ToString()
	isAlone := err == nil && strings.Contains(replication, "role:master") && strings.Contains(replication, "connected_slaves:0\r")
	e.mayLose = !isAlone || settings["appendonly"] != "yes" || settings["appendfsync"] != "always"
	switch {
	case settings["appendonly"] == "no":
		warn("keeps no append-only file: a restart of the server loses acknowledged writes. Set appendonly yes and appendfsync always.")
	case settings["appendonly"] == "yes" && settings["appendfsync"] != "always" && settings["appendfsync"] != "":
		warn("syncs its append-only file %s: a crash of its machine loses acknowledged writes. Set appendfsync always.", settings["appendfsync"])
	}
	if err == nil && !isAlone {
		warn("has replicas, which are sent what was acknowledged already: a fail-over loses acknowledged writes, which WAIT would not prevent. " +
			"What was lost is noticed, and nothing is deleted by it; take etcd or PostgreSQL where a fail-over has to lose nothing.")
	}
	return nil
}

// MayLose implements kv.Forgetful: whether the server, as it was configured at Open, loses acknowledged updates in a crash, or
// has a replica that may take its place without the newest, or does not say.
func (e *Engine) MayLose() bool { return e.mayLose }

// Warnings returns whole sentences about what the server, as it was configured at Open, may lose, and the cure.
func (e *Engine) Warnings() []string { return append([]string(nil), e.warnings...) }

// Read implements kv.Engine.
func (e *Engine) Read(ctx context.Context, keys ...string) ([][]byte, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	if len(keys) == 0 {
		return nil, nil
	}
	answer, err := e.client.Do(ctx, e.client.B().Hmget().Key(e.records).Field(keys...).Build()).ToArray()
	if err != nil {
		return nil, fmt.Errorf("reading the catalog %s: %w", e.location, err)
	}
	values := make([][]byte, len(answer))
	for i := range answer {
		if values[i], err = value(answer[i]); err != nil {
			return nil, fmt.Errorf("reading the catalog %s: %w", e.location, err)
		}
	}
	return values, nil
}

// value returns a bulk string, nil for none.
func value(message rueidis.RedisMessage) ([]byte, error) {
	if message.IsNil() {
		return nil, nil
	}
	text, err := message.ToString()
	return append([]byte{}, text...), err
}

// Scan implements kv.Engine.
func (e *Engine) Scan(ctx context.Context, prefix, after string, limit int) ([]kv.Record, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	return e.list(ctx, e.records, e.index, prefix, after, limit)
}

// list reads one page of the hash and its index.
func (e *Engine) list(ctx context.Context, hash, index, prefix, after string, limit int) ([]kv.Record, error) {
	if limit <= 0 {
		return nil, nil
	}
	from, to := "("+after, "+"
	if after < prefix {
		from = "[" + prefix
	}
	if end := kv.Successor(prefix); end != "" {
		to = "(" + end
	}
	answer, err := scan.Exec(ctx, e.client, []string{hash, index}, []string{from, to, strconv.Itoa(limit)}).ToArray()
	if err != nil {
		return nil, fmt.Errorf("listing the catalog %s: %w", e.location, err)
	}
	records := make([]kv.Record, 0, len(answer)/2)
	for i := 0; i+1 < len(answer); i += 2 {
		key, err := answer[i].ToString()
		if err != nil {
			return nil, fmt.Errorf("listing the catalog %s: %w", e.location, err)
		}
		content, err := value(answer[i+1])
		if err != nil {
			return nil, fmt.Errorf("listing the catalog %s: %w", e.location, err)
		}
		records = append(records, kv.Record{Key: key, Value: content})
	}
	return records, nil
}

// Update implements kv.Engine.
func (e *Engine) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	if e.closed.Load() {
		return nil, kv.ErrClosed
	}
	arguments := make([]string, 0, 2+3*len(checks)+3*len(writes))
	arguments = append(arguments, strconv.Itoa(len(checks)))
	for _, check := range checks {
		expected := "present"
		if check.Value == nil {
			expected = "absent"
		}
		arguments = append(arguments, check.Key, expected, string(check.Value))
	}
	arguments = append(arguments, strconv.Itoa(len(writes)))
	for _, write := range writes {
		switch write.Kind {
		case kv.Remove:
			arguments = append(arguments, "remove", write.Key, "")
		case kv.Count:
			arguments = append(arguments, "set", write.Key, strconv.FormatInt(write.Add, 10))
		case kv.Increment:
			arguments = append(arguments, "increment", write.Key, strconv.FormatInt(write.Add, 10))
		default:
			arguments = append(arguments, "set", write.Key, string(write.Value))
		}
	}
	for _, write := range writes {
		if write.Notify {
			arguments = append(arguments, write.Key)
		}
	}
	answer, err := update.Exec(ctx, e.client, []string{e.records, e.index, e.channel, e.snapshots}, arguments).AsIntSlice()
	if err != nil {
		return nil, fmt.Errorf("updating the catalog %s: %w", e.location, err)
	}
	var failed []int
	for _, i := range answer {
		failed = append(failed, int(i))
	}
	return failed, nil
}

// Close implements kv.Engine.
func (e *Engine) Close() error {
	if !e.closed.Swap(true) {
		e.deaf()
		e.hub.Close()
		e.client.Close()
	}
	return nil
}

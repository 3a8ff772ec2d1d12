package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/e2e/bench/provenance"
)

const document = "docs/benchmarks/clients.md"

// bench is one run.
type bench struct {
	directory, binary, before string
	seconds, rounds           int
	began                     time.Time
	peers                     peers
}

func main() {
	b := &bench{began: time.Now()}
	write := flag.Bool("write", false, "write "+document)
	flag.IntVar(&b.seconds, "seconds", 4, "seconds of a measurement, about")
	flag.IntVar(&b.rounds, "rounds", 3, "rounds, of which the median and the slowest are told")
	flag.StringVar(&b.before, "before", "", "program of an earlier commit, whose HTTP is measured beside")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := b.run(ctx, *write); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func (b *bench) say(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "%7.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, values...))
}

func (b *bench) run(ctx context.Context, write bool) (err error) {
	source, err := provenance.Read("go run ./e2e/bench/clients" + map[bool]string{true: " -write"}[write])
	if err != nil {
		return err
	}
	if b.directory, err = os.MkdirTemp("", "restripe-clients-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.directory)) }()
	b.binary = filepath.Join(b.directory, "restripe")
	b.say("building restripe")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.binary, ".").CombinedOutput(); err != nil {
		return fmt.Errorf("building restripe: %w\n%s", err, out)
	}
	if err := b.peers.start(ctx, b.directory); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.peers.stop()) }()
	var all []row
	for _, measure := range []func(context.Context) ([]row, error){b.redis, b.memcached, b.http} {
		rows, err := measure(ctx)
		if err != nil {
			return err
		}
		all = append(all, rows...)
	}
	page := report(source, b.peers.hasProxy(), all)
	if write {
		return os.WriteFile(document, []byte(page), 0o644)
	}
	_, err = io.WriteString(os.Stdout, page)
	return err
}

// agents is how many a cluster has.
const agents = 9

// cluster starts one over a kind of store, whose only class has a scheme by default.
func (b *bench) cluster(ctx context.Context, store launch.StoreKind, scheme string) (*launch.Cluster, error) {
	state, classes, err := b.folder(scheme)
	if err != nil {
		return nil, err
	}
	b.say("%d agents over %s, %s", agents, store, scheme)
	running, err := launch.Start(ctx, launch.Options{Directory: state, Binary: b.binary, Store: store, Agents: agents, ClassFile: classes})
	if err != nil {
		return nil, fmt.Errorf("starting a cluster: %w", err)
	}
	return running, nil
}

// folder makes one for a cluster, and its class file.
func (b *bench) folder(scheme string) (state, classes string, err error) {
	folder, err := os.MkdirTemp(b.directory, "cluster-")
	if err != nil {
		return "", "", err
	}
	classes = filepath.Join(folder, "classes.yaml")
	text := fmt.Sprintf("classes:\n- {name: default, ladder: 'rep(3),rs(3,2)', default: '%s', prefixes: ['']}\n", scheme)
	return filepath.Join(folder, "state"), classes, os.WriteFile(classes, []byte(text), 0o600)
}

// earlier runs a cluster of the earlier program, which is not started as those of now are, and returns the address of its gateway.
func (b *bench) earlier(ctx context.Context) (address string, stop func() error, err error) {
	state, classes, err := b.folder("rep(3)")
	if err != nil {
		return "", nil, err
	}
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	address = net.JoinHostPort("127.0.0.1", port)
	command := exec.Command(b.before, "up", "--store", "redis", "--agents", strconv.Itoa(agents), "--no-operator", "--dir", state,
		"--classes", classes, "--listen", address)
	if err := command.Start(); err != nil {
		return "", nil, fmt.Errorf("starting the earlier program: %w", err)
	}
	stop = func() error { return errors.Join(command.Process.Signal(os.Interrupt), command.Wait()) }
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for ctx.Err() == nil {
		answer, err := http.Get("http://" + address + "/readyz")
		if err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK {
			return address, stop, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return "", nil, errors.Join(fmt.Errorf("the earlier program does not serve at %s", address), stop())
}

// target is something that is loaded.
type target struct {
	name string
	run  func() (perSecond, p50 float64, err error)
}

// rates are what the rounds of one target came to.
type rates struct{ perSecond, p50 []float64 }

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// row is what a table has of one kind of load: of our own first, and of the peers.
type row struct {
	protocol, what string
	names          []string
	rates          map[string]*rates
}

// compare loads targets one after the other, in every round.
func (b *bench) compare(protocol, what string, targets []target) (row, error) {
	r := row{protocol: protocol, what: what, rates: map[string]*rates{}}
	for range b.rounds {
		for _, t := range targets {
			perSecond, p50, err := t.run()
			if err != nil {
				return r, fmt.Errorf("%s, %s, %s: %w", protocol, what, t.name, err)
			}
			if r.rates[t.name] == nil {
				r.rates[t.name] = &rates{}
				r.names = append(r.names, t.name)
			}
			r.rates[t.name].perSecond = append(r.rates[t.name].perSecond, perSecond)
			r.rates[t.name].p50 = append(r.rates[t.name].p50, p50)
			b.say("%s, %s: %s %.0f a second", protocol, what, t.name, perSecond)
		}
	}
	return r, nil
}

// loads of Redis, in this order.
var loads = []struct {
	name string
	load
}{
	{"get 1 KiB, 50 clients", load{50, 1, 1 << 10, false}},
	{"get 1 KiB, 50 clients, 16 deep", load{50, 16, 1 << 10, false}},
	{"get 1 KiB, 1 client", load{1, 1, 1 << 10, false}},
	{"get 4 KiB, 50 clients", load{50, 1, 4 << 10, false}},
	{"set 1 KiB, 50 clients", load{50, 1, 1 << 10, true}},
}

func (b *bench) redis(ctx context.Context) (rows []row, err error) {
	for _, scheme := range []string{"rep(3)", "rs(3,2)"} {
		running, err := b.cluster(ctx, launch.StoreRedis, scheme)
		if err != nil {
			return nil, err
		}
		part, err := b.redisRows(ctx, running, scheme)
		if err = errors.Join(err, running.Stop()); err != nil {
			return nil, err
		}
		rows = append(rows, part...)
	}
	return rows, nil
}

func (b *bench) redisRows(ctx context.Context, running *launch.Cluster, scheme string) (rows []row, err error) {
	filled := 0
	for _, one := range loads {
		if filled != one.bytes {
			if err := b.refill(ctx, running.Gateway(), one.bytes); err != nil {
				return nil, err
			}
			filled = one.bytes
		}
		at := func(address string) func() (float64, float64, error) {
			return func() (float64, float64, error) { return redisLoad(ctx, address, one.load, b.seconds) }
		}
		targets := []target{{"gateway", at(running.Redis())}, {"Redis", at(b.peers.redis)}}
		if b.peers.hasProxy() {
			targets = append(targets, target{"twemproxy", at(b.peers.redisProxy)})
		}
		r, err := b.compare("Redis", scheme+", "+one.name, targets)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// refill puts all keys with values of a size, over HTTP and into the Redis beside.
func (b *bench) refill(ctx context.Context, address string, size int) error {
	gateway, err := client.New(address)
	if err != nil {
		return err
	}
	defer gateway.Close()
	b.say("putting %d values of %d bytes", keys, size)
	err = fill(ctx, func(ctx context.Context, key string, value []byte) error {
		_, err := gateway.Put(ctx, key, strings.NewReader(string(value)), client.PutOptions{Size: int64(size), SizeKnown: true})
		return err
	}, size)
	if err == nil {
		err = fill(ctx, redisPut(b.peers.redis), size)
	}
	return err
}

func (b *bench) memcached(ctx context.Context) (rows []row, err error) {
	running, err := b.cluster(ctx, launch.StoreMemcached, "rep(3)")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, running.Stop()) }()
	for _, size := range []int{1 << 10, 4 << 10} {
		if err := b.refill(ctx, running.Gateway(), size); err != nil {
			return nil, err
		}
		if err := fill(ctx, memcachedPut(b.peers.memcached), size); err != nil {
			return nil, err
		}
		at := func(address string) func() (float64, float64, error) {
			return func() (float64, float64, error) { return connLoad(ctx, 50, b.seconds, memcachedGets(address)) }
		}
		targets := []target{{"gateway", at(running.Memcached())}, {"memcached", at(b.peers.memcached)}}
		if b.peers.hasProxy() {
			targets = append(targets, target{"twemproxy", at(b.peers.memcachedProxy)})
		}
		r, err := b.compare("memcached", fmt.Sprintf("rep(3), get %d KiB, 50 clients", size>>10), targets)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (b *bench) http(ctx context.Context) (rows []row, err error) {
	running, err := b.cluster(ctx, launch.StoreRedis, "rep(3)")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, running.Stop()) }()
	addresses := map[string]string{"gateway": running.Gateway()}
	names := []string{"gateway"}
	if b.before != "" {
		address, stop, failure := b.earlier(ctx)
		if failure != nil {
			return nil, failure
		}
		defer func() { err = errors.Join(err, stop()) }()
		addresses["an earlier commit"] = address
		names = append(names, "an earlier commit")
	}
	for _, name := range names {
		if err := b.refill(ctx, addresses[name], 1<<10); err != nil {
			return nil, err
		}
	}
	for _, clients := range []int{50, 1} {
		var targets []target
		for _, name := range names {
			targets = append(targets, target{name, func() (float64, float64, error) {
				return connLoad(ctx, clients, b.seconds, httpGets(addresses[name]))
			}})
		}
		r, err := b.compare("HTTP", fmt.Sprintf("rep(3), get 1 KiB, %d clients", clients), targets)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

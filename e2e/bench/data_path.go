//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/e2e/bench/gauge"
)

const (
	dataPathAgents  = 14 // what the widest scheme below needs
	dataPathObjects = 64
	dataPathBytes   = 1 << 20 // of one object
)

// The ways an object is kept: plain is the peer.
const plainWay = "plain"

var protectedWays = []string{"rep(3)", "rs(4,2)", "rs(12,2)"}

// pass is all objects written or read in one way, several times where once would be too short to measure.
type pass struct {
	store     launch.StoreKind
	operation string // put or get
	way       string
	round     int
	repeats   int // how often every object was carried
	elapsed   time.Duration
	latencies []time.Duration
	cpu       cpuShares
	loopback  int64 // bytes the loopback device moved, headers included
}

// cpuShares is CPU time by where it was used.
type cpuShares struct{ client, gateway, agents, stores time.Duration }

func (c cpuShares) minus(other cpuShares) cpuShares {
	return cpuShares{c.client - other.client, c.gateway - other.gateway, c.agents - other.agents, c.stores - other.stores}
}

// dataPathResults are the passes and the memory under a flood of large objects.
type dataPathResults struct {
	passes   []pass
	memories []storeMemory
	profiles []profile
	flood    []floodResult
}

type storeMemory struct {
	store launch.StoreKind
	peak  memory
}

// dataPath measures puts and gets over every kind of store, and the gateway's memory.
func (b *bench) dataPath(ctx context.Context) (results dataPathResults, err error) {
	objects, err := newCorpus(dataPathObjects, dataPathBytes)
	if err != nil {
		return results, err
	}
	for _, kind := range b.options.stores {
		if err := b.storeDataPath(ctx, kind, objects, &results); err != nil {
			return results, fmt.Errorf("over %s: %w", kind, err)
		}
	}
	if results.profiles, err = b.profiles(ctx, objects); err != nil {
		return results, err
	}
	results.flood, err = b.flood(ctx)
	return results, err
}

func (b *bench) storeDataPath(ctx context.Context, kind launch.StoreKind, objects corpus, results *dataPathResults) (err error) {
	b.say("%s: starting %d servers and agents and a gateway", kind, dataPathAgents)
	local, err := b.startLocal(ctx, kind)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.stop()) }()
	for round := -1; round < b.options.passes; round++ { // round -1 warms up
		for i := range len(protectedWays) + 1 {
			way := append([]string{plainWay}, protectedWays...)[(i+max(round, 0))%(len(protectedWays)+1)]
			for _, operation := range []string{"put", "get"} {
				one := pass{store: kind, operation: operation, way: way, round: round}
				if err := b.pass(ctx, local, &one, objects); err != nil {
					return fmt.Errorf("%s %s: %w", operation, way, err)
				}
				if round >= 0 {
					results.passes = append(results.passes, one)
				}
			}
		}
	}
	peak, err := local.memory()
	results.memories = append(results.memories, storeMemory{kind, peak})
	return err
}

// local is a cluster on loopback, as `restripe up` runs it.
type local struct {
	*launch.Cluster
	kind    launch.StoreKind
	gateway *client.Client
	state   string
}

func (b *bench) startLocal(ctx context.Context, kind launch.StoreKind) (*local, error) {
	state, err := b.directory(string(kind))
	if err != nil {
		return nil, err
	}
	running, err := launch.Start(ctx, launch.Options{
		Directory: state, Binary: b.binary, Store: kind, Agents: dataPathAgents, GatewayArguments: []string{"--cache", "0"},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the cluster: %w", err), os.RemoveAll(state))
	}
	gateway, err := client.New(running.Gateway())
	if err != nil {
		return nil, errors.Join(err, running.Stop(), os.RemoveAll(state))
	}
	return &local{Cluster: running, kind: kind, gateway: gateway, state: state}, nil
}

func (l *local) stop() error {
	l.gateway.Close()
	return errors.Join(l.Stop(), os.RemoveAll(l.state))
}

// stores returns the addresses of the servers.
func (l *local) stores() []string {
	var addresses []string
	for _, member := range l.Members() {
		_, address, _ := strings.Cut(member.Store, "://")
		addresses = append(addresses, address)
	}
	return addresses
}

// cpu returns the CPU time used so far.
func (l *local) cpu() (shares cpuShares, err error) {
	if shares.client, err = ownTime(); err != nil {
		return shares, err
	}
	for name, pid := range l.Pids() {
		used, err := processTime(pid)
		if err != nil {
			return shares, fmt.Errorf("%s: %w", name, err)
		}
		switch {
		case name == launch.GatewayName:
			shares.gateway += used
		case strings.HasSuffix(name, launch.StoreName("")):
			shares.stores += used
		default:
			shares.agents += used
		}
	}
	return shares, nil
}

func (l *local) memory() (m memory, err error) {
	for name, pid := range l.Pids() {
		peak, err := gauge.Peak(pid)
		switch {
		case err != nil:
			return m, fmt.Errorf("%s: %w", name, err)
		case name == launch.GatewayName:
			m.gateway = peak
		case !strings.HasSuffix(name, launch.StoreName("")):
			m.agent = max(m.agent, peak)
		}
	}
	return m, nil
}

// carrier puts and gets objects. Slices stay the caller's.
type carrier interface {
	set(ctx context.Context, key string, data []byte) error
	get(ctx context.Context, key string, data []byte) error // fills data, which is as long as the object
	close() error
}

// protectedClient goes through the gateway.
type protectedClient struct {
	gateway *client.Client
	scheme  string
}

func (c protectedClient) set(ctx context.Context, key string, data []byte) error {
	_, err := c.gateway.Put(ctx, key, bytes.NewReader(data), client.PutOptions{Scheme: c.scheme, Size: int64(len(data)), SizeKnown: true})
	return err
}

func (c protectedClient) get(ctx context.Context, key string, data []byte) (err error) {
	content, err := c.gateway.Get(ctx, key, client.Range{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	if content.Length != int64(len(data)) {
		return fmt.Errorf("getting %s: %d bytes, want %d", key, content.Length, len(data))
	}
	_, err = io.ReadFull(content, data)
	return err
}

func (c protectedClient) close() error { return nil }

// pass carries all objects once and fills in what that took.
func (b *bench) pass(ctx context.Context, l *local, one *pass, objects corpus) error {
	carriers := make([]carrier, b.options.concurrency)
	defer func() {
		for _, c := range carriers {
			if c != nil {
				_ = c.close() // what was measured is over; the servers are stopped later
			}
		}
	}()
	for i := range carriers {
		carriers[i] = protectedClient{l.gateway, one.way}
		if one.way == plainWay {
			var err error
			if carriers[i], err = newPlainClient(ctx, one.store, l.stores()); err != nil {
				return err
			}
		}
	}
	before, err := countDevices()
	if err != nil {
		return err
	}
	cpu, err := l.cpu()
	if err != nil {
		return err
	}
	one.repeats = repeats(one.way, one.operation)
	began := time.Now()
	if err := carryAll(ctx, carriers, one, objects); err != nil {
		return err
	}
	one.elapsed = time.Since(began)
	used, err := l.cpu()
	if err != nil {
		return err
	}
	after, err := countDevices()
	if err != nil {
		return err
	}
	one.cpu = used.minus(cpu)
	one.loopback = after["lo"].sent.minus(before["lo"].sent).bytes
	b.say("%-9s round %d  %s %-8s %6.0f MB/s", one.store, one.round+1, one.operation, one.way, one.rate())
	return nil
}

// repeats lets a pass of gets take about as long as one of puts. Puts are made once, under new keys in every round, so
// that all ways alike write to memory that the servers have not used before.
func repeats(way, operation string) int {
	switch {
	case operation == "put":
		return 1
	case way == plainWay:
		return 8
	}
	return 3
}

// bytes is the user data carried.
func (p *pass) bytes() int64 { return int64(p.repeats) * dataPathObjects * dataPathBytes }

// rate is user bytes over time, in megabytes per second.
func (p *pass) rate() float64 { return float64(p.bytes()) / 1e6 / p.elapsed.Seconds() }

// carryAll carries all objects as often as the pass repeats them, every carrier the next one that is left, and notes how
// long each took.
func carryAll(ctx context.Context, carriers []carrier, one *pass, objects corpus) error {
	one.latencies = make([]time.Duration, one.repeats*len(objects))
	prefix := fmt.Sprintf("%s/%d/", one.way, one.round+1)
	workers, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for _, c := range carriers {
		workers.Go(func() error {
			buffer := make([]byte, dataPathBytes)
			for {
				turn := int(next.Add(1)) - 1
				if turn >= len(one.latencies) {
					return nil
				}
				i := turn % len(objects)
				began := time.Now()
				var err error
				if one.operation == "put" {
					err = c.set(ctx, keyOf(prefix, i), objects[i])
				} else {
					err = c.get(ctx, keyOf(prefix, i), buffer)
				}
				if err != nil {
					return err
				}
				one.latencies[turn] = time.Since(began)
				if one.operation == "get" && !bytes.Equal(buffer, objects[i]) {
					return fmt.Errorf("getting %s: %w", keyOf(prefix, i), errDifferent)
				}
			}
		})
	}
	return workers.Wait()
}

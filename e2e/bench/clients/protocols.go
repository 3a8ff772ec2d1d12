package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/restripe/restripe/agent/launch"
)

// The part protocols measures gets and sets of 10,000 keys by each protocol.
const protocolLadder = "rep(3),rs(3,2)"

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

var (
	protocolSchemes  = []string{"rep(3)", "rs(3,2)"}
	memcachedSizes   = []int{1 << 10, 4 << 10}
	httpClients      = []int{50, 1}
	redisName        = "Redis"
	memcachedName    = "memcached"
	proxyName        = "twemproxy"
	manyName         = fmt.Sprintf("twemproxy over %d", agents)
	gatewayName      = "gateway"
	coldName         = "gateway, --cache 0"
	gatewayRedisName = "gateway by RESP"
)

// protocolRows are the rows of each protocol.
type protocolRows struct {
	hasProxy               bool
	redis, memcached, http []row
}

// protocolTargets is how often something is loaded in a round.
func (b *bench) protocolTargets() int {
	proxies := 0
	if b.peers.hasProxy() {
		proxies = 2
	}
	earlier := 0
	if b.before != "" {
		earlier = 1
	}
	return len(protocolSchemes)*len(loads)*(3+proxies) + len(memcachedSizes)*(3+proxies) + len(httpClients)*(3+earlier)
}

func (b *bench) protocols(ctx context.Context) (rows protocolRows, err error) {
	rows.hasProxy = b.peers.hasProxy()
	for _, scheme := range protocolSchemes {
		part, err := b.redisRows(ctx, scheme)
		if err != nil {
			return rows, err
		}
		rows.redis = append(rows.redis, part...)
	}
	if rows.memcached, err = b.memcachedRows(ctx); err != nil {
		return rows, err
	}
	rows.http, err = b.httpRows(ctx)
	return rows, err
}

// refill has values of a size put into servers.
func (b *bench) refill(size int, into ...connector) error {
	b.say("putting %d values of %d bytes", keys, size)
	for _, connect := range into {
		if err := fill(connect, size); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) redisRows(ctx context.Context, scheme string) (rows []row, err error) {
	c, err := b.start(ctx, launch.StoreRedis, byDefault(protocolLadder, scheme))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	cold, err := b.startCold(ctx, launch.StoreRedis, byDefault(protocolLadder, scheme))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cold.stop()) }()
	filled := 0
	for _, one := range loads {
		if filled != one.bytes {
			servers := []connector{redisAt(c.redis), redisAt(cold.redis), redisAt(b.peers.redis)}
			if b.peers.hasProxy() {
				servers = append(servers, redisAt(b.peers.redisMany))
			}
			if err := b.refill(one.bytes, servers...); err != nil {
				return nil, err
			}
			filled = one.bytes
		}
		at := func(address string) func(context.Context, int) (outcome, error) {
			return func(ctx context.Context, _ int) (outcome, error) { return redisLoad(ctx, address, one.load, b.seconds) }
		}
		targets := []target{
			c.target(gatewayName, at(c.redis)), cold.target(coldName, at(cold.redis)),
			b.peers.target(redisName, b.peers.redis, at(b.peers.redis)),
		}
		if b.peers.hasProxy() {
			targets = append(targets, b.peers.target(proxyName, b.peers.redisProxy, at(b.peers.redisProxy)),
				b.peers.target(manyName, b.peers.redisMany, at(b.peers.redisMany)))
		}
		r, err := b.compare(ctx, scheme+", "+one.name, targets)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (b *bench) memcachedRows(ctx context.Context) (rows []row, err error) {
	c, err := b.start(ctx, launch.StoreMemcached, byDefault(protocolLadder, "rep(3)"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	cold, err := b.startCold(ctx, launch.StoreMemcached, byDefault(protocolLadder, "rep(3)"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cold.stop()) }()
	for _, size := range memcachedSizes {
		servers := []connector{memcachedAt(c.memcached), memcachedAt(cold.memcached), memcachedAt(b.peers.memcached)}
		if b.peers.hasProxy() {
			servers = append(servers, memcachedAt(b.peers.memcachedMany))
		}
		if err := b.refill(size, servers...); err != nil {
			return nil, err
		}
		at := func(address string) func(context.Context, int) (outcome, error) {
			return func(ctx context.Context, _ int) (outcome, error) {
				return gets(ctx, 50, b.seconds, size, memcachedAt(address))
			}
		}
		targets := []target{
			c.target(gatewayName, at(c.memcached)), cold.target(coldName, at(cold.memcached)),
			b.peers.target(memcachedName, b.peers.memcached, at(b.peers.memcached)),
		}
		if b.peers.hasProxy() {
			targets = append(targets, b.peers.target(proxyName, b.peers.memcachedProxy, at(b.peers.memcachedProxy)),
				b.peers.target(manyName, b.peers.memcachedMany, at(b.peers.memcachedMany)))
		}
		r, err := b.compare(ctx, fmt.Sprintf("rep(3), get %d KiB, 50 clients", size>>10), targets)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (b *bench) httpRows(ctx context.Context) (rows []row, err error) {
	class := byDefault(protocolLadder, "rep(3)")
	c, err := b.start(ctx, launch.StoreRedis, class)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	cold, err := b.startCold(ctx, launch.StoreRedis, class)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cold.stop()) }()
	const size = 1 << 10
	asked := []struct {
		name    string
		of      *cluster
		connect connector
	}{{gatewayName, c, httpAt(c.http)}, {gatewayRedisName, c, redisAt(c.redis)}, {coldName, cold, httpAt(cold.http)}}
	if err := b.refill(size, httpAt(c.http), httpAt(cold.http)); err != nil {
		return nil, err
	}
	if b.before != "" {
		old, failure := b.earlier(ctx, launch.StoreRedis, class)
		if failure != nil {
			return nil, failure
		}
		defer func() { err = errors.Join(err, old.stop()) }()
		if err := b.refill(size, httpAt(old.http)); err != nil {
			return nil, err
		}
		asked = append(asked, asked[0])
		last := &asked[len(asked)-1]
		last.name, last.of, last.connect = old.name, old, httpAt(old.http)
	}
	for _, clients := range httpClients {
		var targets []target
		for _, one := range asked {
			targets = append(targets, one.of.target(one.name, func(ctx context.Context, _ int) (outcome, error) {
				return gets(ctx, clients, b.seconds, size, one.connect)
			}))
		}
		r, err := b.compare(ctx, fmt.Sprintf("rep(3), get 1 KiB, %d clients", clients), targets)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (b *bench) reportProtocols(r protocolRows) string {
	t := newText("## Gets and sets by protocol")
	t.prose("Redis is loaded by `redis-benchmark`, keys drawn from %d; memcached and HTTP by clients in Go. Peers are a plain Redis and a "+
		"plain memcached, and twemproxy before each, and before as many of them as the cluster has nodes, %d; of HTTP the same gateway by "+
		"RESP, with the same clients, and an earlier commit where one was given (`BEFORE=`). A gateway keeps in memory what is "+
		"read often or lately, here all values; one with "+
		"`--cache 0` asks the stores for each.", keys, agents)
	if !r.hasProxy {
		t.say("twemproxy was not installed (`nutcracker` in Debian).")
	}
	t.table("Redis", r.redis, redisName, proxyName, manyName)
	t.table("memcached", r.memcached, memcachedName, proxyName, manyName)
	t.table("HTTP", r.http, gatewayRedisName, earlierName)
	return t.String()
}

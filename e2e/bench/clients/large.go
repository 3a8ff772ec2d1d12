package main

import (
	"context"
	"errors"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/launch"
)

// The part large has clients put and get objects of 1 MiB, over directories and over memcached.
const (
	largeScheme  = "rs(4,2)"
	largeSize    = valueMost
	largeClients = 8
	largeObjects = 64
)

var largeStores = []launch.StoreKind{launch.StoreFile, launch.StoreMemcached}

// largeDoors are the protocols by which large objects are asked for. Another one is another line.
var largeDoors = []struct {
	name string
	at   func(c *cluster) (connector, bool) // false: this program does not have it
}{
	{"HTTP", func(c *cluster) (connector, bool) { return httpAt(c.http), true }},
}

// largeLoad is a server that is asked for large objects.
type largeLoad struct {
	name    string
	front   int   // its process that clients speak to
	behind  []int // the others
	connect connector
	book    *ledger
}

// largeRow is one kind of load: bytes, and what gateway, agents and stores took of the processors for them.
type largeRow struct {
	row
	others map[string][]time.Duration // processor time of agents and stores, by target, for each round
}

func (b *bench) largeTargets() int {
	targets := len(largeDoors) + 1
	if b.before != "" {
		targets += len(largeDoors)
	}
	return len(largeStores) * 2 * targets
}

func (b *bench) large(ctx context.Context) (rows []largeRow, err error) {
	for _, store := range largeStores {
		part, err := b.largeOver(ctx, store)
		if err != nil {
			return nil, err
		}
		rows = append(rows, part...)
	}
	return rows, nil
}

func (b *bench) largeOver(ctx context.Context, store launch.StoreKind) (rows []largeRow, err error) {
	class := api.ClassSpec{Name: "default", Ladder: largeScheme, Prefixes: []string{""}}
	now, err := b.start(ctx, store, class)
	if err != nil {
		return nil, err
	}
	clusters := []*cluster{now}
	defer func() {
		for _, c := range clusters {
			err = errors.Join(err, c.stop())
		}
	}()
	if b.before != "" {
		old, err := b.earlier(ctx, store, class)
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, old)
	}
	plain := newLedger("large/", largeObjects, largeSize)
	if err := plain.fill(redisAt(b.peers.redis)); err != nil {
		return nil, err
	}
	var asked []largeLoad
	for _, c := range clusters {
		for _, door := range largeDoors {
			connect, has := door.at(c)
			if !has {
				continue
			}
			book := newLedger("large-"+door.name+"/", largeObjects, largeSize)
			b.say("putting %d objects of 1 MiB by %s", largeObjects, door.name)
			if err := book.fill(connect); err != nil {
				return nil, err
			}
			asked = append(asked, largeLoad{c.name + " by " + door.name, c.gateway, without(c.processes, c.gateway), connect, book})
		}
	}
	asked = append(asked, largeLoad{redisName, b.peers.pids[b.peers.redis], nil, redisAt(b.peers.redis), plain})
	return b.loadLarge(ctx, "over "+storeWords[store], asked)
}

// loadLarge has clients get objects of all, and then put them.
func (b *bench) loadLarge(ctx context.Context, where string, asked []largeLoad) (rows []largeRow, err error) {
	for _, reads := range []int{100, 0} {
		w := workload{distributions[0], reads, largeSize}
		kind := map[int]string{100: "get", 0: "put"}[reads]
		r := largeRow{others: map[string][]time.Duration{}}
		var targets []target
		for _, one := range asked {
			load := func(ctx context.Context, round int) (o outcome, err error) {
				before, err := processorTime(one.behind)
				if err != nil {
					return o, err
				}
				if o, err = b.ycsbRun(ctx, w, one.book, largeClients, round, one.connect, nil); err != nil {
					return o, err
				}
				after, err := processorTime(one.behind)
				if one.behind != nil {
					r.others[one.name] = append(r.others[one.name], after-before)
				}
				return o, err
			}
			targets = append(targets, target{one.name, one.front, []int{one.front}, load})
		}
		if r.row, err = b.compare(ctx, kind+", "+where, targets); err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

var storeWords = map[launch.StoreKind]string{launch.StoreFile: "directories", launch.StoreMemcached: "memcached"}

func (b *bench) reportLarge(rows []largeRow) string {
	t := newText("## Large objects")
	t.prose("%d clients get and put objects of 1 MiB under %s, each with a connection of its own, among %d of them that are there; what is "+
		"read is verified. Processor is the time for 1 MiB of objects: of the gateway, of all agents and stores, and of both. The peers are "+
		"an earlier commit, where one was given (`BEFORE=`), and a plain Redis, which is asked by RESP.", largeClients, largeScheme, largeObjects)
	t.say("")
	earlier := ""
	for i := range rows {
		for _, name := range rows[i].names {
			if len(name) > len(earlierName) && name[:len(earlierName)] == earlierName {
				earlier = name
			}
		}
	}
	t.say("| load | | MiB a second | to Redis | to an earlier commit | p50 ms | p99 | gateway, ms for 1 MiB | agents and stores | both " +
		"| to an earlier commit | memory of the gateway MiB |\n|---|---|---|---|---|---|---|---|---|---|---|---|")
	for i := range rows {
		r := &rows[i]
		for _, name := range r.names {
			toEarlier, processorToEarlier := "-", "-"
			if earlier != "" && name != earlier && name != redisName {
				toEarlier = number("%.2f", r.ratio(name, earlier, perSecond))
				processorToEarlier = number("%.2f", median(r.bothOf(name))/median(r.bothOf(earlier)))
			}
			toRedis := "-"
			if name != redisName {
				toRedis = number("%.2f", r.ratio(name, redisName, perSecond))
			}
			t.say("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |", r.what, name, spread("%.0f", r.values(name, perSecond)), toRedis,
				toEarlier, number("%.1f", r.median(name, p50)), number("%.1f", r.median(name, func(r *round) float64 { return r.all.p99 })),
				number("%.2f", r.median(name, processorOfMebibyte)), number("%.2f", median(r.behind(name))),
				number("%.2f", median(r.bothOf(name))), processorToEarlier,
				mebibytes(highest(r.values(name, peakOf))))
		}
	}
	return t.String()
}

// processorOfMebibyte is the milliseconds of the process that clients speak to, for 1 MiB.
func processorOfMebibyte(r *round) float64 {
	return milliseconds(r.processor) / float64(max(1, r.operations))
}

// behind are the milliseconds of the processes behind it, for 1 MiB; none where there are none.
func (r *largeRow) behind(name string) (list []float64) {
	for number, took := range r.others[name] {
		list = append(list, milliseconds(took)/float64(max(1, r.rounds[name][number].operations)))
	}
	return list
}

// bothOf are the milliseconds of all processes of a server, for 1 MiB.
func (r *largeRow) bothOf(name string) []float64 {
	list := r.values(name, processorOfMebibyte)
	for number, each := range r.behind(name) {
		list[number] += each
	}
	return list
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/launch"
)

// The part ycsb has clients read and update records as the Yahoo! Cloud Serving Benchmark does (B. Cooper et al., "Benchmarking Cloud
// Serving Systems with YCSB", SoCC 2010), and verifies every value that is read.
var (
	ycsbSchemes = []string{"rep(3)", "rs(3,2)", "rs(6,3)"} // the codes are those that TriEC compares, as far as 9 nodes have room
	ycsbReads   = []int{50, 95, 100}                       // percent; the rest updates
	ycsbSizes   = []int{1 << 10, 4 << 10, 16 << 10}
)

// workload is what the clients of YCSB do.
type workload struct {
	keys  distribution
	reads int // percent
	bytes int
}

func (w workload) String() string {
	return fmt.Sprintf("%s, %d:%d, %d KiB", w.keys.name, w.reads, 100-w.reads, w.bytes>>10)
}

// ycsbWorkloads are all distributions at the smallest size, and all sizes by the heaviest distribution, in the order of sizes.
func ycsbWorkloads() (list []workload) {
	for i, size := range ycsbSizes {
		for _, keys := range distributions {
			for _, reads := range ycsbReads {
				if i == 0 || keys == heavy {
					list = append(list, workload{keys, reads, size})
				}
			}
		}
	}
	return list
}

// prefixOf begins the keys of a class for a scheme, without what would have to be escaped.
func prefixOf(scheme string) string {
	return strings.NewReplacer("(", "", ")", "", ",", "-").Replace(scheme) + "/"
}

// classOf is a class for a scheme alone.
func classOf(scheme string) api.ClassSpec {
	prefix := prefixOf(scheme)
	return api.ClassSpec{Name: strings.TrimSuffix(prefix, "/"), Ladder: scheme, Prefixes: []string{prefix}}
}

// ycsbRun has clients do a workload. In a round they always draw the same.
func (b *bench) ycsbRun(
	ctx context.Context, w workload, l *ledger, clients, round int, connect connector, eraser *eraser,
) (outcome, error) {
	draw := w.keys.drawer(len(l.records))
	type state struct {
		random *rand.Rand
		buffer []byte
	}
	states := make([]state, clients)
	for i := range states {
		states[i].random = rand.New(rand.NewPCG(uint64(round), uint64(i)))
	}
	return forSeconds(ctx, clients, b.seconds, connect, func(s session, client, _ int) (took time.Duration, wrote bool, err error) {
		own := &states[client]
		record, reads := draw(own.random), own.random.IntN(100) < w.reads
		if !reads {
			began := time.Now()
			own.buffer, err = l.write(record, own.buffer, func(key string, value []byte) error {
				began = time.Now() // the value was there to be sent
				return s.set(key, value)
			})
			return time.Since(began), true, err
		}
		var lost *erasure
		if eraser != nil {
			if lost, err = eraser.beforeRead(ctx, l.key(record)); err != nil {
				return 0, false, err
			}
		}
		newest, began := l.asOf(record), time.Now()
		value, err := s.get(l.key(record))
		took = time.Since(began)
		if err == nil {
			err = l.judge(record, value, newest)
		}
		if err == nil && lost != nil {
			err = eraser.afterRead(ctx, lost, took)
		}
		return took, false, err
	})
}

func (b *bench) ycsbTargets() int {
	targets := len(ycsbSchemes) + 1
	if b.overHTTP {
		targets += len(ycsbSchemes)
	}
	return len(ycsbWorkloads()) * targets
}

func (b *bench) ycsb(ctx context.Context) (rows []row, err error) {
	var classes []api.ClassSpec
	for _, scheme := range ycsbSchemes {
		classes = append(classes, classOf(scheme))
	}
	c, err := b.start(ctx, launch.StoreRedis, classes...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	size := 0
	var books []*ledger // of the schemes, and of the peer
	for _, w := range ycsbWorkloads() {
		if w.bytes != size {
			size = w.bytes
			b.say("putting %d records of %d bytes under each of %d schemes", b.records, size, len(ycsbSchemes))
			books = nil
			for _, scheme := range ycsbSchemes {
				books = append(books, newLedger(prefixOf(scheme), b.records, size))
			}
			books = append(books, newLedger("", b.records, size))
			for i, book := range books {
				address := c.redis
				if i == len(ycsbSchemes) {
					address = b.peers.redis
				}
				if err := book.fill(redisAt(address)); err != nil {
					return nil, err
				}
			}
		}
		with := func(book *ledger, connect connector) func(context.Context, int) (outcome, error) {
			return func(ctx context.Context, round int) (outcome, error) {
				return b.ycsbRun(ctx, w, book, b.clients, round, connect, nil)
			}
		}
		var targets []target
		for i, scheme := range ycsbSchemes {
			targets = append(targets, c.target(scheme, with(books[i], redisAt(c.redis))))
			if b.overHTTP {
				targets = append(targets, c.target(scheme+" by HTTP", with(books[i], httpAt(c.http))))
			}
		}
		targets = append(targets, b.peers.target(redisName, b.peers.redis, with(books[len(ycsbSchemes)], redisAt(b.peers.redis))))
		r, err := b.compare(ctx, w.String(), targets)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (b *bench) reportYCSB(rows []row) string {
	t := newText("## YCSB")
	t.prose("%d records, read and updated as a whole by %d clients over RESP, in shares of reads to updates. Keys are drawn evenly, or by a "+
		"Zipf distribution whose ranks are scrambled over the records as in YCSB; %s is its own. Each scheme is a class of one gateway, and "+
		"the peer the same workload on a plain Redis. Compaction of what updates leave dead runs as it does by default, in the same time.",
		b.records, b.clients, heavy.name)
	t.say("")
	t.prose("Every value was verified: its bytes follow from its record and its version, and a read returned a version that had been " +
		"written, and none that had been overwritten, by whichever client, before the read began. A run " +
		"in which one did not ends with that error.")
	t.table("workload", rows, redisName)
	return t.String()
}

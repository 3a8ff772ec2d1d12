package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/e2e/bench/gauge"
)

// The part memory looks at what connections of clients take of a gateway: many that are idle, and many that are busy.
const (
	memoryRecords = 2000
	memoryLeast   = 1 << 10
	memoryMost    = 64 << 10
)

// door is a protocol, with its gateway and its peer, neither of which served anything before.
type door struct {
	name            string
	cluster         *cluster
	gateway, server connector
	serverPID       int
}

// idleRow is what idle connections took of a process.
type idleRow struct {
	protocol, name string
	connections    int
	before, with   int64 // resident bytes
	after          int64 // when they were closed
}

func (r *idleRow) each() float64 { return float64(r.with-r.before) / float64(max(1, r.connections)) }

// memoryRows are what the part measured.
type memoryRows struct {
	idle []idleRow
	busy []row
	open int // connections that were wanted idle
}

func (b *bench) memoryTargets() int { return 2 * 2 }

func (b *bench) memory(ctx context.Context) (rows memoryRows, err error) {
	rows.open = b.idle
	if limit := int(b.files) - 1000; limit < rows.open {
		rows.open = max(1, limit)
		b.say("the limit of open files is %d: %d connections instead of %d; raise it (ulimit -n) for more", b.files, rows.open, b.idle)
	}
	for _, protocol := range []string{redisName, memcachedName} {
		if err := b.memoryBy(ctx, protocol, &rows); err != nil {
			return rows, fmt.Errorf("%s: %w", protocol, err)
		}
	}
	return rows, nil
}

// memoryBy measures one protocol, before servers of its own: what others had asked of them would be in their memory.
func (b *bench) memoryBy(ctx context.Context, protocol string, rows *memoryRows) (err error) {
	c, err := b.start(ctx, launch.StoreRedis, byDefault(protocolLadder, "rep(3)"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	folder, err := os.MkdirTemp(b.directory, "peers-")
	if err != nil {
		return err
	}
	var own peers
	defer func() { err = errors.Join(err, own.stop()) }()
	if err := own.start(ctx, folder); err != nil {
		return err
	}
	d := door{protocol, c, redisAt(c.redis), redisAt(own.redis), own.pids[own.redis]}
	if protocol == memcachedName {
		d = door{protocol, c, memcachedAt(c.memcached), memcachedAt(own.memcached), own.pids[own.memcached]}
	}
	for _, one := range []struct {
		name    string
		connect connector
		pid     int
	}{{gatewayName, d.gateway, c.gateway}, {"plain " + protocol, d.server, d.serverPID}} {
		idle, err := b.idleAt(one.connect, one.pid, rows.open)
		if err != nil {
			return fmt.Errorf("%d idle connections to %s: %w", rows.open, one.name, err)
		}
		idle.protocol, idle.name = protocol, one.name
		b.say("%s: %s has %.0f bytes for an idle connection", protocol, one.name, idle.each())
		rows.idle = append(rows.idle, idle)
	}
	b.say("putting %d values of 1 to 64 KiB", memoryRecords)
	for _, connect := range []connector{d.gateway, d.server} {
		if err := byClients(fillers, memoryRecords, connect, func(s session, i int, buffer []byte) ([]byte, error) {
			buffer = appendValue(buffer[:0], i, 0, busySize(uint64(i)))
			return buffer, s.set(busyKey(i), buffer)
		}); err != nil {
			return err
		}
	}
	run := func(connect connector) func(context.Context, int) (outcome, error) {
		return func(ctx context.Context, round int) (outcome, error) { return b.busyAt(ctx, connect, round) }
	}
	r, err := b.compare(ctx, fmt.Sprintf("%s, %d clients, get and set, 1 to 64 KiB", protocol, b.busy), []target{
		c.target(gatewayName, run(d.gateway)), {"plain " + protocol, d.serverPID, []int{d.serverPID}, run(d.server)},
	})
	rows.busy = append(rows.busy, r)
	return err
}

// opening is how many connections are opened at a time, well below what the backlog of a listener holds.
const opening = 50

// idleAt opens connections, each of which asks for one value, and leaves them alone.
func (b *bench) idleAt(connect connector, pid, count int) (r idleRow, err error) {
	const key, size = "idle", 100
	if err := byClients(opening, 2*opening, connect, func(s session, _ int, _ []byte) ([]byte, error) {
		return nil, s.set(key, appendValue(nil, 0, 0, size))
	}); err != nil {
		return r, err
	}
	if r.before, err = gauge.Resident(pid); err != nil {
		return r, err
	}
	sessions := make([]session, count)
	var openers errgroup.Group
	openers.SetLimit(opening)
	for i := range sessions {
		openers.Go(func() error {
			s, err := connect()
			if err != nil {
				return err
			}
			sessions[i] = s
			_, err = s.get(key)
			return err
		})
	}
	err = openers.Wait()
	if err == nil {
		r.connections = count
		r.with, err = gauge.Resident(pid)
	}
	for _, s := range sessions {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	if err != nil {
		return r, err
	}
	r.after, err = gauge.Resident(pid)
	return r, err
}

// busyKey is one of the keys of the busy clients.
func busyKey(i int) string { return fmt.Sprintf("busy/%06d", i) }

// busySize draws the size of a value: as many of each number of bytes.
func busySize(seed uint64) int {
	return memoryLeast + rand.New(rand.NewPCG(seed, 17)).IntN(memoryMost-memoryLeast+1)
}

// busyAt has many clients get and set values of different sizes, as often each. Whoever reads verifies the bytes; versions are not in order
// here, as sizes change, so that it is not judged which of them is read.
func (b *bench) busyAt(ctx context.Context, connect connector, number int) (outcome, error) {
	type state struct {
		random *rand.Rand
		buffer []byte
	}
	states := make([]state, b.busy)
	for i := range states {
		states[i].random = rand.New(rand.NewPCG(uint64(number), uint64(i)))
	}
	return forSeconds(ctx, b.busy, b.seconds, connect, func(s session, client, _ int) (took time.Duration, wrote bool, err error) {
		own := &states[client]
		i, writes, version := own.random.IntN(memoryRecords), own.random.IntN(2) == 0, own.random.Uint64()>>1
		if writes {
			own.buffer = appendValue(own.buffer[:0], i, int(version), busySize(version))
			began := time.Now()
			err = s.set(busyKey(i), own.buffer)
			return time.Since(began), true, err
		}
		began := time.Now()
		value, err := s.get(busyKey(i))
		took = time.Since(began)
		if err == nil && (len(value) < memoryLeast || len(value) > memoryMost) {
			err = fmt.Errorf("%s has %d bytes, %d to %d were put", busyKey(i), len(value), memoryLeast, memoryMost)
		}
		if err == nil {
			_, err = versionOf(value, i, len(value))
		}
		return took, false, err
	})
}

func (b *bench) reportMemory(rows memoryRows) string {
	t := newText("## Memory of connections")
	t.prose("What the gateway has resident with idle connections, each of which asked for one value of 100 bytes, and what a plain server " +
		"has with as many; servers of their own for each protocol. Memory that Go's runtime keeps for later is in it, so that what is left " +
		"when they are closed goes back to the system slowly.")
	t.say("")
	if rows.open < b.idle {
		t.say("No more than %d files could be open, so that there were %d connections instead of %d.\n", b.files, rows.open, b.idle)
	}
	t.say("| protocol | | connections | MiB before | with them | bytes for a connection | to the plain server | MiB when they are closed |\n" +
		"|---|---|---|---|---|---|---|---|")
	for i := range rows.idle {
		r := &rows.idle[i]
		peer := &rows.idle[i|1] // each is followed by its peer
		ratio := "-"
		if peer != r {
			ratio = number("%.1f", r.each()/peer.each())
		}
		t.say("| %s | %s | %d | %s | %s | %.0f | %s | %s |", r.protocol, r.name, r.connections, mebibytes(float64(r.before)),
			mebibytes(float64(r.with)), r.each(), ratio, mebibytes(float64(r.after)))
	}
	t.say("")
	t.prose("Then clients that are busy: each gets and sets, as often as each other, values of 1 to 64 KiB among %d that are there. What is "+
		"read is verified.", memoryRecords)
	t.table("load", rows.busy, "plain "+redisName, "plain "+memcachedName)
	return t.String()
}

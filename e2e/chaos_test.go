package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
)

var (
	chaosSeed  = flag.Uint64("chaos.seed", 0, "seed of the kill tests; 0 draws one and prints it")
	chaosKills = flag.Int("chaos.kills", 70, "processes killed per kind of store")
)

// The classes of the kill tests: groups over 8 nodes, large objects in groups of 64 KiB.
const chaosClasses = `classes:
- name: default
  ladder: rep(3),rs(3,2),rs(6,2)
  prefixes: [""]
  packBelow: 8KiB
  groupBytes: 64KiB
`

const chaosAgents = 9

// TestKillAnything has clients write, update, read, move and delete objects while transitions run and processes are
// killed with SIGKILL at random points. Afterwards every operation must fit one order per key, every object must read
// back, every group must be whole and under one epoch, and nothing may be left over.
func TestKillAnything(t *testing.T) {
	if testing.Short() {
		t.Skip("the kill tests need minutes; -short leaves them out")
	}
	seed := *chaosSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d (repeat with -chaos.seed=%d)", seed, seed)
	for _, kind := range []launch.StoreKind{launch.StoreFile, launch.StoreMemcached, launch.StoreRedis} {
		t.Run(string(kind), func(t *testing.T) { newChaos(t, kind, seed).run() })
	}
}

type chaos struct {
	t       *testing.T
	kind    launch.StoreKind
	cluster *launch.Cluster
	client  *client.Client
	random  *rand.Rand // of the killer alone
	seed    uint64
	began   time.Time
	number  atomic.Uint32

	mutex   sync.Mutex
	history []porcupine.Operation
	counts  map[string]int
	kills   map[string]int
}

func newChaos(t *testing.T, kind launch.StoreKind, seed uint64) *chaos {
	t.Helper()
	directory := t.TempDir()
	classes := filepath.Join(directory, "given.yaml")
	if err := os.WriteFile(classes, []byte(chaosClasses), 0o644); err != nil {
		t.Fatal(err)
	}
	cluster, err := launch.Start(t.Context(), launch.Options{
		Directory: filepath.Join(directory, "cluster"), Binary: program(t), Store: kind, Agents: chaosAgents, ClassFile: classes,
		GatewayArguments: []string{"--grace", "0s"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Errorf("stopping the cluster: %v", err)
		}
		if t.Failed() {
			tails(t, filepath.Join(directory, "cluster", "logs"))
		}
	})
	connection, err := client.New(cluster.Gateway())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connection.Close)
	return &chaos{
		t: t, kind: kind, cluster: cluster, client: connection, seed: seed, random: rand.New(rand.NewPCG(seed, 0)),
		began: time.Now(), counts: map[string]int{}, kills: map[string]int{},
	}
}

// tails prints the ends of the processes' logs.
func tails(t *testing.T, directory string) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Logf("no logs: %v", err)
		return
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil || len(text) == 0 {
			continue
		}
		t.Logf("---- %s\n%s", entry.Name(), text[max(0, len(text)-3000):])
	}
}

// killsPerRound is how many processes are killed before the keys are changed, which keeps the number of operations of
// unknown outcome per key small enough to check.
const killsPerRound = 7

func (c *chaos) run() {
	done := 0
	for round := 0; done < *chaosKills; round++ {
		kills := min(killsPerRound, *chaosKills-done)
		c.round(round, kills)
		done += kills
		if c.t.Failed() {
			return
		}
	}
	c.settle()
	c.t.Logf("%s: seed %d, %d processes killed (%v), operations %v, %v", c.kind, c.seed, done, c.kills, c.counts, time.Since(c.began).Round(time.Second))
	info := porcupine.Ok
	if len(c.history) > 0 {
		info = porcupine.CheckOperationsTimeout(registerModel.ToModel(), c.history, 2*time.Minute)
	}
	switch info {
	case porcupine.Illegal:
		c.t.Errorf("the history of %d operations is not linearizable per key", len(c.history))
	case porcupine.Unknown:
		c.t.Errorf("the history of %d operations could not be checked in time", len(c.history))
	}
	for _, want := range []string{"put", "get", "update", "delete", "move", "transition"} {
		if c.counts[want] == 0 {
			c.t.Errorf("no %s succeeded: the test shows nothing", want)
		}
	}
}

// round lets clients work on fresh keys and kills processes meanwhile.
func (c *chaos) round(round, kills int) {
	ctx, stop := context.WithCancel(c.t.Context())
	defer stop()
	keys := make([]string, 8)
	for i := range keys {
		keys[i] = fmt.Sprintf("round-%d/key-%d", round, i)
	}
	var workers sync.WaitGroup
	for worker := range 6 {
		source := rand.New(rand.NewPCG(c.seed, uint64(round)<<16|uint64(worker+1)))
		workers.Go(func() {
			for ctx.Err() == nil {
				c.act(ctx, source, keys[source.IntN(len(keys))])
			}
		})
	}
	workers.Go(func() { c.transitions(ctx, round) })
	for range kills {
		// A random number of acknowledged operations and a random moment after: the kill hits any step of any operation.
		enough := c.acknowledged() + c.random.IntN(40)
		c.await("clients get on", func() bool { return c.acknowledged() >= enough })
		c.pause(time.Duration(c.random.IntN(60_000)) * time.Microsecond)
		c.kill()
	}
	c.pause(100 * time.Millisecond)
	stop()
	workers.Wait()
	c.await("every process and node is back", func() bool { return c.allUp() })
	for _, key := range keys {
		var value register
		c.await("key "+key+" reads", func() bool {
			var err error
			value, err = c.get(c.t.Context(), key)
			return err == nil
		})
		now := time.Since(c.began).Nanoseconds()
		c.record(input{key: key, action: actionGet}, output{value: value}, now, now+1)
	}
}

// pause lets the clients work for a while: it is the distance between two faults, not a wait for anything.
func (c *chaos) pause(length time.Duration) {
	select {
	case <-time.After(length):
	case <-c.t.Context().Done():
	}
}

// kill kills one process: an agent, the gateway or a store server. A memcached that is killed loses its blocks, so the
// groups are repaired before the next one may be.
func (c *chaos) kill() {
	names := c.cluster.Names()
	var agents, stores []string
	for _, name := range names {
		switch {
		case strings.HasSuffix(name, "-store"):
			stores = append(stores, name)
		case name != launch.GatewayName:
			agents = append(agents, name)
		}
	}
	victim := agents[c.random.IntN(len(agents))]
	switch draw := c.random.IntN(10); {
	case draw < 3:
		victim = launch.GatewayName
	case draw < 6 && len(stores) > 0:
		victim = stores[c.random.IntN(len(stores))]
	}
	if err := c.cluster.Halt(victim); err != nil {
		c.t.Errorf("killing %s: %v", victim, err)
		return
	}
	c.pause(time.Duration(c.random.IntN(150)) * time.Millisecond) // it stays away for a while
	if err := c.cluster.Restart(c.t.Context(), victim); err != nil {
		c.t.Errorf("starting %s again: %v", victim, err)
		return
	}
	kind := "agent"
	if victim == launch.GatewayName {
		kind = "gateway"
	} else if strings.HasSuffix(victim, "-store") {
		kind = "store"
	}
	c.mutex.Lock()
	c.kills[kind]++
	c.mutex.Unlock()
	if kind == "store" && c.kind == launch.StoreMemcached {
		c.await("lost blocks are rebuilt", func() bool { return c.allUp() && c.repaired() })
	}
}

// acknowledged counts the writes and reads that succeeded so far.
func (c *chaos) acknowledged() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.counts["put"] + c.counts["get"] + c.counts["update"] + c.counts["delete"]
}

func (c *chaos) allUp() bool {
	ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Second)
	defer cancel()
	status, err := c.client.Status(ctx)
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(status.Nodes, func(node gateway.NodeStatus) bool { return node.State != "up" })
}

func (c *chaos) repaired() bool {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	result, err := c.client.Repair(ctx)
	return err == nil && len(result.Failed) == 0
}

// await polls until holds; it fails the test after two minutes.
func (c *chaos) await(what string, holds func() bool) {
	c.t.Helper()
	deadline := time.After(2 * time.Minute)
	for !holds() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			c.t.Errorf("after two minutes it does not hold that %s", what)
			return
		case <-c.t.Context().Done():
			return
		}
	}
}

// transitions takes the class up and down its ladder, over and over.
func (c *chaos) transitions(ctx context.Context, round int) {
	ladder := []string{"rs(3,2)", "rs(6,2)", "rs(3,2)", "rep(3)"}
	for step := 0; ctx.Err() == nil; step++ {
		t, err := c.client.StartTransition(ctx, gateway.TransitionRequest{
			Selector: gateway.Selector{Class: "default"}, To: ladder[(round+step)%len(ladder)],
		})
		for err == nil && !t.State.Final() && ctx.Err() == nil {
			c.pause(20 * time.Millisecond)
			var now gateway.Transition
			if now, err = c.client.Transition(ctx, t.ID); err == nil {
				t = now
			} else if errors.Is(err, client.ErrUnreachable) || errors.Is(err, client.ErrUnavailable) {
				err = nil // the gateway is being restarted
			}
		}
		switch {
		case t.State == gateway.TransitionDone:
			c.count("transition")
		case t.State == gateway.TransitionFailed:
			c.t.Errorf("transition %s to %s failed: %s", t.ID, t.To, t.Error)
		}
	}
}

func (c *chaos) count(what string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.counts[what]++
}

// act does one random operation on a key.
func (c *chaos) act(ctx context.Context, source *rand.Rand, key string) {
	size := 600 // packed with others
	if key[len(key)-1]%2 == 0 {
		size = 200_000 // several groups of its own
	}
	call := time.Since(c.began).Nanoseconds()
	switch draw := source.IntN(100); {
	case draw < 35:
		value, err := c.get(ctx, key)
		if err == nil {
			c.finish(input{key: key, action: actionGet}, output{value: value}, call, nil, "get")
		} else {
			c.pause(5 * time.Millisecond)
		}
	case draw < 65:
		numbers := make([]uint32, segments)
		for i := range numbers {
			numbers[i] = c.number.Add(1)
		}
		_, err := c.client.Put(ctx, key, bytes.NewReader(content(key, size, numbers)), client.PutOptions{Size: int64(size), SizeKnown: source.IntN(2) == 0})
		c.finish(input{key: key, action: actionPut, value: registerOf(numbers)}, output{}, call, err, "put")
	case draw < 88:
		segment, number := source.IntN(segments), c.number.Add(1)
		each := size / segments
		data := make([]byte, each)
		fill(key, segment, number, data)
		_, err := c.client.Update(ctx, key, int64(segment*each), bytes.NewReader(data), int64(each))
		c.finish(input{key: key, action: actionUpdate, segment: segment, number: number}, output{}, call, err, "update")
	case draw < 95:
		err := c.client.Delete(ctx, key)
		c.finish(input{key: key, action: actionDelete}, output{}, call, err, "delete")
	default:
		if _, err := c.client.Move(ctx, key, []string{"rep(3)", "rs(3,2)", "rs(6,2)"}[source.IntN(3)]); err == nil {
			c.count("move")
		}
	}
}

// finish records a write by its outcome: acknowledged, refused (which promises that nothing happened), or unknown.
func (c *chaos) finish(in input, out output, call int64, err error, name string) {
	back := time.Since(c.began).Nanoseconds()
	var refused *client.Error
	switch {
	case err == nil:
		c.count(name)
	case errors.Is(err, client.ErrNotFound):
		out.missing = true
	case errors.Is(err, syscall.ECONNREFUSED): // never sent
		c.count("not sent")
		c.pause(5 * time.Millisecond)
		return
	case errors.As(err, &refused) && !errors.Is(err, client.ErrUnknownOutcome) && refused.Code != "cancelled" && refused.Code != "internal" && refused.Code != "timeout":
		c.count(name + " refused")
		return
	default:
		c.count(name + " unknown")
		out.unknown, back = true, math.MaxInt64
	}
	c.record(in, out, call, back)
}

func (c *chaos) record(in input, out output, call, back int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.history = append(c.history, porcupine.Operation{Input: in, Output: out, Call: call, Return: back})
}

// get reads an object whole. Bytes that are of no one version fail the test.
func (c *chaos) get(ctx context.Context, key string) (register, error) {
	object, err := c.client.Get(ctx, key, client.Range{})
	if errors.Is(err, client.ErrNotFound) {
		return absent, nil
	}
	if err != nil {
		if errors.Is(err, client.ErrDataLoss) {
			c.t.Errorf("reading %s: %v", key, err)
		}
		return absent, err
	}
	data, err := io.ReadAll(object)
	if err = errors.Join(err, object.Close()); err != nil {
		return absent, err
	}
	if int64(len(data)) != object.Length {
		return absent, fmt.Errorf("%d of %d bytes", len(data), object.Length)
	}
	value, err := parse(key, data)
	if err != nil {
		c.t.Errorf("a read mixed versions: %v", err)
	}
	return value, err
}

// settle waits until everything is at rest and then looks for what must not be there.
func (c *chaos) settle() {
	ctx := c.t.Context()
	c.await("transitions have ended", func() bool {
		status, err := c.client.Status(ctx)
		return err == nil && len(status.Transitions) == 0
	})
	c.await("every group is whole", c.repaired)
	var status gateway.Status
	c.await("attempts and dead blocks are gone", func() bool {
		if _, err := c.client.Sweep(ctx); err != nil {
			return false
		}
		var err error
		status, err = c.client.Status(ctx)
		return err == nil && status.Active == 0 && status.Graves == 0 && status.NotWhole == 0
	})
	if c.t.Failed() {
		c.t.Logf("%d attempts, %d dead blocks, %d groups not whole", status.Active, status.Graves, status.NotWhole)
	}
	result, err := c.client.Sweep(ctx)
	if err != nil || result.OrphansDeleted+result.BlocksDeleted+result.Quarantined > 0 {
		c.t.Errorf("a sweep at rest: %+v, %v; want nothing left over", result, err)
	}
	findings, err := c.client.Doctor(ctx)
	if err != nil {
		c.t.Errorf("asking the doctor: %v", err)
	}
	for _, finding := range findings {
		if finding.Severity == "error" {
			c.t.Errorf("the doctor finds: %s: %s", finding.Subject, finding.Text)
		}
	}
	objects := 0
	for object, err := range c.client.Objects(ctx, "") {
		if err != nil {
			c.t.Fatalf("listing: %v", err)
		}
		objects++
		stat, err := c.client.Stat(ctx, object.Key)
		if err != nil {
			c.t.Errorf("stat %s: %v", object.Key, err)
			continue
		}
		for _, group := range stat.Groups {
			for _, slot := range group.Slots {
				if slot.State != "ok" {
					c.t.Errorf("%s: slot %d of group %s on %s is %s", object.Key, slot.Slot, group.ID, slot.Node, slot.State)
				}
			}
		}
	}
	if objects == 0 {
		c.t.Error("no object is left: the test shows nothing")
	}
}

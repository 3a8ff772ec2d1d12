package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
)

var (
	seedFlag   = flag.Uint64("chaos.seed", 0, "seed of the tests that kill processes, cut networks and lose nodes; 0 draws one and prints it")
	chaosKills = flag.Int("chaos.kills", 30, "processes killed per kind of store")
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
	seed := chaosSeed(t)
	for _, kind := range []launch.StoreKind{launch.StoreFile, launch.StoreMemcached, launch.StoreRedis} {
		t.Run(string(kind), func(t *testing.T) { newChaos(t, launch.Options{Store: kind}, seed).run(*chaosKills) })
	}
}

// chaosSeed is the seed of a test whose faults are drawn, and says how to have the same again.
func chaosSeed(t *testing.T) uint64 {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d (repeat with -chaos.seed=%d)", seed, seed)
	return seed
}

type chaos struct {
	*workload
	kind    launch.StoreKind
	cluster *launch.Cluster
	stores  []killable // that the cluster does not run itself
	random  *rand.Rand // of the killer alone
	kills   map[string]int
}

// killable is a process that can be killed and started again over what it kept.
type killable struct {
	name        string
	halt, start func() error
}

// newChaos starts a cluster; of the options it needs the store and, over Ceph, the pools.
func newChaos(t *testing.T, options launch.Options, seed uint64) *chaos {
	t.Helper()
	directory := t.TempDir()
	classes := filepath.Join(directory, "given.yaml")
	if err := os.WriteFile(classes, []byte(chaosClasses), 0o644); err != nil {
		t.Fatal(err)
	}
	options.Directory, options.Binary, options.Agents, options.ClassFile = filepath.Join(directory, "cluster"), program(t), chaosAgents, classes
	options.GatewayArguments, options.AgentArguments = []string{"--grace", "0s"}, []string{"--gateway-silence", "2s"}
	cluster, err := launch.Start(t.Context(), options)
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
		workload: newWorkload(t, seed, connection), kind: options.Store, cluster: cluster, random: rand.New(rand.NewPCG(seed, 0)), kills: map[string]int{},
	}
}

// logMark comes before the name of each log that tails prints.
const logMark = "---- log of "

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
		t.Logf("%s%s\n%s", logMark, entry.Name(), text[max(0, len(text)-3000):])
	}
}

// killsPerRound is how many processes are killed before the keys are changed, which keeps the number of operations of
// unknown outcome per key small enough to check.
const killsPerRound = 7

func (c *chaos) run(most int) {
	done := 0
	for round := 0; done < most; round++ {
		kills := min(killsPerRound, most-done)
		c.round(round, kills)
		done += kills
		if c.t.Failed() {
			return
		}
	}
	c.settle()
	c.t.Logf("%s: seed %d, %d processes killed (%v), operations %v, %v", c.kind, c.seed, done, c.kills, c.counts, time.Since(c.began).Round(time.Second))
	c.judge()
}

// round lets clients work on fresh keys and kills processes meanwhile.
func (c *chaos) round(round, kills int) {
	ctx, stop := context.WithCancel(c.t.Context())
	defer stop()
	keys := make([]string, 8)
	for i := range keys {
		keys[i] = fmt.Sprintf("round-%d/key-%d", round, i)
	}
	workers := c.begin(ctx, round, 6, keys, []string{"rep(3)", "rs(3,2)", "rs(6,2)"})
	for range kills {
		// A random number of acknowledged operations and a random moment after: the kill hits any step of any operation.
		enough := c.acknowledged() + c.random.IntN(40)
		c.await("clients get on", func() bool { return c.acknowledged() >= enough })
		c.pause(time.Duration(c.random.IntN(60_000)) * time.Microsecond)
		c.kill()
	}
	c.endRound(stop, workers)
	c.await("every process and node is back", c.allUp)
	c.readBack(keys)
}

// kill kills one process: an agent, the gateway or a store server. A memcached that is killed loses its blocks, so the
// groups are repaired before the next one may be.
func (c *chaos) kill() {
	own := func(name string) killable {
		return killable{name, func() error { return c.cluster.Halt(name) }, func() error { return c.cluster.Restart(c.t.Context(), name) }}
	}
	stores := slices.Clone(c.stores)
	var agents []killable
	for _, name := range c.cluster.Names() {
		switch {
		case strings.HasSuffix(name, "-store"):
			stores = append(stores, own(name))
		case name != launch.GatewayName:
			agents = append(agents, own(name))
		}
	}
	kind, victim := "agent", agents[c.random.IntN(len(agents))]
	switch draw := c.random.IntN(10); {
	case draw < 3:
		kind, victim = "gateway", own(launch.GatewayName)
	case draw < 6 && len(stores) > 0:
		kind, victim = "store", stores[c.random.IntN(len(stores))]
	}
	if err := victim.halt(); err != nil {
		c.t.Errorf("killing %s: %v", victim.name, err)
		return
	}
	c.pause(time.Duration(c.random.IntN(150)) * time.Millisecond) // it stays away for a while
	if err := victim.start(); err != nil {
		c.t.Errorf("starting %s again: %v", victim.name, err)
		return
	}
	c.kills[kind]++
	if kind == "store" && c.kind == launch.StoreMemcached {
		c.await("lost blocks are rebuilt", func() bool { return c.allUp() && c.repaired() })
	}
}

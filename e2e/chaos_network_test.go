//go:build linux

package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/sim/register"
)

var (
	chaosNetwork   = flag.Duration("chaos.network", 8*time.Second, "how long faults of the network and of stores go on in each variant")
	chaosFailovers = flag.Int("chaos.failovers", 0,
		"where the catalog has members, how often each fault happens to the one that leads, however long that takes; 0: as -chaos.network says")
)

// The class of the network tests: groups over 6 of 8 nodes that survive the loss of any 2.
const networkClasses = `classes:
- name: default
  ladder: rep(3),rs(2,2),rs(4,2)
  prefixes: [""]
  packBelow: 8KiB
  groupBytes: 64KiB
`

const (
	networkNodes   = 8
	strikesAround  = 3                // before the keys are changed, which keeps unknown outcomes per key few enough to check
	clientPatience = 3 * time.Second  // after which a client gives an operation up
	statedOutage   = 20 * time.Second // for which docs/catalog.md has clients of a catalog with members be patient
	stalledRead    = 3 * time.Second  // what no read may take while one node is stopped; some 50 ms are usual
)

// variant is one cluster that faults happen to.
type variant struct {
	name, store string
	gateways    int
	catalog     string // that more than one share: redis, etcd of three members, or postgres with a standby; empty: a file
}

var variants = []variant{
	{"one-gateway-over-memcached", "memcached", 1, ""},
	{"two-gateways-over-redis", "redis", 2, "redis"},
	{"one-gateway-over-files", "file", 1, ""},
	{"two-gateways-with-etcd", "file", 2, "etcd"},
	{"two-gateways-with-postgres", "file", 2, "postgres"},
}

// TestNetworkFaults has clients write, update, read, move and delete objects while transitions run and a seeded nemesis
// kills, stops, cuts off, fills and empties nodes, gateways and catalogs, each in a network namespace of its own. At most
// two nodes are struck at a time, and what was lost is rebuilt before the next strike. Afterwards every operation must fit
// one order per key, every object must read back, every group must be whole, and nothing may be left over.
func TestNetworkFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("the network tests need minutes; -short leaves them out")
	}
	seed := chaosSeed(t)
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			if base := os.Getenv(insideVariable); base != "" {
				newNetworkChaos(t, v, base, seed).run()
				return
			}
			if v.catalog == "etcd" {
				t.Setenv(etcdVariable, etcdProgram(t))
			}
			if v.catalog == "postgres" {
				t.Setenv(postgresVariable, postgresPrograms(t))
			}
			failovers := time.Duration(*chaosFailovers)
			inside(t, "-chaos.seed="+strconv.FormatUint(seed, 10), "-chaos.network="+chaosNetwork.String(),
				"-chaos.failovers="+strconv.Itoa(*chaosFailovers),
				"-test.timeout="+(10*time.Minute+5**chaosNetwork+failovers*10*time.Minute).String())
		})
	}
}

type networkChaos struct {
	*workload
	variant
	nodes, gateways, catalogs []*place
	primary                   *place // of the catalog, where it has one
	nemesis                   nemesis
	faults, led               map[string]int // by kind, and those at the leader of the catalog
	strikes                   int
	kept                      []string      // keys of earlier rounds, which nobody changes any more
	rebuilt                   map[int]int64 // slots, by gateway, that it said of when it was last asked
	seen                      *outages
}

func (c *networkChaos) everywhere() []*place { return slices.Concat(c.nodes, c.gateways, c.catalogs) }

// newNetworkChaos builds the network and starts the cluster.
func newNetworkChaos(t *testing.T, v variant, base string, seed uint64) *networkChaos {
	t.Helper()
	ctx := t.Context()
	c := &networkChaos{
		workload: newWorkload(t, seed), variant: v, faults: map[string]int{}, led: map[string]int{}, rebuilt: map[int]int64{}, seen: newOutages(),
	}
	c.nemesis = nemesis{random: rand.New(rand.NewPCG(seed, 0)), chaos: c}
	c.patience = clientPatience
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := layNetwork(ctx); err != nil {
		t.Skipf("%s%v", notTested, err)
	}
	logs := filepath.Join(base, "logs")
	check(os.Mkdir(logs, 0o755))
	t.Cleanup(func() {
		if t.Failed() {
			tails(t, logs)
		}
	})
	check(c.found(base))
	var members []launch.Member
	for i := range networkNodes {
		p, err := newPlace(ctx, base, "n"+strconv.Itoa(i+1), i+1)
		check(err)
		c.nodes = append(c.nodes, p)
		check(c.startNode(base, p))
		members = append(members, launch.Member{ID: p.name, Address: p.address + agentPort})
	}
	list, err := yaml.Marshal(map[string][]launch.Member{"nodes": members})
	check(err)
	check(os.WriteFile(filepath.Join(base, "nodes.yaml"), list, 0o644))
	check(os.WriteFile(filepath.Join(base, "classes.yaml"), []byte(networkClasses), 0o644))
	check(c.startGateways(base))
	_, err = c.clients[0].SetPatience(ctx, api.Patience{DownAfterSeconds: 1, OutAfterSeconds: 3})
	check(err)
	return c
}

// The user of the clients, and the token that they send.
const (
	networkToken = "token of the clients"
	networkUsers = "users:\n- {name: clients, tokenSHA256: %x, verbs: [get, plan, apply, pause, cancel], objects: [{may: [admin]}]}\n"
)

// found makes the authority of the cluster, and says who its clients are.
func (c *networkChaos) found(base string) error {
	text := fmt.Appendf(nil, networkUsers, sha256.Sum256([]byte(networkToken)))
	return errors.Join(os.WriteFile(filepath.Join(base, "users.yaml"), text, 0o600),
		c.certify(base, "init", "chaos"))
}

// certify has the program make an authority or a certificate.
func (c *networkChaos) certify(base string, arguments ...string) error {
	arguments = append(append([]string{"pki"}, arguments...), "--ca", filepath.Join(base, "ca"))
	if text, err := exec.CommandContext(c.t.Context(), filepath.Join(base, "restripe"), arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("restripe %q: %w: %s", arguments, err, text)
	}
	return nil
}

// issue has the program make the certificate of a place, and returns its directory.
func (c *networkChaos) issue(base, role string, p *place) (directory string, err error) {
	directory = filepath.Join(base, p.name+"-tls")
	return directory, c.certify(base, "issue", role, p.name, "--host", p.address, "--out", directory)
}

// connect returns a client of the gateway in a place.
func (c *networkChaos) connect(base string, p *place) (*client.Client, error) {
	text, err := os.ReadFile(filepath.Join(base, "ca", pki.AuthorityFile))
	if err != nil {
		return nil, err
	}
	believed := &tls.Config{RootCAs: x509.NewCertPool()}
	if !believed.RootCAs.AppendCertsFromPEM(text) {
		return nil, errors.New("the authority has no certificate")
	}
	return client.NewWith("https://"+p.address+gatewayPort, client.Options{TLS: believed, Token: networkToken})
}

func (c *networkChaos) startNode(base string, p *place) error {
	url := c.store + "://" + p.address + storePort
	var err error
	switch c.store {
	case "memcached":
		err = p.run(c.t, base, "store", storePort, "version", "memcached", "-u", "root", "-l", p.address, "-p", storePort[1:], "-U", "0", "-m", "256", "-I", "8m", "-M", "-c", "1024", "-t", "1")
	case "redis":
		err = c.startRedis(base, p, "store", "everysec")
	default:
		url = "file:" + filepath.Join(p.disk, "store")
	}
	if err != nil {
		return err
	}
	own, err := c.issue(base, "agent", p)
	if err != nil {
		return err
	}
	return p.run(c.t, base, "agent", agentPort, "", filepath.Join(base, "restripe"), "agent", "--id", p.name, "--store", url,
		"--listen", p.address+agentPort, "--tls", own, "--allow-remote", "--gateway-silence", silence)
}

func (c *networkChaos) startRedis(base string, p *place, name, sync string) error {
	return p.run(c.t, base, name, storePort, "PING", "redis-server", "--bind", p.address, "--protected-mode", "no", "--port", storePort[1:], "--dir", p.disk,
		"--save", "", "--appendonly", "yes", "--appendfsync", sync, "--maxmemory-policy", "noeviction")
}

func (c *networkChaos) startGateways(base string) error {
	ctx := c.t.Context()
	catalog, err := c.startCatalog(base)
	if err != nil {
		return err
	}
	for i := range c.variant.gateways {
		p, err := newPlace(ctx, base, "gw"+strconv.Itoa(i+1), 112+i)
		if err != nil {
			return err
		}
		c.gateways = append(c.gateways, p)
		where := catalog
		if where == "" {
			where = "sqlite:" + filepath.Join(p.disk, "catalog.db")
		}
		own, err := c.issue(base, "gateway", p)
		if err != nil {
			return err
		}
		if err := p.run(c.t, base, "gateway", gatewayPort, "", filepath.Join(base, "restripe"), "gateway", "--id", p.name,
			"--catalog", where, "--nodes", filepath.Join(base, "nodes.yaml"), "--classes", filepath.Join(base, "classes.yaml"),
			"--listen", p.address+gatewayPort, "--tls", own, "--https", "--users", filepath.Join(base, "users.yaml"), "--allow-remote",
			"--audit", filepath.Join(base, p.name+"-audit"), "--grace", "0s"); err != nil {
			return err
		}
		connection, err := c.connect(base, p)
		if err != nil {
			return err
		}
		c.clients = append(c.clients, connection)
	}
	return nil
}

// startCatalog starts what the gateways share, and returns its address; empty where each has a file.
func (c *networkChaos) startCatalog(base string) (address string, err error) {
	names := map[string][]string{
		"redis": {"records"}, "etcd": {"records1", "records2", "records3"}, "postgres": {"records1", "records2"},
	}[c.catalog]
	for i, name := range names {
		p, err := newPlace(c.t.Context(), base, name, 101+i)
		if err != nil {
			return "", err
		}
		c.catalogs = append(c.catalogs, p)
	}
	switch c.catalog {
	case "redis":
		return "redis://" + c.catalogs[0].address + storePort, c.startRedis(base, c.catalogs[0], "catalog", "always")
	case "etcd":
		return c.startEtcd(base)
	case "postgres":
		return c.startPostgres(base)
	}
	return "", nil
}

func (c *networkChaos) run() {
	c.await("every node is up", c.allUp)
	ctx, stop := context.WithCancel(c.t.Context())
	defer stop()
	standing := c.writeStanding()
	c.stoppedNode(standing)
	var watchers sync.WaitGroup
	watchers.Go(func() {
		c.watch(ctx, "read", func(ctx context.Context, turn int) error { return c.readStanding(ctx, standing, turn) })
	})
	watchers.Go(func() { c.watch(ctx, "write", c.writeOne) })
	began := time.Now()
	for round := 0; !c.struckEnough(began) && !c.t.Failed(); round++ {
		c.round(round)
	}
	stop()
	watchers.Wait()
	if c.t.Failed() {
		return
	}
	for turn := range standing {
		if err := c.readStanding(c.t.Context(), standing, turn); err != nil {
			c.t.Errorf("at rest: %v", err)
		}
	}
	c.readBack(c.kept)
	c.settle()
	c.judge()
	if c.byFailovers() && c.faults[agentKilled] > 0 && c.counts["slot rebuilt"] == 0 {
		c.t.Error("nodes were away and nothing was repaired: the test shows nothing of that")
	}
	c.summary()
	if longest := c.seen.most(); c.byFailovers() && longest > statedOutage {
		c.t.Errorf("a client went %v without an answer; docs/catalog.md says at most %v", longest, statedOutage)
	}
}

// byFailovers reports whether faults are counted and all at the leader of the catalog, with nodes lost beside them.
func (c *networkChaos) byFailovers() bool { return *chaosFailovers > 0 && hasMembers(&c.variant) }

// struckEnough reports whether faults have happened for as long, or as often, as they shall.
func (c *networkChaos) struckEnough(began time.Time) bool {
	if !c.byFailovers() {
		return time.Since(began) >= *chaosNetwork
	}
	return !slices.ContainsFunc(faultsOf(&c.variant), func(f fault) bool { return c.led[f.kind] < *chaosFailovers })
}

// round lets clients work on fresh keys while faults happen.
func (c *networkChaos) round(round int) {
	ctx, stop := context.WithCancel(c.t.Context())
	defer stop()
	keys := make([]string, 8)
	for i := range keys {
		keys[i] = fmt.Sprintf("round-%d/key-%d", round, i)
	}
	c.excused.Store(false)
	workers := c.begin(ctx, round, 4, keys, []string{"rep(3)", "rs(2,2)", "rs(4,2)"})
	for range strikesAround {
		strikes := c.nemesis.deal()
		enough := c.acknowledged() + 1 + c.nemesis.random.IntN(20)
		c.await("clients get on", func() bool { return c.acknowledged() >= enough })
		c.strike(strikes)
	}
	c.endRound(stop, workers)
	c.await("every process and node is back", c.allUp)
	c.countRebuilt()
	c.readBack(keys)
	if c.byFailovers() {
		c.kept = append(c.kept, keys[:2]...)
		c.deleteAll(keys[2:])
	}
}

// deleteAll deletes keys, as part of the history, so that many rounds leave no more to move than one does.
func (c *networkChaos) deleteAll(keys []string) {
	for _, key := range keys {
		c.await("key "+key+" is deleted", func() bool {
			ctx, cancel := c.bounded(c.t.Context())
			defer cancel()
			call := time.Since(c.began).Nanoseconds()
			err := c.client().Delete(ctx, key)
			c.finish(register.Call{Key: key, Action: register.Delete}, register.Answer{}, call, err, "delete")
			return err == nil || errors.Is(err, api.ErrNotFound)
		})
	}
}

// countRebuilt takes note of what was repaired. A gateway that was started again counts from nothing.
func (c *networkChaos) countRebuilt() {
	for i, each := range c.clients {
		ctx, cancel := c.bounded(c.t.Context())
		status, err := each.RepairStatus(ctx)
		cancel()
		if err != nil {
			continue // it is asked again after the next round
		}
		more := status.SlotsRebuilt
		if more >= c.rebuilt[i] {
			more -= c.rebuilt[i]
		}
		c.rebuilt[i] = status.SlotsRebuilt
		c.mutex.Lock()
		c.counts["slot rebuilt"] += int(more)
		c.mutex.Unlock()
	}
}

func (c *networkChaos) summary() {
	c.t.Logf("%s: seed %d, operations %v, %v", c.name, c.seed, c.counts, time.Since(c.began).Round(time.Second))
	for _, line := range c.seen.table(c.faults) {
		c.t.Log(line)
	}
}

// standing objects are written once and never changed; they must read back at every moment.
func (c *networkChaos) writeStanding() map[int]register.Value {
	standing := map[int]register.Value{}
	for i := range 8 {
		numbers := make([]uint32, segments)
		for at := range numbers {
			numbers[at] = c.number.Add(1)
		}
		key, size := standingKey(i)
		if _, err := c.client().Put(c.t.Context(), key, bytes.NewReader(register.Content(key, size, numbers)), client.PutOptions{Size: int64(size), SizeKnown: true}); err != nil {
			c.t.Fatalf("writing %s: %v", key, err)
		}
		standing[i] = register.Of(numbers)
	}
	return standing
}

func standingKey(i int) (key string, size int) {
	if i%2 == 0 {
		return fmt.Sprintf("standing/%d", i), 200_000
	}
	return fmt.Sprintf("standing/%d", i), 600
}

func (c *networkChaos) readStanding(ctx context.Context, standing map[int]register.Value, turn int) error {
	i := turn % len(standing)
	key, _ := standingKey(i)
	value, err := c.get(ctx, c.client(), key)
	if err == nil && value != standing[i] {
		c.t.Errorf("%s was written once and reads back as %q, not %q", key, value, standing[i])
	}
	return err
}

func (c *networkChaos) writeOne(ctx context.Context, turn int) error {
	key, data := fmt.Sprintf("watched/%d", turn%4), []byte("written again and again")
	_, err := c.client().Put(ctx, key, bytes.NewReader(data), client.PutOptions{Size: int64(len(data)), SizeKnown: true})
	return err
}

// stoppedNode stops the agent of a node that holds data and checks that reads go on before anybody has missed it.
func (c *networkChaos) stoppedNode(standing map[int]register.Value) {
	stat, err := c.clients[0].Stat(c.t.Context(), "standing/0")
	if err != nil || len(stat.Groups) == 0 || len(stat.Groups[0].Slots) == 0 {
		c.t.Fatalf("stat standing/0: %+v, %v", stat, err)
	}
	at := slices.IndexFunc(c.nodes, func(p *place) bool { return p.name == string(stat.Groups[0].Slots[0].Node) })
	agent := c.nodes[at].processes["agent"]
	if err := agent.stop(); err != nil {
		c.t.Fatal(err)
	}
	var longest time.Duration
	reads := 0
	for began := time.Now(); time.Since(began) < 4*time.Second; reads++ {
		call := time.Now()
		if err := c.readStanding(c.t.Context(), standing, reads); err != nil {
			c.t.Errorf("reading while %s is stopped: %v", c.nodes[at].name, err)
		}
		longest = max(longest, time.Since(call))
	}
	if err := agent.resume(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Logf("%d reads while %s is stopped, the longest took %v", reads, c.nodes[at].name, longest.Round(time.Millisecond))
	if longest > stalledRead {
		c.t.Errorf("a read took %v while one node was stopped; want at most %v", longest, stalledRead)
	}
	c.await("the stopped node is back", c.allUp)
}

// outages is for how long a client that tries again and again, at each gateway in turn, went without success.
type outages struct {
	mutex   sync.Mutex
	now     string // what goes on; empty: nothing
	longest map[string]map[string]time.Duration
}

const undisturbed = "none, or one just over"

func newOutages() *outages {
	return &outages{now: undisturbed, longest: map[string]map[string]time.Duration{}}
}

func (o *outages) begin(label string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.now = label
}

func (o *outages) end() { o.begin(undisturbed) }

// took takes note of an operation that began while before went on and has just succeeded.
func (o *outages) took(what, before string, length time.Duration) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	label := before
	if label == undisturbed {
		label = o.now
	}
	if o.longest[label] == nil {
		o.longest[label] = map[string]time.Duration{}
	}
	o.longest[label][what] = max(o.longest[label][what], length)
}

func (o *outages) label() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.now
}

// most is the longest of all.
func (o *outages) most() (longest time.Duration) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for _, operations := range o.longest {
		for _, length := range operations {
			longest = max(longest, length)
		}
	}
	return longest
}

// table has a line for each kind of fault. What happened only beside another fault has no times of its own.
func (o *outages) table(faults map[string]int) []string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	lines := []string{fmt.Sprintf("%-40s %6s %14s %14s", "fault", "times", "longest read", "longest write")}
	kinds := maps.Clone(faults)
	for kind := range o.longest {
		kinds[kind] += 0
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		cells := []string{"-", "-", "-"}
		if kinds[kind] > 0 {
			cells[0] = strconv.Itoa(kinds[kind])
		}
		for i, what := range []string{"read", "write"} {
			if length, seen := o.longest[kind][what]; seen {
				cells[i+1] = length.Round(time.Millisecond).String()
			}
		}
		lines = append(lines, fmt.Sprintf("%-40s %6s %14s %14s", kind, cells[0], cells[1], cells[2]))
	}
	return lines
}

// watch repeats an operation and measures how long each takes until it succeeds, over as many tries as it takes.
func (c *networkChaos) watch(ctx context.Context, what string, once func(ctx context.Context, turn int) error) {
	for turn := 0; ctx.Err() == nil; turn++ {
		began, label := time.Now(), c.seen.label()
		for ctx.Err() == nil {
			bounded, cancel := c.bounded(ctx)
			err := once(bounded, turn)
			cancel()
			if err == nil {
				c.seen.took(what, label, time.Since(began))
				break
			}
			c.pause(5 * time.Millisecond)
		}
		c.pause(5 * time.Millisecond)
	}
}

//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// fault is one kind of thing that goes wrong at a place, and how it is put right again.
type fault struct {
	kind       string
	at         site
	begin, end func(ctx context.Context, c *networkChaos, p *place) error
	loses      func(v *variant) bool // the blocks of the place are gone; nil: they are not
}

// site is the sort of place that a fault happens at.
type site int

const (
	atNode site = iota
	atGateway
	atCatalog
	atPrimary // of a catalog that has one; the other server takes its place
)

// kill, stop and the like are faults of one process of a place.
func kill(name string) func(context.Context, *networkChaos, *place) error {
	return func(_ context.Context, _ *networkChaos, p *place) error { return p.processes[name].kill() }
}

func start(name string) func(context.Context, *networkChaos, *place) error {
	return func(ctx context.Context, _ *networkChaos, p *place) error { return p.processes[name].start(ctx) }
}

func stop(name string) func(context.Context, *networkChaos, *place) error {
	return func(_ context.Context, _ *networkChaos, p *place) error { return p.processes[name].stop() }
}

func resume(name string) func(context.Context, *networkChaos, *place) error {
	return func(_ context.Context, _ *networkChaos, p *place) error { return p.processes[name].resume() }
}

func linkTo(state string) func(context.Context, *networkChaos, *place) error {
	return func(ctx context.Context, _ *networkChaos, p *place) error { return p.link(ctx, state) }
}

// cut loses what goes between a place and others, both ways; mend ends it.
func cut(from func(c *networkChaos, p *place) []*place) func(context.Context, *networkChaos, *place) error {
	return func(ctx context.Context, c *networkChaos, p *place) error {
		others := from(c, p)
		return errors.Join(mute(ctx, p, others), deafen(ctx, p, others))
	}
}

func mend(from func(c *networkChaos, p *place) []*place) func(context.Context, *networkChaos, *place) error {
	return func(ctx context.Context, c *networkChaos, p *place) error {
		others := from(c, p)
		return errors.Join(speaking(ctx, p, others), hearing(ctx, p, others))
	}
}

// isNotHeard loses what a place sends to all others; isHeard ends it.
func isNotHeard(ctx context.Context, c *networkChaos, p *place) error {
	return mute(ctx, p, others(c, p))
}
func isHeard(ctx context.Context, c *networkChaos, p *place) error {
	return speaking(ctx, p, others(c, p))
}

// others are all places but p, everyOther every second node but p.
func others(c *networkChaos, p *place) (list []*place) {
	for _, other := range c.everywhere() {
		if other != p {
			list = append(list, other)
		}
	}
	return list
}

func everyOther(c *networkChaos, p *place) (list []*place) {
	for i, other := range c.nodes {
		if other != p && i%2 == 0 {
			list = append(list, other)
		}
	}
	return list
}

func allGateways(c *networkChaos, _ *place) []*place { return c.gateways }
func theCatalog(c *networkChaos, _ *place) []*place  { return c.catalogs }

func always(*variant) bool                                 { return true }
func inMemory(v *variant) bool                             { return v.store == "memcached" }
func hasServer(v *variant) bool                            { return v.store != "file" }
func hasDisk(v *variant) bool                              { return v.store != "memcached" }
func hasCatalogs(v *variant) bool                          { return v.catalog != "" }
func hasMembers(v *variant) bool                           { return v.catalog == "etcd" || hasStandby(v) }
func hasStandby(v *variant) bool                           { return v.catalog == "postgres" }
func nothing(context.Context, *networkChaos, *place) error { return nil }

// flush empties a store behind the back of its agent.
func flush(_ context.Context, c *networkChaos, p *place) error {
	question := "FLUSHALL"
	if c.store == "memcached" {
		question = "flush_all"
	}
	_, err := ask(p.address+storePort, question)
	return err
}

const (
	agentKilled = "agent killed"
	awayLength  = 4 * time.Second // after which a node is given up, by the patience of newNetworkChaos
)

// faultIn is a fault, and which variants have it.
type faultIn struct {
	fault
	in func(v *variant) bool
}

// allFaults lists every kind, and which variants have it. Where the catalog has members nothing but they is struck.
var allFaults = []faultIn{
	{fault{agentKilled, atNode, kill("agent"), start("agent"), nil}, always},
	{fault{"agent stopped", atNode, stop("agent"), resume("agent"), nil}, always},
	{fault{"store killed", atNode, kill("store"), start("store"), inMemory}, hasServer},
	{fault{"store stopped", atNode, stop("store"), resume("store"), nil}, hasServer},
	{fault{"store flushed", atNode, flush, nothing, always}, hasServer},
	{fault{"disk full", atNode, func(_ context.Context, c *networkChaos, p *place) error { c.excused.Store(true); return p.fill() },
		func(_ context.Context, _ *networkChaos, p *place) error { return p.drain() }, nil}, hasDisk},
	{fault{"link down", atNode, linkTo("down"), linkTo("up"), nil}, always},
	{fault{"cut off from half of the nodes", atNode, cut(everyOther), mend(everyOther), nil}, always},
	{fault{"cut off from the gateways", atNode, cut(allGateways), mend(allGateways), nil}, always},
	{fault{"hears and is not heard", atNode, isNotHeard, isHeard, nil}, always},
	{fault{"is heard and does not hear", atNode, func(ctx context.Context, c *networkChaos, p *place) error { return deafen(ctx, p, others(c, p)) },
		func(ctx context.Context, c *networkChaos, p *place) error { return hearing(ctx, p, others(c, p)) }, nil}, always},
	{fault{"gateway killed", atGateway, kill("gateway"), start("gateway"), nil}, always},
	{fault{"gateway stopped", atGateway, stop("gateway"), resume("gateway"), nil}, always},
	{fault{"gateway's link down", atGateway, linkTo("down"), linkTo("up"), nil}, always},
	{fault{"gateway cut off from half of the nodes", atGateway, cut(everyOther), mend(everyOther), nil}, always},
	{fault{"gateway cut off from the catalog", atGateway, cut(theCatalog), mend(theCatalog), nil}, hasCatalogs},
	{fault{"catalog killed", atCatalog, kill("catalog"), start("catalog"), nil}, hasCatalogs},
	{fault{"catalog stopped", atCatalog, stop("catalog"), resume("catalog"), nil}, hasCatalogs},
	{fault{"catalog's link down", atCatalog, linkTo("down"), linkTo("up"), nil}, hasMembers},
	{fault{"catalog cut off from its other members", atCatalog, cut(otherCatalogs), mend(otherCatalogs), nil}, hasMembers},
	{fault{"catalog cut off from the gateways", atCatalog, cut(allGateways), mend(allGateways), nil}, hasMembers},
	{fault{"catalog hears and is not heard", atCatalog, isNotHeard, isHeard, nil}, hasMembers},
	{fault{"catalog's disk full", atCatalog, fillCatalog, reviveCatalog, nil}, hasMembers},
	{fault{"fail-over, primary killed", atPrimary, failOver(kill("catalog")), takeBack(comeBack), nil}, hasStandby},
	{fault{"fail-over, primary stopped", atPrimary, failOver(stop("catalog")), takeBack(resume("catalog")), nil}, hasStandby},
	{fault{"fail-over, primary's link down", atPrimary, failOver(linkTo("down")), takeBack(linkTo("up")), nil}, hasStandby},
	{fault{"fail-over, primary's disk full", atPrimary, failOver(fillAndEnd), takeBack(reviveCatalog), nil}, hasStandby},
	{fault{"fail-over, primary alone with a gateway", atPrimary, failOver(isolate), takeBack(join), nil}, hasStandby},
}

// faultsOf are those that a variant is struck by.
func faultsOf(v *variant) (list []fault) {
	for _, each := range allFaults {
		if each.in(v) && (each.at == atCatalog || each.at == atPrimary || !hasMembers(v)) {
			list = append(list, each.fault)
		}
	}
	return list
}

// strike is one fault at one place for a while.
type strike struct {
	fault
	place  *place
	leads  bool // at the leader of the catalog, whichever that is
	length time.Duration
}

// nemesis deals faults: every kind once in a drawn order, then again in another. What it deals depends on its seed alone.
type nemesis struct {
	random *rand.Rand
	chaos  *networkChaos
	deck   []fault
}

// deal returns what happens next: one fault or, one time in five, two at different places. Where fail-overs are counted a node is away
// beside one in three, for so long that it is given up and repaired.
func (n *nemesis) deal() []strike {
	first := n.draw()
	if n.chaos.byFailovers() && n.random.IntN(3) == 0 {
		away := allFaults[slices.IndexFunc(allFaults, func(f faultIn) bool { return f.kind == agentKilled })].fault
		at := n.chaos.nodes[n.random.IntN(len(n.chaos.nodes))]
		return []strike{first, {fault: away, place: at, length: first.length + awayLength}}
	}
	if first.at != atNode || n.random.IntN(5) > 0 {
		return []strike{first}
	}
	second := n.draw()
	for second.at == atNode && second.place == first.place {
		second.place = n.chaos.nodes[n.random.IntN(len(n.chaos.nodes))]
	}
	return []strike{first, second}
}

func (n *nemesis) draw() strike {
	if len(n.deck) == 0 {
		n.deck = faultsOf(&n.chaos.variant)
		n.random.Shuffle(len(n.deck), func(i, j int) { n.deck[i], n.deck[j] = n.deck[j], n.deck[i] })
		if first := slices.IndexFunc(n.deck, func(f fault) bool { return f.at == atPrimary }); first > 0 { // a short test has one too
			n.deck[0], n.deck[first] = n.deck[first], n.deck[0]
		}
	}
	s := strike{fault: n.deck[0], length: time.Duration(100+n.random.IntN(1100)) * time.Millisecond}
	n.deck = n.deck[1:]
	if n.random.IntN(8) == 0 {
		s.length += awayLength
	}
	where := map[site][]*place{
		atNode: n.chaos.nodes, atGateway: n.chaos.gateways, atCatalog: n.chaos.catalogs, atPrimary: n.chaos.catalogs,
	}[s.at]
	s.place = where[n.random.IntN(len(where))]
	s.leads = s.at == atPrimary || s.at == atCatalog && hasMembers(&n.chaos.variant) && (n.random.IntN(3) > 0 || n.chaos.byFailovers())
	return s
}

// strike has faults happen, side by side, and puts them right again.
func (c *networkChaos) strike(strikes []strike) {
	label := strikes[0].kind
	if len(strikes) > 1 && !strikes[0].leads {
		label = "two at once"
	}
	c.seen.begin(label)
	defer c.seen.end()
	lost := false
	var all errgroup.Group
	for _, s := range strikes {
		if s.leads {
			s.place = c.leader()
			c.led[s.kind]++
		}
		c.strikes++
		c.faults[s.kind]++
		c.t.Logf("%6.2f s: %s at %s for %v", time.Since(c.began).Seconds(), s.kind, s.place.name, s.length)
		lost = lost || s.loses != nil && s.loses(&c.variant)
		all.Go(func() error {
			if err := s.begin(c.t.Context(), c, s.place); err != nil {
				return fmt.Errorf("%s at %s: %w", s.kind, s.place.name, err)
			}
			c.pause(s.length)
			if err := s.end(c.t.Context(), c, s.place); err != nil {
				return fmt.Errorf("ending %q at %s: %w", s.kind, s.place.name, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		c.t.Fatal(err)
	}
	enough := c.acknowledged() + 10
	c.await("clients get on", func() bool { return c.acknowledged() >= enough })
	if lost {
		c.await("lost blocks are rebuilt", func() bool { return c.allUp() && c.repaired() })
	}
}

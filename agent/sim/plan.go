package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

// plan is what a seed decides before the run: how large the world is, how patient its parts are, and which kinds of
// trouble there are. Leaving kinds out lets a run get deep into the others.
type plan struct {
	ladder   stripe.Ladder
	another  stripe.Ladder // that people give to classes meanwhile, and take away again; nil: none
	isWide   bool          // groups become wider by the columns of others under it
	agents   int
	gateways int
	clients  int
	slow     int // clients that are slow, besides those
	keys     []object
	length   time.Duration // of the troubled part
	think    time.Duration // of a client between operations
	gap      time.Duration // the longest between two troubles
	deedGap  time.Duration // the longest between two deeds of the operator
	outAfter time.Duration // after which nodes that do not answer are given up; 0: the default of minutes
	restart  time.Duration // the longest that a trouble lasts
	skews    []time.Duration
	classes  []api.Class
	repeats  bool  // clients ask again for puts of which they do not know what became
	rate     int64 // of transitions and scrubs, bytes a second; 0: unlimited
	forgets  bool  // the catalog may lose what it acknowledged
	memory   int64 // of each process, for buffers
	cache    int64 // of each gateway, for small objects that clients read
	pieces   int   // how many groups a put commits at a time; 0: all that an update of the catalog takes
	losable  int   // nodes that may lose blocks at the same time: the fewest parities of the ladder

	grace, patience, callTimeout, attemptTime, sweepEvery, orphanEvery, scrubEvery, compactEvery time.Duration

	kinds []kind // of trouble
}

// segments are those of an object (package register).
const segments = 4

// object is a key of the workload and the bytes of each of its segments.
type object struct {
	key  string
	each int
}

var ladders = []string{
	"rep(2),rs(2,1),rs(4,1)", "rep(3),rs(2,2),rs(4,2)", "rs(2,1),rs(3,1)", "rs(3,2),rs(4,2)", "rep(2),rs(2,2),rs(4,1)", "rs(2,1),rs(2,2),rs(4,2)",
}

// widenings are pairs of ladders of which groups of the first become wider under the second.
var widenings = [][2]string{
	{"rs(2,1)", "rs(4,1),rs(2,1)"}, {"rs(2,2)", "rs(4,2)"}, {"rs(2,1),rep(2)", "rs(4,1),rep(2)"},
	{"rs(3,1)", "rs(4,1)"}, {"rs(2,1)", "rs(3,1)"}, {"rs(2,2)", "rs(3,2)"}, // and narrower again
}

// Size says how much happens in a run.
type Size string

// Sizes of runs.
const (
	Short Size = "short" // seconds of trouble: for many seeds
	Long  Size = "long"  // up to half a minute of trouble, more gateways and clients
)

func newPlan(seed uint64, size Size) plan {
	d := newDice(seed, 0)
	ladder := mustParse(pick(d, ladders))
	var wider stripe.Ladder
	if wide := newDice(seed, 12); wide.chance(0.15) {
		pair := pick(wide, widenings)
		ladder, wider = mustParse(pair[0]), mustParse(pair[1])
	}
	p := plan{
		ladder: ladder, another: wider, isWide: wider != nil,
		gateways: 1 + d.below(3), clients: 2 + d.below(3), length: d.between(8*time.Second, 25*time.Second),
		think:   pick(d, []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 400 * time.Millisecond}),
		gap:     pick(d, []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second}),
		restart: 5 * time.Second, deedGap: deepest, outAfter: pick(d, []time.Duration{0, 2 * time.Second, 5 * time.Second}),
		grace: pick(d, []time.Duration{0, 0, time.Second, 5 * time.Second}), patience: pick(d, []time.Duration{3 * time.Second, 15 * time.Second}),
		callTimeout: pick(d, []time.Duration{time.Second, 5 * time.Second}), attemptTime: pick(d, []time.Duration{3 * time.Second, 20 * time.Second}),
		sweepEvery: pick(d, []time.Duration{500 * time.Millisecond, 2 * time.Second}), orphanEvery: pick(d, []time.Duration{time.Second, 6 * time.Second}),
	}
	p.scrubEvery = pick(d, []time.Duration{-1, -1, 5 * time.Second})
	p.rate = pick(d, []int64{0, 0, 32 << 10})
	p.slow = d.below(2)
	p.forgets = d.chance(0.5)
	p.memory = pick(d, []int64{8 << 20, 8 << 20, 512 << 10})
	many := 4 // keys of each class
	if size == Short {
		many = 2
		p.gateways, p.clients, p.length = min(p.gateways, 2), min(p.clients, 3), p.length/16
		p.think, p.gap = min(p.think, 100*time.Millisecond), 200*time.Millisecond
		p.attemptTime, p.sweepEvery, p.orphanEvery = p.attemptTime/4, 500*time.Millisecond, time.Second
		p.restart, p.deedGap = 600*time.Millisecond, deepest/6
	}
	p.losable = ladder[0].M
	for _, scheme := range ladder {
		p.losable = min(p.losable, scheme.M)
	}
	p.agents = max(ladder.Width()+ladder.MaxParity(), wider.Width()+wider.MaxParity()) + d.below(3)
	for range p.gateways {
		skew := time.Duration(0)
		if d.chance(0.3) {
			skew = d.between(-2*time.Minute, 2*time.Minute)
		}
		p.skews = append(p.skews, skew)
	}
	packed := api.Class{Name: "packed", Prefixes: []string{"p/"}, PackBelow: 4 << 10, PackDelay: 10 * time.Millisecond}
	large := api.Class{Name: "large", Prefixes: []string{"l/"}}
	for _, class := range []api.Class{packed, large} {
		class.Ladder, class.Default, class.Mode, class.GroupBytes = ladder, pick(d, ladder), stripe.ModeFree, 64<<10
		class.HalfLife, class.Dwell, class.DeadAtMost = 24*time.Hour, time.Hour, api.MinDeadAtMost
		p.classes = append(p.classes, class)
	}
	for i := range 1 + d.below(many) {
		p.keys = append(p.keys, object{fmt.Sprintf("p/%d", i), 16 + d.below(100)}, object{fmt.Sprintf("l/%d", i), 16 + d.below(500)})
	}
	if d.chance(0.05) {
		p.keys = append(p.keys, object{"l/huge", 17_000}) // of two groups
	}
	if pieces := newDice(seed, 6); pieces.chance(0.1) {
		p.pieces = 1 + pieces.below(2)
		p.keys = append(p.keys, object{"l/long", 33_000}) // of three groups
	}
	if p.isWide {
		p.deedGap /= 3
		for i := range 5 {
			p.keys = append(p.keys, object{fmt.Sprintf("l/alike%d", i), 100}) // of one cell size
		}
	}
	for _, kind := range kinds {
		if d.chance(0.5) {
			p.kinds = append(p.kinds, kind)
		}
	}
	p.classes[0].PackMode = pick(d, []api.PackMode{api.PackBatch, api.PackBatch, ""})
	p.repeats = newDice(seed, 9).chance(0.2)
	if newDice(seed, 10).chance(0.3) {
		p.cache = 1 << 20 // room for all: which of them stay is not decided by the seed
	}
	if later := newDice(seed, 11); !p.isWide && later.chance(0.3) {
		if p.another = p.anotherLadder(later); p.another != nil {
			p.deedGap /= 3 // else hardly any short run has time for it
		}
	}
	if versions := newDice(seed, 8); versions.chance(0.2) {
		for i := range p.classes {
			p.classes[i].Keep = api.KeepVersions(versions.below(3))
		}
	}
	p.compactEvery = pick(d, []time.Duration{-1, 100 * time.Millisecond, time.Second})
	return p
}

// anotherLadder is one that the nodes suffice for, and under which as many of them may lose blocks; nil if the one drawn is not.
func (p *plan) anotherLadder(d *dice) stripe.Ladder {
	ladder := mustParse(pick(d, ladders))
	for _, scheme := range ladder {
		if scheme.M < p.losable {
			return nil
		}
	}
	if ladder.String() == p.ladder.String() || ladder.Width()+ladder.MaxParity() > p.agents {
		return nil
	}
	return ladder
}

func mustParse(ladder string) stripe.Ladder {
	parsed, err := stripe.ParseLadder(ladder)
	if err != nil {
		panic(fmt.Sprintf("the list of ladders is wrong: %v", err)) // invariant: constant input
	}
	return parsed
}

// schemes are all that classes may have at some time.
func (p *plan) schemes() stripe.Ladder { return slices.Concat(p.ladder, p.another) }

// keeps is how many earlier versions an object has at most.
func (p *plan) keeps(o object) (most int) {
	for i := range p.classes {
		if strings.HasPrefix(o.key, p.classes[i].Prefixes[0]) {
			most = int(p.classes[i].Keep)
		}
	}
	return most
}

// mostSkew is by how much a clock of a gateway may be off at some time.
func (p *plan) mostSkew() (most time.Duration) {
	for _, skew := range p.skews {
		most = max(most, skew.Abs())
	}
	for _, kind := range p.kinds {
		if kind.name == jumpingClocks {
			most = max(most, mostJump)
		}
	}
	return most
}

func (p *plan) String() string {
	names := make([]string, len(p.kinds))
	for i, kind := range p.kinds {
		names[i] = kind.name
	}
	another := ""
	if p.another != nil {
		another = fmt.Sprintf(", or %s,", p.another)
	}
	return fmt.Sprintf("%s%s on %d agents, %d gateways (clocks off by %v), %d clients and %d slow ones on %d keys, %s of trouble: %s",
		p.ladder, another, p.agents, p.gateways, p.skews, p.clients, p.slow, len(p.keys), p.length.Round(time.Millisecond), strings.Join(names, ", "))
}

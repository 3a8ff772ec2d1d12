package sim

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/restripe/restripe/agent/catalog"
)

// kind is one kind of trouble: begin causes it and returns how it is put right, nil where it needs nothing.
type kind struct {
	name  string
	begin func(t *trouble, d *dice) (end func())
}

var kinds = []kind{
	{"agents crash", (*trouble).crashAgent},
	{"gateways crash", (*trouble).crashGateway},
	{"partitions", (*trouble).partition},
	{"messages lost", (*trouble).loseMessages},
	{"messages repeated", (*trouble).repeatMessages},
	{"messages late", (*trouble).delayMessages},
	{"slow processes", (*trouble).slowProcess},
	{jumpingClocks, (*trouble).jumpClock},
	{"slow disks", (*trouble).slowDisk},
	{"full disks", (*trouble).fullDisk},
	{"disks that do not answer", (*trouble).muteDisk},
	{"catalog requests lost", (*trouble).loseUpdates},
	{"catalog requests late", (*trouble).delayUpdates},
	{"bits flipped at rest", (*trouble).flipBits},
	{"blocks vanished", (*trouble).vanishBlocks},
	{"stores emptied", (*trouble).emptyStore},
	{"stores mistaken", (*trouble).mistakeStores},
	{"stores that go back", (*trouble).goBack},
	{"old catalogs", (*trouble).putBack},
	{"copies of the catalog", (*trouble).copyCatalog},
	{"leaders of the catalog lost", (*trouble).loseLeader},
}

// trouble causes the faults that the plan has, and ends them.
type trouble struct {
	plan    *plan
	journal *journal
	network *network
	links   *links
	cluster *cluster
	losses  *losses

	mutex  sync.Mutex
	faults int
	stray  stray
}

// cause lets happen what the plan has until ctx ends, and then puts everything right that is still wrong.
func (t *trouble) cause(ctx context.Context, d *dice) {
	if len(t.plan.kinds) == 0 {
		return
	}
	for wait(ctx, d.between(0, t.plan.gap)) == nil {
		chosen := pick(d, t.plan.kinds)
		end := chosen.begin(t, d)
		if end == nil {
			continue
		}
		length := d.between(20*time.Millisecond, t.plan.restart)
		go func() {
			if wait(ctx, length) == nil { // else calm does
				end()
			}
		}()
	}
}

func (t *trouble) fault(who, format string, values ...any) {
	t.journal.write(who, "FAULT "+format, values...)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.faults++
}

// calm ends every trouble there is.
func (t *trouble) calm() {
	t.endStray()
	t.network.mutex.Lock()
	t.network.odds = networkOdds{}
	clear(t.network.slow)
	t.network.mutex.Unlock()
	t.network.heal()
	t.links.mutex.Lock()
	t.links.odds = linkOdds{}
	t.links.mutex.Unlock()
	t.links.elected()
	for _, a := range t.cluster.agents {
		a.disk.mutex.Lock()
		a.disk.full, a.disk.slow, a.disk.odds = false, 0, diskOdds{}
		a.disk.mutex.Unlock()
		if a.isMistaken() {
			a.mistake(nil)
		} else if !a.isAlive() {
			a.start()
		}
	}
	for _, s := range t.cluster.servers {
		if !s.isAlive() {
			s.start()
		}
	}
	t.journal.write("world", "all is put right")
}

func (t *trouble) crashAgent(d *dice) func() {
	a := pick(d, t.cluster.agents)
	if !a.isAlive() {
		return nil
	}
	t.fault(string(a.id), "crash")
	a.crash()
	return func() {
		if !a.isAlive() {
			a.start()
		}
	}
}

func (t *trouble) crashGateway(d *dice) func() {
	s := pick(d, t.cluster.servers)
	if !s.isAlive() {
		return nil
	}
	t.fault(s.name, "crash")
	s.crash()
	return func() {
		if !s.isAlive() {
			s.start()
		}
	}
}

// partition cuts ways between two sides, or one way of them.
func (t *trouble) partition(d *dice) func() {
	names := t.cluster.names()
	size := 1 + d.below(len(names)/2)
	side := map[string]bool{}
	for range size {
		side[pick(d, names)] = true
	}
	oneWay := d.chance(0.4)
	t.fault("net", "partition of %d processes, one way %v", len(side), oneWay)
	for _, a := range names {
		for _, b := range names {
			if side[a] && !side[b] {
				t.network.block(a, b)
				if !oneWay {
					t.network.block(b, a)
				}
			}
		}
	}
	return t.network.heal
}

func (t *trouble) loseMessages(d *dice) func() {
	p := pick(d, []float64{0.005, 0.02, 0.1})
	t.fault("net", "messages are lost with %v", p)
	return t.network.with(func(odds *networkOdds) { odds.lose = p })
}

func (t *trouble) repeatMessages(d *dice) func() {
	p := pick(d, []float64{0.02, 0.1, 0.3})
	t.fault("net", "requests are repeated with %v", p)
	return t.network.with(func(odds *networkOdds) { odds.twice = p })
}

func (t *trouble) delayMessages(d *dice) func() {
	p := pick(d, []float64{0.01, 0.1})
	t.fault("net", "messages are late with %v", p)
	return t.network.with(func(odds *networkOdds) { odds.late = p })
}

func (t *trouble) slowProcess(d *dice) func() {
	name := pick(d, t.cluster.names()[1:])
	extra := pick(d, []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second})
	t.fault(name, "slow by up to %s", extra)
	t.network.mutex.Lock()
	defer t.network.mutex.Unlock()
	t.network.slow[name] = extra
	return func() {
		t.network.mutex.Lock()
		defer t.network.mutex.Unlock()
		delete(t.network.slow, name)
	}
}

const (
	jumpingClocks = "clocks that jump"
	mostJump      = 3 * time.Minute
)

// jumpClock sets the clock of a gateway forth or back, and right again later.
func (t *trouble) jumpClock(d *dice) func() {
	s, skew := pick(d, t.cluster.servers), d.between(-mostJump, mostJump)
	t.fault(s.name, "its clock jumps to %s off", skew)
	was := s.jump(skew)
	return func() { s.jump(was) }
}

func (t *trouble) slowDisk(d *dice) func() {
	a, extra := pick(d, t.cluster.agents), pick(d, []time.Duration{10 * time.Millisecond, 500 * time.Millisecond})
	t.fault(string(a.id), "disk slow by up to %s", extra)
	return a.disk.with(func(x *disk) { x.slow = extra }, func(x *disk) { x.slow = 0 })
}

func (t *trouble) fullDisk(d *dice) func() {
	a := pick(d, t.cluster.agents)
	t.fault(string(a.id), "disk full")
	return a.disk.with(func(x *disk) { x.full = true }, func(x *disk) { x.full = false })
}

func (t *trouble) muteDisk(d *dice) func() {
	a, odds := pick(d, t.cluster.agents), diskOdds{refuse: pick(d, []float64{0.02, 0.2}), mute: pick(d, []float64{0, 0.05, 0.2})}
	t.fault(string(a.id), "disk does not answer with %v", odds)
	return a.disk.with(func(x *disk) { x.odds = odds }, func(x *disk) { x.odds = diskOdds{} })
}

func (t *trouble) loseUpdates(d *dice) func() {
	p := pick(d, []float64{0.02, 0.15})
	t.fault(catalogName, "requests and answers are lost with %v", p)
	return t.links.with(linkOdds{loseRequest: p, loseAnswer: p})
}

// loseLeader has the engine of the catalog elect another leader: nobody is answered until it has, and some of the updates that are asked for
// meanwhile take effect and some do not.
func (t *trouble) loseLeader(*dice) func() {
	t.fault(catalogName, "the leader is lost")
	t.links.elect()
	return t.links.elected
}

func (t *trouble) delayUpdates(d *dice) func() {
	p := pick(d, []float64{0.02, 0.15})
	t.fault(catalogName, "requests come late or twice with %v", p)
	return t.links.with(linkOdds{late: p, twice: p, crawl: p})
}

// blocks picks up to limit blocks at rest of an agent's disk.
func blocks(d *dice, a *agent, limit int) []string {
	var chosen []string
	for range limit {
		keys := a.disk.keys()
		if len(keys) == 0 {
			break
		}
		chosen = append(chosen, pick(d, keys))
	}
	return chosen
}

func (t *trouble) flipBits(d *dice) func() {
	a := pick(d, t.cluster.agents)
	if !t.losses.mayLose(a.id) {
		return nil
	}
	for _, key := range blocks(d, a, 1+d.below(3)) {
		t.losses.lose(a.id, "")
		t.fault(string(a.id), "a bit of %s flips", key)
		a.disk.values.Damage(key, func(value []byte) []byte {
			if len(value) > 0 {
				value[d.below(len(value))] ^= 1 << d.below(8)
			}
			return value
		})
	}
	return nil
}

func (t *trouble) vanishBlocks(d *dice) func() {
	a := pick(d, t.cluster.agents)
	if !t.losses.mayLose(a.id) {
		return nil
	}
	for _, key := range blocks(d, a, 1+d.below(3)) {
		t.losses.lose(a.id, "")
		t.fault(string(a.id), "%s vanishes", key)
		a.disk.remove(key)
	}
	return nil
}

func (t *trouble) emptyStore(d *dice) func() {
	a := pick(d, t.cluster.agents)
	if t.areMistaken() || !t.losses.mayLose(a.id) {
		return nil // an empty store is whoever's comes first
	}
	t.losses.lose(a.id, "")
	restart := d.chance(0.5) && a.isAlive()
	t.fault(string(a.id), "the store is emptied, with a crash %v", restart)
	if restart {
		a.crash()
	}
	a.disk.erase()
	if !restart {
		return nil
	}
	return func() {
		if !a.isAlive() {
			a.start()
		}
	}
}

// mistakeStores starts an agent on the disk of another node, or each of two on the other's, as people do who move disks or
// copy a configuration.
func (t *trouble) mistakeStores(d *dice) func() {
	a, b := pick(d, t.cluster.agents), pick(d, t.cluster.agents)
	if a == b || t.areMistaken() || a.disk.marker(ownerKey) == "" || b.disk.marker(ownerKey) == "" {
		return nil
	}
	exchanged := d.chance(0.5)
	t.fault("world", "%s is started on the disk of %s, exchanged %v", b.id, a.id, exchanged)
	b.mistake(a.disk)
	if exchanged {
		a.mistake(b.disk)
	}
	return func() {
		for _, x := range []*agent{a, b} {
			if x.isMistaken() {
				x.mistake(nil)
			}
		}
	}
}

// isBelieved reports whether a marker is that which the disk of an agent has, or that which the catalog knows: then it says
// nothing of what the disk lost under it.
func (t *trouble) isBelieved(a *agent, marker string) bool {
	incarnations, err := t.losses.ledger.records.Incarnations(context.Background())
	if err != nil {
		t.journal.violate(Setup, "reading incarnations: %v", err)
	}
	return marker == a.disk.marker(incarnationKey) || marker == string(incarnations[a.id])
}

func (t *trouble) areMistaken() bool {
	return slices.ContainsFunc(t.cluster.agents, (*agent).isMistaken)
}

// goBack has a store become what it was a while ago, its markers too: blocks that were acknowledged since are gone, and
// blocks that were deleted are there again. Its agent may go on meanwhile. Of a store that loses nothing by itself somebody
// puts the files of earlier back. Then its marker tells, or its high-water mark does to an agent that starts on it: one that
// goes on would see only with its next mark.
func (t *trouble) goBack(d *dice) func() {
	a, crash := pick(d, t.cluster.agents), d.chance(0.5)
	saved := a.disk.snapshot()
	return func() {
		believed, under := a.disk.durable && t.isBelieved(a, saved.marker()), ""
		if t.areMistaken() || believed && !t.isAboveWater(a, saved) || !t.losses.mayLose(a.id) {
			return
		}
		if believed {
			under = saved.marker()
		}
		t.losses.lose(a.id, under)
		restart := (crash || believed) && a.isAlive()
		t.fault(string(a.id), "the store goes back, with a crash %v, under the same marker %v", restart, believed)
		if restart {
			a.crash()
		}
		a.disk.goBack(saved)
		if restart {
			a.start()
		}
	}
}

// isAboveWater reports whether the catalog has a higher mark of an agent's store than it had when it was saved, and agents are
// told of no other catalog.
func (t *trouble) isAboveWater(a *agent, saved *snapshot) bool {
	views, err := t.losses.ledger.records.Views(context.Background())
	if err != nil {
		t.journal.violate(Setup, "reading what gateways hear: %v", err)
	}
	return !t.losses.ledger.astray.Load() && slices.ContainsFunc(views, func(view catalog.View) bool {
		mark := view.Water[a.id]
		return string(mark.Contents) == saved.marker() && mark.Mark > saved.water()
	})
}

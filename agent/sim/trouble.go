package sim

import (
	"context"
	"time"

	"github.com/restripe/restripe/agent/block"
)

// kind is one kind of trouble: begin causes it and returns how it is put right, nil where it needs nothing.
type kind struct {
	name  string
	begin func(w *world, d *dice) (end func())
}

var kinds = []kind{
	{"agents crash", (*world).crashAgent},
	{"gateways crash", (*world).crashGateway},
	{"partitions", (*world).partition},
	{"messages lost", (*world).loseMessages},
	{"messages repeated", (*world).repeatMessages},
	{"messages late", (*world).delayMessages},
	{"slow processes", (*world).slowProcess},
	{"slow disks", (*world).slowDisk},
	{"full disks", (*world).fullDisk},
	{"disks that do not answer", (*world).muteDisk},
	{"catalog requests lost", (*world).loseUpdates},
	{"catalog requests late", (*world).delayUpdates},
	{"bits flipped at rest", (*world).flipBits},
	{"blocks vanished", (*world).vanishBlocks},
	{"stores emptied", (*world).emptyStore},
}

// trouble causes what the plan has until ctx ends, and then puts everything right that is still wrong.
func (w *world) trouble(ctx context.Context, d *dice) {
	if len(w.plan.kinds) == 0 {
		return
	}
	for wait(ctx, d.between(0, w.plan.gap)) == nil {
		chosen := pick(d, w.plan.kinds)
		end := chosen.begin(w, d)
		if end == nil {
			continue
		}
		length := d.between(20*time.Millisecond, w.plan.restart)
		go func() {
			if wait(ctx, length) == nil { // else calm does
				end()
			}
		}()
	}
}

func (w *world) fault(who, format string, values ...any) {
	w.journal.write(who, "FAULT "+format, values...)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.faults++
}

// calm ends every trouble there is.
func (w *world) calm() {
	w.network.mutex.Lock()
	w.network.odds = networkOdds{}
	clear(w.network.slow)
	w.network.mutex.Unlock()
	w.network.heal()
	w.mutex.Lock()
	w.linkOdds = linkOdds{}
	w.mutex.Unlock()
	for _, a := range w.agents {
		a.disk.mutex.Lock()
		a.disk.full, a.disk.slow, a.disk.odds = false, 0, diskOdds{}
		a.disk.mutex.Unlock()
		if !a.isAlive() {
			a.start()
		}
	}
	for _, s := range w.servers {
		if !s.isAlive() {
			s.start()
		}
	}
	w.journal.write("world", "all is put right")
}

func (w *world) crashAgent(d *dice) func() {
	a := pick(d, w.agents)
	if !a.isAlive() {
		return nil
	}
	w.fault(string(a.id), "crash")
	a.crash()
	return func() {
		if !a.isAlive() {
			a.start()
		}
	}
}

func (w *world) crashGateway(d *dice) func() {
	s := pick(d, w.servers)
	if !s.isAlive() {
		return nil
	}
	w.fault(s.name, "crash")
	s.crash()
	return func() {
		if !s.isAlive() {
			s.start()
		}
	}
}

// names are all that the network connects.
func (w *world) names() []string {
	names := []string{catalogName}
	for _, a := range w.agents {
		names = append(names, string(a.id))
	}
	for _, s := range w.servers {
		names = append(names, s.name)
	}
	return names
}

// partition cuts ways between two sides, or one way of them.
func (w *world) partition(d *dice) func() {
	names := w.names()
	size := 1 + d.below(len(names)/2)
	side := map[string]bool{}
	for range size {
		side[pick(d, names)] = true
	}
	oneWay := d.chance(0.4)
	w.fault("net", "partition of %d processes, one way %v", len(side), oneWay)
	for _, a := range names {
		for _, b := range names {
			if side[a] && !side[b] {
				w.network.block(a, b)
				if !oneWay {
					w.network.block(b, a)
				}
			}
		}
	}
	return w.network.heal
}

// withOdds changes the odds of messages for a while.
func (w *world) withOdds(change func(*networkOdds)) func() {
	w.network.mutex.Lock()
	defer w.network.mutex.Unlock()
	change(&w.network.odds)
	return func() {
		w.network.mutex.Lock()
		defer w.network.mutex.Unlock()
		w.network.odds = networkOdds{}
	}
}

func (w *world) loseMessages(d *dice) func() {
	p := pick(d, []float64{0.005, 0.02, 0.1})
	w.fault("net", "messages are lost with %v", p)
	return w.withOdds(func(odds *networkOdds) { odds.lose = p })
}

func (w *world) repeatMessages(d *dice) func() {
	p := pick(d, []float64{0.02, 0.1, 0.3})
	w.fault("net", "requests are repeated with %v", p)
	return w.withOdds(func(odds *networkOdds) { odds.twice = p })
}

func (w *world) delayMessages(d *dice) func() {
	p := pick(d, []float64{0.01, 0.1})
	w.fault("net", "messages are late with %v", p)
	return w.withOdds(func(odds *networkOdds) { odds.late = p })
}

func (w *world) slowProcess(d *dice) func() {
	name := pick(d, w.names()[1:])
	extra := pick(d, []time.Duration{20 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second})
	w.fault(name, "slow by up to %s", extra)
	w.network.mutex.Lock()
	defer w.network.mutex.Unlock()
	w.network.slow[name] = extra
	return func() {
		w.network.mutex.Lock()
		defer w.network.mutex.Unlock()
		delete(w.network.slow, name)
	}
}

// withDisk changes a disk for a while.
func (w *world) withDisk(a *agent, change, back func(*disk)) func() {
	a.disk.mutex.Lock()
	defer a.disk.mutex.Unlock()
	change(a.disk)
	return func() {
		a.disk.mutex.Lock()
		defer a.disk.mutex.Unlock()
		back(a.disk)
	}
}

func (w *world) slowDisk(d *dice) func() {
	a, extra := pick(d, w.agents), pick(d, []time.Duration{10 * time.Millisecond, 500 * time.Millisecond})
	w.fault(string(a.id), "disk slow by up to %s", extra)
	return w.withDisk(a, func(x *disk) { x.slow = extra }, func(x *disk) { x.slow = 0 })
}

func (w *world) fullDisk(d *dice) func() {
	a := pick(d, w.agents)
	w.fault(string(a.id), "disk full")
	return w.withDisk(a, func(x *disk) { x.full = true }, func(x *disk) { x.full = false })
}

func (w *world) muteDisk(d *dice) func() {
	a, odds := pick(d, w.agents), diskOdds{refuse: pick(d, []float64{0.02, 0.2}), mute: pick(d, []float64{0, 0.05, 0.2})}
	w.fault(string(a.id), "disk does not answer with %v", odds)
	return w.withDisk(a, func(x *disk) { x.odds = odds }, func(x *disk) { x.odds = diskOdds{} })
}

func (w *world) withLink(odds linkOdds) func() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.linkOdds = odds
	return func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.linkOdds = linkOdds{}
	}
}

func (w *world) loseUpdates(d *dice) func() {
	p := pick(d, []float64{0.02, 0.15})
	w.fault(catalogName, "requests and answers are lost with %v", p)
	return w.withLink(linkOdds{loseRequest: p, loseAnswer: p})
}

func (w *world) delayUpdates(d *dice) func() {
	p := pick(d, []float64{0.02, 0.15})
	w.fault(catalogName, "requests come late or twice with %v", p)
	return w.withLink(linkOdds{late: p, twice: p})
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

func (w *world) flipBits(d *dice) func() {
	a := pick(d, w.agents)
	if !w.mayLose(a.id) {
		return nil
	}
	for _, key := range blocks(d, a, 1+d.below(3)) {
		w.lose(a.id)
		w.fault(string(a.id), "a bit of %s flips", key)
		a.disk.values.Damage(key, func(value []byte) []byte {
			if len(value) > 0 {
				value[d.below(len(value))] ^= 1 << d.below(8)
			}
			return value
		})
	}
	return nil
}

func (w *world) vanishBlocks(d *dice) func() {
	a := pick(d, w.agents)
	if !w.mayLose(a.id) {
		return nil
	}
	for _, key := range blocks(d, a, 1+d.below(3)) {
		w.lose(a.id)
		w.fault(string(a.id), "%s vanishes", key)
		a.disk.remove(key)
	}
	return nil
}

func (w *world) emptyStore(d *dice) func() {
	a := pick(d, w.agents)
	if !w.mayLose(a.id) {
		return nil
	}
	w.lose(a.id)
	restart := d.chance(0.5) && a.isAlive()
	w.fault(string(a.id), "the store is emptied, with a crash %v", restart)
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

// loss is a node that has lost blocks which are not all rebuilt yet.
type loss struct {
	attempts []string // that were active since: their groups may miss what was lost
}

// mayLose reports whether a node may lose blocks without more of a group's nodes missing some than its code survives.
func (w *world) mayLose(id block.NodeID) bool {
	w.forgetLosses()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	others := 0
	for other := range w.losses {
		if other != id {
			others++
		}
	}
	return others < w.plan.losable
}

func (w *world) lose(id block.NodeID) {
	attempts := w.attempts()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.losses[id] = &loss{attempts: attempts}
}

func (w *world) hasLost(id block.NodeID) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.losses[id] != nil
}

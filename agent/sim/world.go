package sim

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	catalogmem "github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/sim/register"
)

// Result is what a run came to.
type Result struct {
	Seed        uint64
	Violation   string  // the first promise that was broken; empty: none
	Promise     Promise // which it was
	Operations  int     // of clients, of which the outcome is known
	Commits     int     // of group records, each checked whole
	Compactions int     // that moved objects
	Splices     int     // of them, those that left objects on their nodes
	Dissolved   int     // groups whose columns came to lie in others
	Returned    int     // and those that got them back
	Faults      int
	Lines       int           // of the journal
	Simulated   time.Duration // how long the run took by its own clock
}

// world is one run: its parts, and how it goes.
type world struct {
	plan     *plan
	journal  *journal
	ledger   *ledger
	disks    disks
	checker  *checker
	cluster  *cluster
	history  *history
	clients  *clients
	operator *operator
	trouble  *trouble
}

// Run carries out the run of a seed and writes its journal to out.
func Run(seed uint64, size Size, out io.Writer) Result {
	j := &journal{out: out, began: time.Now()}
	p := newPlan(seed, size)
	j.write("plan", "seed %d %s: %s", seed, size, &p)
	w, err := build(seed, &p, j)
	if err != nil {
		j.violate(Setup, "opening the catalog: %v", err)
		return j.result(seed)
	}
	for _, a := range w.cluster.agents {
		a.start()
	}
	for _, s := range w.cluster.servers {
		s.start()
	}
	w.live(seed)
	w.settle(seed)
	w.history.check(p.keys)
	return w.result(seed)
}

// build puts the parts together, each over those before it. Nothing runs yet.
func build(seed uint64, p *plan, j *journal) (*world, error) {
	w := &world{plan: p, journal: j, cluster: &cluster{}}
	engine := catalogmem.New()
	records, err := catalog.Open(context.Background(), engine, catalog.Owner("checker", "0"))
	if err != nil {
		return nil, err
	}
	w.ledger = &ledger{journal: j, engine: engine, records: records}
	for i := range p.agents {
		id := block.NodeID(fmt.Sprintf("n%d", i+1))
		w.disks = append(w.disks, newDisk(w.ledger, id, newDice(seed, 100+uint64(i))))
	}
	lost := &losses{ledger: w.ledger, disks: w.disks, losable: p.losable, lost: map[block.NodeID]*loss{}}
	w.checker = &checker{
		journal: j, ledger: w.ledger, disks: w.disks, losses: lost,
		generated: map[block.GroupID][2]block.Stamp{}, parities: map[block.GroupID]int{}, lies: map[block.GroupID]bool{},
	}
	net := newNetwork(j, newDice(seed, 1))
	ways := &links{journal: j, network: net, checker: w.checker, dice: newDice(seed, 2), mayLose: p.forgets}
	for _, d := range w.disks {
		w.cluster.agents = append(w.cluster.agents, &agent{journal: j, network: net, id: d.name, disk: d, memory: p.memory})
	}
	for i := range p.gateways {
		w.cluster.servers = append(w.cluster.servers, &server{
			plan: p, journal: j, network: net, links: ways, agents: w.cluster.agents,
			name: fmt.Sprintf("gw%d", i+1), id: fmt.Sprintf("gw%d", i+1), skew: p.skews[i],
		})
	}
	w.history = &history{journal: j, calls: map[string][]porcupine.Operation{}, unknowns: map[string]int{}, put: map[version]register.Value{}}
	w.clients = &clients{plan: p, journal: j, cluster: w.cluster, history: w.history}
	w.operator = &operator{plan: p, journal: j, ledger: w.ledger, cluster: w.cluster}
	w.trouble = &trouble{plan: p, journal: j, network: net, links: ways, cluster: w.cluster, losses: lost}
	w.clients.trouble = w.trouble
	return w, nil
}

// live lets clients, the operator and trouble do their work for as long as the plan says.
func (w *world) live(seed uint64) {
	ctx, stop := context.WithTimeout(context.Background(), w.plan.length)
	defer stop()
	var all sync.WaitGroup
	for i := range w.plan.clients + w.plan.slow {
		all.Go(func() { w.clients.work(ctx, newDice(seed, 1000+uint64(i)), i >= w.plan.clients) })
	}
	all.Go(func() { w.operator.operate(ctx, newDice(seed, 3)) })
	all.Go(func() { w.trouble.cause(ctx, newDice(seed, 4)) })
	all.Wait()
}

func (w *world) result(seed uint64) Result {
	r := w.journal.result(seed)
	w.history.mutex.Lock()
	r.Operations = w.history.known
	w.history.mutex.Unlock()
	w.checker.mutex.Lock()
	r.Commits, r.Dissolved, r.Returned = w.checker.commits, w.checker.dissolved, w.checker.returned
	w.checker.mutex.Unlock()
	w.trouble.mutex.Lock()
	r.Faults = w.trouble.faults
	w.trouble.mutex.Unlock()
	return r
}

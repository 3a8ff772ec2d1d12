package sim

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	catalogmem "github.com/restripe/restripe/agent/catalog/mem"
)

// Result is what a run came to.
type Result struct {
	Seed       uint64
	Violation  string // the first promise that was broken; empty: none
	Operations int    // of clients, of which the outcome is known
	Commits    int    // of group records, each checked whole
	Faults     int
	Lines      int           // of the journal
	Simulated  time.Duration // how long the run took by its own clock
}

// world is one run.
type world struct {
	plan     plan
	journal  *journal
	network  *network
	engine   *catalogmem.Engine
	records  *catalog.Catalog // the checker's view of engine, with nothing in between
	linkDice *dice
	agents   []*agent
	servers  []*server

	mutex     sync.Mutex
	linkOdds  linkOdds
	history   map[string][]porcupine.Operation
	clock     int64 // orders the calls and answers of histories
	number    uint32
	unknowns  map[string]int
	known     int
	commits   int
	faults    int
	losses    map[block.NodeID]*loss
	generated map[block.GroupID][2]block.Stamp // generation and epoch of every group
}

// Run carries out the run of a seed and writes its journal to out.
func Run(seed uint64, size Size, out io.Writer) Result {
	j := &journal{out: out, began: time.Now()}
	w := &world{
		plan: newPlan(seed, size), journal: j, network: newNetwork(j, newDice(seed, 1)), engine: catalogmem.New(), linkDice: newDice(seed, 2),
		history: map[string][]porcupine.Operation{}, unknowns: map[string]int{}, losses: map[block.NodeID]*loss{},
		generated: map[block.GroupID][2]block.Stamp{},
	}
	j.write("plan", "seed %d %s: %s", seed, size, &w.plan)
	records, err := catalog.Open(context.Background(), w.engine, catalog.Owner("checker", "0"))
	if err != nil {
		j.violate("opening the catalog: %v", err)
		return w.result(seed)
	}
	w.records = records
	for i := range w.plan.agents {
		id := block.NodeID(fmt.Sprintf("n%d", i+1))
		w.agents = append(w.agents, &agent{world: w, id: id, disk: newDisk(w, id, newDice(seed, 100+uint64(i)))})
	}
	for i := range w.plan.gateways {
		w.servers = append(w.servers, &server{world: w, name: fmt.Sprintf("gw%d", i+1), skew: w.plan.skews[i]})
	}
	for _, a := range w.agents {
		a.start()
	}
	for _, s := range w.servers {
		s.start()
	}
	w.live(seed)
	w.settle(seed)
	w.checkHistories()
	return w.result(seed)
}

// live lets clients, the operator and trouble do their work for as long as the plan says.
func (w *world) live(seed uint64) {
	ctx, stop := context.WithTimeout(context.Background(), w.plan.length)
	defer stop()
	var all sync.WaitGroup
	for i := range w.plan.clients {
		all.Go(func() { w.client(ctx, newDice(seed, 1000+uint64(i))) })
	}
	all.Go(func() { w.operate(ctx, newDice(seed, 3)) })
	all.Go(func() { w.trouble(ctx, newDice(seed, 4)) })
	all.Wait()
}

func (w *world) result(seed uint64) Result {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return Result{
		Seed: seed, Violation: w.journal.violation(), Operations: w.known, Commits: w.commits, Faults: w.faults,
		Lines: w.journal.lines, Simulated: time.Since(w.journal.began),
	}
}

// apply carries out an update of the catalog and looks at what it did before anybody else can.
func (w *world) apply(checks []catalog.Check, writes []catalog.Write) ([]int, error) {
	failed, err := w.engine.Update(context.Background(), checks, writes)
	if err != nil || len(failed) > 0 {
		return failed, err
	}
	for _, write := range writes {
		name, isGroup := strings.CutPrefix(write.Key, "g/")
		if !isGroup {
			continue
		}
		id, err := block.ParseGroupID(name)
		if err != nil {
			w.journal.violate("record %q: %v", write.Key, err)
			continue
		}
		if write.Kind == catalog.Remove {
			w.journal.write(catalogName, "group %s is freed", id)
			continue
		}
		w.checkCommit(id)
	}
	return nil, nil
}

func (w *world) linkOddsNow() linkOdds {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.linkOdds
}

// tick orders what clients see.
func (w *world) tick() int64 {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.clock++
	return w.clock
}

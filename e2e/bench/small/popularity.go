package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/arrange"
	"github.com/restripe/restripe/agent/gateway/compact"
	"github.com/restripe/restripe/agent/heat/sketch"
)

// The part popularity counts what compaction moves in a model of a class: its groups, what lives in them, and time, which passes with
// the writes. Which objects lie together and which groups are emptied the model asks what the gateway asks, arrange and sketch; what it
// leaves out is bytes, nodes and the catalog. So it is the same in every run, whatever else the machine does.
const (
	popularRuns   = 3   // seeds
	popularTurns  = 8   // writes to one object, of which the second half is counted
	popularPeriod = 300 // seconds in which as many objects are written as there are
	popularSize   = 4 << 10
)

// workload is who writes what.
type workload struct {
	name  string
	theta float64 // of the Zipf distribution of keys; 0: uniform
	mixed bool    // sizes of leastSize to mostSize instead of popularSize
	batch int     // objects that are put together
}

// The batches are what 64 clients and 400 put together.
func workloads() (list []workload) {
	for _, batch := range []int{48, 320} {
		for _, mixed := range []bool{false, true} {
			for _, keys := range []workload{{name: "Zipf 0.99", theta: 0.99}, {name: "Zipf 0.8", theta: 0.8}, {name: "uniform"}} {
				keys.batch, keys.mixed = batch, mixed
				list = append(list, keys)
			}
		}
	}
	return list
}

// packed is a group of the model.
type packed struct {
	arrange.Candidate
	keys []int // that were put or moved into it
	made time.Time
}

// model is a class.
type model struct {
	workload
	random  *rand.Rand
	names   []string
	sizes   []int64
	at      []*packed // where objects lie; nil: nowhere yet
	groups  map[block.GroupID]*packed
	counted *sketch.Sketch // nil: keys are not told from each other
	clock   time.Time
	made    uint64 // groups

	written, moved, putGroups, live, taken int64
}

func newModel(w workload, objects int, seed uint64, popularity bool) *model {
	m := &model{
		workload: w, random: rand.New(rand.NewPCG(seed, 5)), names: make([]string, objects), sizes: make([]int64, objects),
		at: make([]*packed, objects), groups: map[block.GroupID]*packed{}, clock: time.Unix(0, 0),
	}
	for i := range m.names {
		m.names[i], m.sizes[i] = subjectKey(i), popularSize
		if w.mixed {
			m.sizes[i] = int64(leastSize + m.random.IntN(mostSize-leastSize+1))
		}
	}
	if popularity {
		m.counted = sketch.New(api.DefaultHalfLife, m.clock)
	}
	return m
}

func (m *model) counts(key int) sketch.Counts {
	if m.counted == nil {
		return sketch.Counts{}
	}
	return m.counted.Of(m.names[key], m.clock)
}

// group puts objects into a group, wherever they lay.
func (m *model) group(keys []int) {
	m.made++
	fresh := &packed{keys: slices.Clone(keys), made: m.clock}
	fresh.ID, fresh.Columns, fresh.Extents = block.GroupID{Stamp: block.Stamp{Sequence: m.made}}, deadColumns, int64(len(keys))
	for _, key := range keys {
		if old := m.at[key]; old != nil {
			old.Live, old.Extents = old.Live-m.sizes[key], old.Extents-1
			if old.Extents == 0 {
				delete(m.groups, old.ID)
			}
		}
		m.at[key] = fresh
		fresh.Live += m.sizes[key]
	}
	fresh.Capacity = fresh.Live
	m.groups[fresh.ID] = fresh
}

// put writes objects that came together.
func (m *model) put(keys []int) {
	for _, key := range keys {
		m.written += m.sizes[key]
		if m.counted != nil {
			m.counted.Wrote(m.names[key], m.clock)
		}
	}
	popular := arrange.Halves(keys, func(key int) int { return int(m.sizes[key]) }, m.counts)
	for _, part := range [][]int{keys[:popular], keys[popular:]} {
		if len(part) > 0 {
			m.group(part)
			m.putGroups++
		}
	}
}

// read counts a read.
func (m *model) read(key int) {
	if m.counted != nil {
		m.counted.Read(m.names[key], m.clock)
	}
}

// compact carries out a pass.
func (m *model) compact() {
	var settled []arrange.Candidate
	for _, group := range m.groups {
		if group.Age = m.clock.Sub(group.made); group.Age >= compact.DefaultSettled {
			settled = append(settled, group.Candidate)
		}
	}
	chosen := arrange.Choose(settled, api.DefaultDeadAtMost, false)
	if !arrange.IsWorth(chosen) {
		return
	}
	var window []int
	bytes := int64(0)
	for i := range chosen {
		if bytes >= compact.WindowGroups*api.DefaultGroupBytes {
			m.move(window)
			window, bytes = nil, 0
		}
		for _, key := range m.groups[chosen[i].ID].keys {
			if m.at[key].ID == chosen[i].ID {
				window, bytes = append(window, key), bytes+m.sizes[key]
			}
		}
	}
	m.move(window)
}

// move fills new groups.
func (m *model) move(keys []int) {
	arrange.Order(keys, m.counts)
	for len(keys) > 0 {
		n, bytes := 0, int64(0)
		for n < len(keys) && (n == 0 || bytes+m.sizes[keys[n]] <= api.DefaultGroupBytes) && n < compact.MostObjects {
			n, bytes = n+1, bytes+m.sizes[keys[n]]
		}
		m.group(keys[:n])
		m.moved += bytes
		keys = keys[n:]
	}
}

// run puts all objects once, and then writes and reads them as often as each other, as many times as there are objects in a turn.
func (m *model) run(turns int) {
	objects := len(m.names)
	order, cumulative, sum := m.random.Perm(objects), make([]float64, objects), 0.0
	for i := range cumulative {
		sum += math.Pow(float64(i+1), -m.theta)
		cumulative[i] = sum
	}
	drawn := func() int {
		at, _ := slices.BinarySearch(cumulative, m.random.Float64()*sum)
		return order[min(at, objects-1)]
	}
	for batch := range slices.Chunk(m.random.Perm(objects), m.batch) {
		m.put(batch)
	}
	step := popularPeriod * time.Second / time.Duration(objects)
	last, batch, inside := m.clock, []int{}, map[int]bool{}
	for i := range turns * objects {
		if i == turns*objects/2 {
			m.written, m.moved, m.putGroups, m.live, m.taken = 0, 0, 0, 0, 0
		}
		m.clock = m.clock.Add(step)
		m.read(drawn())
		key := drawn()
		if !inside[key] { // else it is being put
			batch, inside[key] = append(batch, key), true
		}
		if len(batch) == m.batch {
			m.put(batch)
			batch = batch[:0]
			clear(inside)
		}
		if m.clock.Sub(last) >= compact.DefaultSettled/2 {
			last = m.clock
			m.compact()
			for _, group := range m.groups {
				m.live, m.taken = m.live+group.Live, m.taken+group.Capacity
			}
		}
	}
}

// popularResult is what a workload cost, by seed, without and with popularity.
type popularResult struct {
	workload
	moved  [2]sample // bytes, of one that was written
	room   [2]sample // bytes of groups, of one that lives, mean over passes
	groups [2]sample // that puts made
}

func (b *bench) popularity() (results []popularResult) {
	for _, w := range workloads() {
		result := popularResult{workload: w}
		for seed := range uint64(popularRuns) {
			for way := range result.moved {
				m := newModel(w, b.objects, seed+1, way == 1)
				m.run(popularTurns)
				result.moved[way] = append(result.moved[way], float64(m.moved)/float64(m.written))
				result.room[way] = append(result.room[way], float64(m.taken)/float64(m.live))
				result.groups[way] = append(result.groups[way], float64(m.putGroups))
			}
		}
		b.say("popularity: %s, batches of %d, mixed %t: %.3f", w.name, w.batch, w.mixed, result.moved[1].over(result.moved[0]))
		results = append(results, result)
	}
	return results
}

// reportPopularity is the section of the part popularity.
func reportPopularity(results []popularResult, objects int) string {
	var text strings.Builder
	say := func(format string, values ...any) { fmt.Fprintf(&text, format+"\n", values...) }
	say("## Popularity\n")
	say("A deterministic model, not a cluster: groups, what lives in them and time, with the gateway's own choice of what lies together")
	say("and what is emptied (agent/gateway/arrange, agent/heat/sketch). %d objects are put, and then written and read as often as", objects)
	say("each other, keys drawn as the table says: %d writes for each object, as many in %d s as there are objects, of which the second",
		popularTurns, popularPeriod)
	say("half counts. A key that is being put is not put again meanwhile. Compaction looks every %.0f s, at groups that are there for %.0f s,",
		(compact.DefaultSettled / 2).Seconds(), compact.DefaultSettled.Seconds())
	say("allows %d %% to be dead and makes groups of %d MiB. Off is the same with keys not told from each other. Medians of %d seeds, and",
		api.DefaultDeadAtMost, api.DefaultGroupBytes>>20, popularRuns)
	say("their range. Room is of data columns, also of groups that compaction leaves alone as they are new.\n")
	say("Uniform keys are dearest, as every object is written over in the end and what dies is spread over all groups; and there is nothing")
	say("to tell them by. BCStore has the least there, with a store in which most puts are of new keys, so that little dies.")
	say("`go run ./e2e/bench/small -only popularity -objects %d -write` writes this section, the same on every machine.\n", objects)
	say("| keys | KiB | put together | moved for 1 byte written, off | on | on to off | room for 1 byte, off | on " +
		"| groups of puts, on to off |")
	say("|---|---|---|---|---|---|---|---|---|")
	for _, r := range results {
		size := fmt.Sprint(popularSize >> 10)
		if r.mixed {
			size = fmt.Sprintf("%d to %d", leastSize>>10, mostSize>>10)
		}
		say("| %s | %s | %d | %.2f | %.2f | %s | %.2f | %.2f | %.2f |", r.name, size, r.batch, r.moved[0].median(), r.moved[1].median(),
			r.moved[1].over(r.moved[0]).text(2), r.room[0].median(), r.room[1].median(), r.groups[1].over(r.groups[0]).median())
	}
	return text.String()
}

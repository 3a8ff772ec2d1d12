package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/open"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/progress"
)

// work is an errand that is ready to begin.
type work struct {
	do    func(context.Context) (result, error)
	close func() error
}

func (e errand) prepare(ctx context.Context) (work, error) {
	if e.Kind == "restore" {
		return work{do: e.restore, close: func() error { return nil }}, nil
	}
	if e.Kind == "load" {
		engine, err := open.Engine(ctx, e.Address)
		if err != nil {
			return work{}, err
		}
		return work{do: func(ctx context.Context) (result, error) { return e.load(ctx, engine) }, close: engine.Close}, nil
	}
	start := strconv.FormatInt(time.Now().UnixNano(), 36)
	c, _, err := open.Catalog(ctx, e.Address, "bench", start, time.Minute)
	if err != nil {
		return work{}, err
	}
	w := work{close: c.Close}
	switch e.Kind {
	case "put":
		w.do = func(ctx context.Context) (result, error) { return e.put(ctx, c) }
		if err := enroll(ctx, c, nodeIDs(e.Nodes)); err != nil {
			return work{}, errors.Join(err, c.Close())
		}
	case "get":
		w.do = func(ctx context.Context) (result, error) { return e.get(ctx, c) }
	case "ask":
		w.do = func(ctx context.Context) (result, error) { return e.ask(ctx, c) }
	case "audit":
		w.do = func(ctx context.Context) (result, error) { return result{}, c.Audit(ctx) }
	default:
		return work{}, errors.Join(fmt.Errorf("there is no errand %q", e.Kind), c.Close())
	}
	return w, nil
}

// enroll registers the contents of nodes, where they are not.
func enroll(ctx context.Context, c *catalog.Catalog, nodes []block.NodeID) error {
	known, err := c.Incarnations(ctx)
	if err != nil {
		return err
	}
	for _, id := range nodes {
		if err := c.RegisterIncarnation(ctx, id, known[id], contentsOf(id)); err != nil {
			return err
		}
	}
	return nil
}

// turn has clients do something again and again for a while, each with the number of its turn.
func (e errand) turn(ctx context.Context, do func(ctx context.Context, i int64, random *rand.Rand) error) (result, error) {
	ending := time.Now().Add(e.For)
	var next atomic.Int64
	var mutex sync.Mutex
	var all []time.Duration
	var clients errgroup.Group
	for client := range e.Clients {
		clients.Go(func() error {
			random := rand.New(rand.NewPCG(uint64(client), uint64(ending.UnixNano())))
			var own []time.Duration
			for time.Now().Before(ending) {
				began := time.Now()
				if err := do(ctx, next.Add(1)-1, random); err != nil {
					return err
				}
				own = append(own, time.Since(began))
			}
			mutex.Lock()
			defer mutex.Unlock()
			all = append(all, own...)
			return nil
		})
	}
	err := clients.Wait()
	return result{Operations: int64(len(all)), Times: timesOf(all)}, err
}

// runKey is the key of an object that is put: neighbours are in other folders.
func (e errand) runKey(i int64) string { return fmt.Sprintf("%s/%03d/object-%012d", e.Run, i%1000, i) }

// put is what the gateway asks of the catalog for one object in a group of its own.
func (e errand) put(ctx context.Context, c *catalog.Catalog) (result, error) {
	nodes := nodeIDs(e.Nodes)
	return e.turn(ctx, func(ctx context.Context, i int64, random *rand.Rand) error {
		return putOne(ctx, c, e.runKey(i), nodes, random)
	})
}

// putOne announces an attempt, then the blocks of its group, whose names have the stamp in them, and commits it.
func putOne(ctx context.Context, c *catalog.Catalog, key string, nodes []block.NodeID, random *rand.Rand) error {
	return putInto(ctx, c, key, false, nodes, random)
}

// putInto is putOne into a group of its own, or into one that small objects share.
func putInto(ctx context.Context, c *catalog.Catalog, key string, isPacked bool, nodes []block.NodeID, random *rand.Rand) error {
	deadline := time.Now().Add(time.Minute)
	var group catalog.Group
	attempt, err := c.Begin(ctx, catalog.KindPut, deadline, func(stamp block.Stamp) []catalog.BlockSet {
		group = newGroup(stamp, (largeBytes+columns-1)/columns, isPacked, nodes, random)
		return []catalog.BlockSet{blocksOf(&group)}
	}, catalog.Over(key))
	if err != nil {
		return err
	}
	object := newObject(key, &group, catalog.Extent{Column: catalog.WholeGroup, Length: largeBytes})
	if isPacked {
		object = newObject(key, &group, catalog.Extent{Length: 1000})
		object.Checksum = random.Uint32()
	}
	return attempt.Commit(ctx, catalog.Change{NewGroups: []catalog.Group{group}, Put: []catalog.Object{object}})
}

// blocksOf announces all blocks of a new group.
func blocksOf(group *catalog.Group) catalog.BlockSet {
	set := catalog.BlockSet{Group: group.ID, Nodes: group.Home}
	for slot := range group.Slots {
		set.Slots = append(set.Slots, slot)
	}
	return set
}

// get is what the gateway asks of the catalog to read an object that it has not seen.
func (e errand) get(ctx context.Context, c *catalog.Catalog) (result, error) {
	return e.turn(ctx, func(ctx context.Context, _ int64, random *rand.Rand) error {
		return getOne(ctx, c, e.runKey(random.Int64N(e.Objects)))
	})
}

// getOne reads an object, and then it and its groups as of one instant.
func getOne(ctx context.Context, c *catalog.Catalog, key string) error {
	seen, err := c.SnapshotRange(ctx, key, 0, 0)
	if err != nil {
		return err
	}
	seen, err = c.Again(ctx, seen, 0, math.MaxInt64)
	if err == nil && len(seen.Groups) == 0 {
		err = fmt.Errorf("object %q lies in no group", key)
	}
	return err
}

// kindSize is how many records there are of a kind, and how many bytes of keys and values.
type kindSize struct {
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
}

// What one update of a load has, and how many are made at once.
const (
	loadRecords = kv.UpdateRecords / 2
	loadBytes   = kv.UpdateBytes / 2
	loadAtOnce  = 4

	generatorGarbage = 400 // percent of what is live: memory is there, and processors are short
)

// load writes the records of objects that are generated, in the order of a restore, and puts the catalog into service.
func (e errand) load(ctx context.Context, engine kv.Engine) (r result, err error) {
	debug.SetGCPercent(generatorGarbage)
	r.Kinds = map[string]kindSize{}
	nodes := nodeIDs(e.Nodes)
	type part struct{ records, last []kv.Write }
	parts := make(chan part, 1)
	generating, cancel := context.WithCancel(ctx)
	defer cancel()
	var making errgroup.Group
	making.Go(func() error {
		defer close(parts)
		for from := e.From; from < e.Objects; from += chunk {
			records, last, err := generate(generating, from, min(from+chunk, e.Objects), nodes)
			if err != nil {
				return err
			}
			select {
			case parts <- part{records, last}:
			case <-generating.Done():
				return generating.Err()
			}
		}
		return nil
	})
	meter, began, done, all := progress.New(os.Stderr), time.Now(), int64(0), e.Objects-e.From
	var last []kv.Write
	for p := range parts {
		last = p.last
		if err := e.write(ctx, engine, p.records, r.Kinds); err != nil {
			cancel()
			return r, errors.Join(err, making.Wait())
		}
		done = min(done+chunk, all)
		meter.Show(time.Now(), func() string {
			left := time.Duration(float64(time.Since(began)) * float64(all-done) / float64(done))
			return fmt.Sprintf("%s: %d of %d objects, about %s left", e.Run, done, all, words.About(left))
		})
	}
	meter.Clear()
	if err := making.Wait(); err != nil {
		return r, err
	}
	if err := e.write(ctx, engine, last, r.Kinds); err != nil {
		return r, err
	}
	for _, kind := range r.Kinds {
		r.Operations += kind.Records
	}
	size, err := engine.Size(ctx)
	r.Bytes = size.Bytes
	return r, err
}

// write makes updates of writes, some at a time, and adds up what they have.
func (e errand) write(ctx context.Context, engine kv.Engine, writes []kv.Write, kinds map[string]kindSize) error {
	var updates errgroup.Group
	updates.SetLimit(loadAtOnce)
	begin, size := 0, 0
	var mine []kv.Write
	for _, write := range writes {
		if e.Only == "" || kindOf(write.Key) == e.Only {
			mine = append(mine, write)
		}
	}
	flush := func(end int) {
		batch := mine[begin:end]
		begin, size = end, 0
		updates.Go(func() error {
			_, err := engine.Update(ctx, nil, batch)
			return err
		})
	}
	for i, write := range mine {
		bytes := len(write.Key) + len(write.Value)
		if write.Kind == kv.Count {
			bytes += len(strconv.FormatInt(write.Add, 10))
		}
		if i-begin == loadRecords || size+bytes > loadBytes {
			flush(i)
		}
		size += bytes
		kind := kindOf(write.Key)
		kinds[kind] = kindSize{kinds[kind].Records + 1, kinds[kind].Bytes + int64(bytes)}
	}
	if begin < len(mine) {
		flush(len(mine))
	}
	return updates.Wait()
}

// asked is one question to a catalog of many objects.
type asked struct {
	What    string        `json:"what"`
	Times   times         `json:"times"`
	Took    time.Duration `json:"took"` // of all together
	Records int64         `json:"records"`
	Heap    int64         `json:"heap"` // that is live in the client right after, in bytes
}

// How often short questions are asked.
const (
	askedGets  = 2000
	askedPuts  = 300
	askedPages = 30
	pageLimit  = 1000
	fullPages  = 3

	walkRecords = 500_000 // after which a walk ends
)

// ask asks a catalog what gateways ask.
func (e errand) ask(ctx context.Context, c *catalog.Catalog) (r result, err error) {
	random, nodes := rand.New(rand.NewPCG(1, 2)), nodeIDs(e.Nodes)
	often := func(what string, count int, do func(i int) (int, error)) {
		if err != nil {
			return
		}
		var all []time.Duration
		began, records := time.Now(), int64(0)
		for i := range count {
			began := time.Now()
			var n int
			if n, err = do(i); err != nil {
				err = fmt.Errorf("%s: %w", what, err)
				return
			}
			all, records = append(all, time.Since(began)), records+int64(n)
		}
		a := asked{What: what, Times: timesOf(all), Took: time.Since(began), Records: records, Heap: liveHeap()}
		r.Asked = append(r.Asked, a)
	}
	once := func(what string, do func() (int64, error)) {
		often(what, 1, func(int) (int, error) {
			n, err := do()
			return int(n), err
		})
	}
	anywhere := func() string { return objectKey(random.Int64N(e.Objects)) }
	often(askedGet, askedGets, func(int) (int, error) { return 1, getOne(ctx, c, anywhere()) })
	often(askedPut, askedPuts, func(i int) (int, error) {
		return 1, putOne(ctx, c, fmt.Sprintf("%s+%06d", anywhere(), i), nodes, random)
	})
	often(askedPage, askedPages, func(int) (int, error) {
		page, err := c.ListObjects(ctx, "", anywhere(), pageLimit)
		return len(page), err
	})
	often(askedFullPage, fullPages, func(int) (int, error) { return fullPage(ctx, c, anywhere()) })
	once(askedObjects, func() (n int64, err error) {
		classes := map[string]int64{}
		for page, err := range c.ObjectSummaries(ctx) {
			if err != nil || n >= walkRecords {
				return n, err
			}
			n += int64(len(page))
			for i := range page {
				classes[page[i].Class] += page[i].Size
			}
		}
		return n, nil
	})
	once(askedSurvey, func() (n int64, err error) {
		on := map[block.NodeID]int64{}
		for page, err := range c.GroupRecords(ctx) {
			if err != nil || n >= walkRecords {
				return n, err
			}
			n += int64(len(page))
			for i := range page {
				for slot := range page[i].Home {
					id, _ := page[i].Place(slot)
					on[id]++
				}
			}
		}
		return n, nil
	})
	once(askedGroups, func() (n int64, err error) {
		for _, err := range c.AllGroups(ctx, block.GroupID{}) {
			if err != nil || n == walkRecords {
				return n, err
			}
			n++
		}
		return n, nil
	})
	once(askedCopy, func() (int64, error) { return copyAll(ctx, c) })
	return r, err
}

// What is asked, in the words of the tables.
const (
	askedGet      = "a get, one after the other"
	askedPut      = "a put, one after the other"
	askedPage     = "a page of 1,000 objects from the catalog"
	askedFullPage = "the same with the scheme of each, as `GET /v1/objects` answers"
	askedObjects  = "objects and bytes by class (status, metrics)"
	askedSurvey   = "slots by node (status; remove, replace)"
	askedGroups   = "groups with their live counts (drain, relocation, repair)"
	askedCopy     = "all records as of one instant (backup, move)"
)

// fullPage is a page as the gateway lists it: it asks for the group of each object, to say which scheme it is under.
func fullPage(ctx context.Context, c *catalog.Catalog, after string) (int, error) {
	page, err := c.ListObjects(ctx, "", after, pageLimit)
	if err != nil {
		return 0, err
	}
	seen := map[block.GroupID]bool{}
	for i := range page {
		for _, extent := range page[i].Extents {
			if !seen[extent.Group] {
				seen[extent.Group] = true
				if _, err := c.Group(ctx, extent.Group); err != nil {
					return 0, err
				}
			}
		}
	}
	return len(page), nil
}

// copyAll reads all records of a snapshot.
func copyAll(ctx context.Context, c *catalog.Catalog) (n int64, err error) {
	snapshot, err := c.Raw().Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	for after := ""; ; {
		page, err := snapshot.Scan(ctx, "", after, 256) // as agent/catalog/transfer does
		if err != nil || len(page) == 0 || n >= walkRecords {
			return n, err
		}
		n, after = n+int64(len(page)), page[len(page)-1].Key
	}
}

// restore makes a catalog of what stores told, as a rebuild does once it has read them, and leaves the engine out.
func (e errand) restore(ctx context.Context) (result, error) {
	c := contents(0, e.Objects, nodeIDs(e.Nodes))
	err := catalog.Restore(ctx, &discard{}, c, nil)
	return result{Operations: e.Objects}, err
}

// discard is an engine that keeps nothing.
type discard struct{ kv.Engine }

// Scan implements kv.Engine.
func (discard) Scan(context.Context, string, string, int) ([]kv.Record, error) { return nil, nil }

// Update implements kv.Engine.
func (discard) Update(context.Context, []kv.Check, []kv.Write) ([]int, error) { return nil, nil }

// liveHeap is what is live on the heap of this process.
func liveHeap() int64 {
	runtime.GC()
	var statistics runtime.MemStats
	runtime.ReadMemStats(&statistics)
	return int64(statistics.HeapAlloc)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
)

// The part erasures is what TriEC adds to YCSB, read_with_erasures (Section 6.3.1, Figures 11 and 12): a share of reads, at distances that
// are drawn from a Weibull distribution, finds the block lost that it wants. One client, as there.
var (
	erasureSchemes = []string{"rs(3,2)", "rs(6,3)", "rep(3)"}
	erasureSize    = 4 << 10
)

// The targets of the part: no erasures, and erasures by what the class has reads do about them.
const (
	erasureNone     = "none lost"
	erasureSought   = "none lost, but sought"   // all is done that is done to lose a block, but deleting it
	erasureRepaired = "lost, repaired by reads" // repairOnRead: wait
	erasureLeft     = "lost, not repaired"      // repairOnRead: never; the block comes back after the read
)

// erasureTargets is how many targets a workload has: those above, and a plain Redis.
const erasureTargets = 5

// leftPrefix begins the keys of classes whose reads repair nothing.
const leftPrefix = "left-"

// erasureCell is a row of the part.
type erasureCell struct {
	scheme string
	workload
}

// erasureCells are all shares of reads under each scheme, and all sizes where half are reads under the first.
func erasureCells() (list []erasureCell) {
	for i, scheme := range erasureSchemes {
		for _, size := range ycsbSizes {
			for _, reads := range ycsbReads {
				if size == erasureSize || i == 0 && reads == ycsbReads[0] {
					list = append(list, erasureCell{scheme, workload{heavy, reads, size}})
				}
			}
		}
	}
	return list
}

// losses are what erasures in one run came to.
type losses struct {
	reads, erased int       // reads, and those of them before which a block was deleted
	decoded       float64   // fragments that the gateway decoded
	hedged        float64   // fragments that it decoded before it was told so
	read          timing    // of reads with erasures
	back          timing    // from the deletion until the group was whole again
	overwritten   int       // the object was written anew before
	late          int       // were not whole within lateness
	distances     []float64 // reads from one erasure to the next
	numbers       []int     // of the reads with erasures, in any order
	latencies     []time.Duration
	returns       []time.Duration
}

// lateness is how long a block is waited for.
const lateness = 5 * time.Second

// eraser deletes blocks between operations.
type eraser struct {
	gateway  *client.Client
	stores   map[block.NodeID]rueidis.Client
	kind     string // erasureRepaired; erasureLeft: blocks are put back after the read; erasureSought: they are not deleted
	schedule *schedule

	mutex    sync.Mutex
	lost     map[block.GroupID]bool
	losses   losses
	watching errgroup.Group
}

// schedule says before which reads a block is lost. It goes on from run to run, so that the share of reads is right over all of them: one
// run has few erasures, which come in bursts. Many clients may ask it.
type schedule struct {
	drawn  weibull // reads from one erasure to the next
	random *rand.Rand

	mutex    sync.Mutex
	reads    int
	due      float64 // reads after which the next one comes
	owed     int     // that came to reads with nothing to erase: the next reads have them
	previous int     // the read that had the last one of the runs before
}

// newSchedule begins one by which percent of reads find a block lost.
func newSchedule(percent, shape float64, seed uint64) *schedule {
	s := &schedule{drawn: weibullOfMean(100/percent, shape), random: rand.New(rand.NewPCG(seed, 13))}
	s.due = s.drawn.draw(s.random)
	return s
}

// next counts a read, and returns which one it is and whether it has an erasure.
func (s *schedule) next() (number int, erases bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.reads++
	if s.owed > 0 {
		s.owed--
		return s.reads, true
	}
	for float64(s.reads) >= s.due { // two that would come at one read are one
		s.due, erases = s.due+s.drawn.draw(s.random), true
	}
	return s.reads, erases
}

// back takes an erasure back from a read that found nothing to erase.
func (s *schedule) back() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.owed++
}

// distances are how many reads there were from one erasure to the next, by the numbers of the reads of one run that had them.
func (s *schedule) distances(numbers []int) (list []float64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, number := range slices.Sorted(slices.Values(numbers)) {
		list, s.previous = append(list, float64(number-s.previous)), number
	}
	return list
}

// erasure is one block that was deleted.
type erasure struct {
	node    block.NodeID
	object  string
	group   block.GroupID
	key     string // in the store
	value   string
	deleted time.Time
}

// storePrefix is what the keys of blocks begin with in a Redis.
const storePrefix = "restripe.value/"

// headMost is more than the headers of blocks of small objects have.
const headMost = 256 << 10

// openStores connects to the Redis of every node.
func openStores(members []launch.Member) (stores map[block.NodeID]rueidis.Client, err error) {
	stores = map[block.NodeID]rueidis.Client{}
	for _, member := range members {
		_, address, _ := strings.Cut(member.Store, "://")
		stores[block.NodeID(member.ID)], err = rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address}, DisableCache: true})
		if err != nil {
			return nil, fmt.Errorf("connecting to the store of %s: %w", member.ID, err)
		}
	}
	return stores, nil
}

// newEraser begins a run of so many clients.
func newEraser(gateway *client.Client, stores map[block.NodeID]rueidis.Client, kind string, schedule *schedule, clients int) *eraser {
	e := &eraser{gateway: gateway, stores: stores, kind: kind, schedule: schedule, lost: map[block.GroupID]bool{}}
	e.watching.SetLimit(max(16, clients/4))
	return e
}

// beforeRead deletes the block that a read will want, if it is time for that; nil if it is not, or there is none to delete. Many clients
// may ask it.
func (e *eraser) beforeRead(ctx context.Context, key string) (*erasure, error) {
	number, erases := e.schedule.next()
	var lost *erasure
	var err error
	if erases {
		if lost, err = e.erase(ctx, key); err != nil {
			return nil, fmt.Errorf("deleting a block of %s: %w", key, err)
		}
		if lost == nil {
			e.schedule.back()
		}
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.losses.reads++
	if lost != nil {
		e.losses.erased++
		e.losses.numbers = append(e.losses.numbers, number)
	}
	return lost, nil
}

// erase deletes the block that has the bytes of an object; nil where the group has lost one already, since two could be one too many.
func (e *eraser) erase(ctx context.Context, key string) (*erasure, error) {
	stat, err := e.gateway.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(stat.Groups) != 1 {
		return nil, fmt.Errorf("it lies in %d groups, want 1", len(stat.Groups))
	}
	group := &stat.Groups[0]
	e.mutex.Lock()
	isLost := e.lost[group.ID]
	e.lost[group.ID] = true
	e.mutex.Unlock()
	if isLost {
		return nil, nil
	}
	lost, err := e.take(ctx, key, group, stat.Revision)
	if lost == nil {
		e.found(group.ID)
	}
	return lost, err
}

// take deletes the block of a group that nothing else is missing of.
func (e *eraser) take(ctx context.Context, key string, group *api.GroupStat, revision block.Stamp) (*erasure, error) {
	for _, slot := range group.Slots {
		if slot.State != "ok" {
			return nil, nil
		}
	}
	column, err := e.column(ctx, key, group, revision)
	if err != nil || column < 0 {
		return nil, err
	}
	node := group.Slots[column].Node
	// A data block is mostly of the attempt that wrote the parities; one that was rebuilt is of a later one.
	name := storePrefix + block.Address{Node: node, Group: group.ID, Slot: column, Stamp: group.Epoch}.Key()
	value, found, err := e.remove(ctx, node, name)
	if err != nil {
		return nil, err
	}
	if !found {
		if name, err = e.search(ctx, node, name[:strings.LastIndexByte(name, '/')+1]); err != nil || name == "" {
			return nil, err
		}
		if value, found, err = e.remove(ctx, node, name); err != nil || !found {
			return nil, err // compacted meanwhile
		}
	}
	return &erasure{node: node, object: key, group: group.ID, key: name, value: value, deleted: time.Now()}, nil
}

// column finds in which one an object lies, by what a parity says of the group; -1 if that is gone, as the group was compacted meanwhile.
func (e *eraser) column(ctx context.Context, key string, group *api.GroupStat, revision block.Stamp) (int, error) {
	if group.Columns == 1 {
		return 0, nil
	}
	slot := group.Columns
	if slot >= len(group.Slots) {
		return 0, fmt.Errorf("group %s has no parities", group.ID)
	}
	node := group.Slots[slot].Node
	name := storePrefix + block.Address{Node: node, Group: group.ID, Slot: slot, Stamp: group.Epoch}.Key()
	store := e.stores[node]
	head, err := store.Do(ctx, store.B().Getrange().Key(name).Start(0).End(headMost-1).Build()).ToString()
	if err != nil || head == "" {
		return -1, err
	}
	header, err := block.DecodeHeader([]byte(head))
	if err != nil {
		return 0, err
	}
	entries, err := block.DecodeManifest(header.Manifest)
	if err != nil {
		return 0, err
	}
	for i := range entries {
		if string(entries[i].Key) == key && entries[i].Revision == revision {
			return entries[i].Column, nil // block.WholeGroup is none
		}
	}
	return -1, nil
}

// remove deletes a value and returns it; where blocks are only sought it returns it.
func (e *eraser) remove(ctx context.Context, node block.NodeID, name string) (value string, found bool, err error) {
	store := e.stores[node]
	command := store.B().Getdel().Key(name).Build()
	if e.kind == erasureSought {
		command = store.B().Get().Key(name).Build()
	}
	value, err = store.Do(ctx, command).ToString()
	if rueidis.IsRedisNil(err) {
		return "", false, nil
	}
	return value, err == nil, err
}

// search finds the one key that begins so; empty if there are none or several.
func (e *eraser) search(ctx context.Context, node block.NodeID, prefix string) (string, error) {
	store, cursor := e.stores[node], uint64(0)
	var all []string
	for {
		page, err := store.Do(ctx, store.B().Scan().Cursor(cursor).Match(prefix+"*").Count(1000).Build()).AsScanEntry()
		if err != nil {
			return "", err
		}
		all = append(all, page.Elements...)
		if cursor = page.Cursor; cursor == 0 {
			break
		}
	}
	if len(all) != 1 {
		return "", nil
	}
	return all[0], nil
}

// found lets a group lose a block again.
func (e *eraser) found(id block.GroupID) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	delete(e.lost, id)
}

// afterRead notes how long the read took that found the block lost, and puts the block back, or watches how the gateway does.
func (e *eraser) afterRead(ctx context.Context, lost *erasure, took time.Duration) error {
	e.mutex.Lock()
	e.losses.latencies = append(e.losses.latencies, took)
	e.mutex.Unlock()
	switch e.kind {
	case erasureSought:
		e.found(lost.group)
		return nil
	case erasureLeft:
		store := e.stores[lost.node]
		err := store.Do(ctx, store.B().Set().Key(lost.key).Value(lost.value).Nx().Build()).Error()
		if err != nil && !rueidis.IsRedisNil(err) {
			return fmt.Errorf("putting a block of %s back: %w", lost.object, err)
		}
		e.found(lost.group)
		return nil
	}
	e.watching.Go(func() error {
		defer e.found(lost.group)
		return e.watch(context.WithoutCancel(ctx), lost)
	})
	return nil
}

// watch waits until a group is whole again.
func (e *eraser) watch(ctx context.Context, lost *erasure) error {
	ctx, cancel := context.WithTimeout(ctx, lateness)
	defer cancel()
	overwritten := false
	err := lessAndLess(ctx, func() (bool, error) {
		stat, err := e.gateway.Stat(ctx, lost.object)
		if err != nil {
			return false, err
		}
		if len(stat.Groups) != 1 || stat.Groups[0].ID != lost.group {
			overwritten = true
			return true, nil
		}
		for _, slot := range stat.Groups[0].Slots {
			if slot.State != "ok" {
				return false, nil
			}
		}
		return true, nil
	})
	e.mutex.Lock()
	defer e.mutex.Unlock()
	switch {
	case ctx.Err() != nil:
		e.losses.late++
	case err != nil:
		return fmt.Errorf("waiting until %s has all blocks: %w", lost.object, err)
	case overwritten:
		e.losses.overwritten++
	default:
		e.losses.returns = append(e.losses.returns, time.Since(lost.deleted))
	}
	return nil
}

// lessAndLess asks until something has come about: after 2 ms, and then when a tenth of the time has passed again, so that what takes long
// is not asked for often.
func lessAndLess(ctx context.Context, holds func() (bool, error)) error {
	const least = 2 * time.Millisecond
	timer := time.NewTimer(least)
	defer timer.Stop()
	for began := time.Now(); ; timer.Reset(max(least, time.Since(began)/10)) {
		if done, err := holds(); done || err != nil {
			return err
		}
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// end waits for what is watched.
func (e *eraser) end() (*losses, error) {
	err := e.watching.Wait()
	l := &e.losses
	l.distances = e.schedule.distances(l.numbers)
	l.read, l.back = timingOf(l.latencies), timingOf(l.returns)
	return l, err
}

func (b *bench) erasureLoads() int {
	if b.percent == 0 {
		return 0
	}
	return len(erasureCells()) * erasureTargets
}

func (b *bench) erasures(ctx context.Context) ([]row, error) {
	if b.percent == 0 {
		return nil, nil
	}
	return b.losing(ctx, erasureCells(), 1)
}

// losing has so many clients do the workloads of cells, without erasures, with them, and on a plain Redis. Cells that have the same records
// stand together.
func (b *bench) losing(ctx context.Context, cells []erasureCell, clients int) (rows []row, err error) {
	var classes []api.ClassSpec
	for i, cell := range cells {
		if slices.ContainsFunc(cells[:i], func(other erasureCell) bool { return other.scheme == cell.scheme }) {
			continue
		}
		left := classOf(cell.scheme)
		left.Name, left.Prefixes, left.RepairOnRead = leftPrefix+left.Name, []string{leftPrefix + prefixOf(cell.scheme)}, api.RepairNever
		classes = append(classes, classOf(cell.scheme), left)
	}
	c, err := b.startCold(ctx, launch.StoreRedis, classes...) // what is in memory is not missed
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	gateway, err := client.New(c.http)
	if err != nil {
		return nil, err
	}
	defer gateway.Close()
	stores, err := openStores(c.members)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, store := range stores {
			store.Close()
		}
	}()
	filled := erasureCell{}
	var repaired, left, plain *ledger
	schedules := map[string]*schedule{}
	for i, kind := range []string{erasureRepaired, erasureLeft, erasureSought} {
		schedules[kind] = newSchedule(b.percent, b.shape, uint64(i+1))
	}
	for _, cell := range cells {
		if cell.scheme != filled.scheme || cell.bytes != filled.bytes {
			filled = cell
			b.say("putting %d records of %d bytes under %s", b.records, cell.bytes, cell.scheme)
			repaired = newLedger(prefixOf(cell.scheme), b.records, cell.bytes)
			left = newLedger(leftPrefix+prefixOf(cell.scheme), b.records, cell.bytes)
			plain = newLedger("", b.records, cell.bytes)
			if err := errors.Join(repaired.fill(redisAt(c.redis)), left.fill(redisAt(c.redis)), plain.fill(redisAt(b.peers.redis))); err != nil {
				return nil, err
			}
		}
		without := func(book *ledger, address string) func(context.Context, int) (outcome, error) {
			return func(ctx context.Context, round int) (outcome, error) {
				return b.ycsbRun(ctx, cell.workload, book, clients, round, redisAt(address), nil)
			}
		}
		with := func(book *ledger, kind string) func(context.Context, int) (outcome, error) {
			return func(ctx context.Context, round int) (o outcome, err error) {
				before, err := c.metrics(ctx)
				if err != nil {
					return o, err
				}
				e := newEraser(gateway, stores, kind, schedules[kind], clients)
				if o, err = b.ycsbRun(ctx, cell.workload, book, clients, round, redisAt(c.redis), e); err != nil {
					return o, err
				}
				if o.losses, err = e.end(); err != nil {
					return o, err
				}
				after, err := c.metrics(ctx)
				since := func(metric string) float64 { return after[metric] - before[metric] }
				o.losses.decoded = since("restripe_gateway_degraded_reads_total")
				o.losses.hedged = since("restripe_gateway_hedged_reads_won_total")
				return o, err
			}
		}
		r, err := b.compare(ctx, cell.scheme+", "+cell.String(), []target{
			c.target(erasureNone, without(repaired, c.redis)),
			c.target(erasureSought, with(repaired, erasureSought)),
			c.target(erasureRepaired, with(repaired, erasureRepaired)),
			c.target(erasureLeft, with(left, erasureLeft)),
			b.peers.target(redisName, b.peers.redis, without(plain, b.peers.redis)),
		})
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (b *bench) reportErasures(rows []row) string {
	t := newText("## Lost blocks")
	if b.percent == 0 {
		t.say("Not measured: `-erasures 0`.")
		return t.String()
	}
	t.prose("YCSB with TriEC's read_with_erasures (Section 6.3.1, Figures 11 and 12): one client over RESP, keys by %s, and before %g %% "+
		"of its reads the block that the read wants is deleted from the Redis of its node. From one to the next it is as many reads as a "+
		"Weibull distribution of the shape %g says, whose mean is %.0f. A group of which a block is missing loses no second one: the next "+
		"read has it. Every value that was read was verified as above. "+
		"The gateway keeps no objects in memory (`--cache 0`).",
		heavy.name, b.percent, b.shape, 100/b.percent)
	t.say("")
	t.prose("%s: `repairOnRead: wait`, the default; the read that meets the loss decodes, answers, and has the block rebuilt. %s: "+
		"`repairOnRead: never`; the read decodes, and the block is put back after it, as by a node that was away, so that no other read finds "+
		"it lost. %s: who measures asks the gateway and a parity where a block lies, as for the others, but deletes nothing, so that what is "+
		"slower than this is so by the loss. Of rep(3) there is nothing to decode: another copy is read. Latencies of all reads and writes, "+
		"those of the lost ones among them:", erasureRepaired, erasureLeft, erasureSought)
	t.table("workload", rows, erasureNone, erasureSought, redisName)
	t.say("")
	t.prose("What became of the reads that found a block lost, all rounds together but for latencies, which are medians of the rounds. "+
		"Decoded are the fragments that the gateway decoded, or took another copy of, as their block could not be read; by a hedge those that "+
		"it decoded, or took, before it was told that, as it does where an answer is late. Writes are their mean to that without erasures in "+
		"the same round. Back is the time from the deletion until the gateway has all blocks of the group again, as far as its objects were not "+
		"overwritten before; late are those that were not back within %s. Whoever measures asks for that, which takes processor time of the "+
		"gateway too. The shape is the likeliest for the reads from one erasure to the next as they were, each half a read less, as it ends "+
		"within one, and its standard error.", lateness)
	t.losses(rows)
	return t.String()
}

// losses has a line for each workload and what was done about lost blocks, and then for all workloads together.
func (t *text) losses(rows []row) {
	t.say("\n| workload | | reads | lost | %% | decoded | by a hedge | read p50 ms | p99 | mean | to none lost, p50 | writes to none lost "+
		"| back p50 ms | p99 | overwritten | late | shape |\n|%s", strings.Repeat("---|", 17))
	for i := range rows {
		r := &rows[i]
		for _, name := range []string{erasureRepaired, erasureLeft} {
			t.say("| %s | %s | %s |", r.what, name, strings.Join(lossCells(r, name), " | "))
		}
	}
	t.say("")
	for _, name := range []string{erasureRepaired, erasureLeft} {
		var sum losses
		for i := range rows {
			sum.add(&rows[i], name)
		}
		t.say("%s, all workloads together: %d of %d reads, %s %%, of the shape %s.", name, sum.erased, sum.reads, sum.share(), sum.shape())
	}
}

// add adds what the rounds of a target came to.
func (l *losses) add(r *row, name string) {
	for i := range r.rounds[name] {
		one := r.rounds[name][i].losses
		l.reads, l.erased, l.decoded = l.reads+one.reads, l.erased+one.erased, l.decoded+one.decoded
		l.hedged += one.hedged
		l.overwritten, l.late = l.overwritten+one.overwritten, l.late+one.late
		l.distances = append(l.distances, one.distances...)
	}
}

// share is that of reads with erasures, in percent.
func (l *losses) share() string { return number("%.2f", 100*float64(l.erased)/float64(l.reads)) }

// shape is that of the distribution which fits best.
func (l *losses) shape() string {
	var within []float64
	for _, distance := range l.distances {
		within = append(within, distance-0.5)
	}
	fit, shapeError, err := fitWeibull(within)
	if err != nil {
		return "-" // too few
	}
	return fmt.Sprintf("%.2f ± %.2f", fit.shape, shapeError)
}

// lossCells are the columns of one target about its losses.
func lossCells(r *row, name string) []string {
	var sum losses
	sum.add(r, name)
	var typical, slow, mean, ratios, back, backSlow []float64
	for i := range r.rounds[name] {
		l := r.rounds[name][i].losses
		if l.read.count > 0 {
			typical, slow, mean = append(typical, l.read.p50), append(slow, l.read.p99), append(mean, l.read.mean)
			ratios = append(ratios, l.read.p50/r.rounds[erasureNone][i].reads.p50)
		}
		if l.back.count > 0 {
			back, backSlow = append(back, l.back.p50), append(backSlow, l.back.p99)
		}
	}
	return []string{
		fmt.Sprint(sum.reads), fmt.Sprint(sum.erased), sum.share(), fmt.Sprintf("%.0f", sum.decoded), fmt.Sprintf("%.0f", sum.hedged),
		number("%.2f", median(typical)), number("%.2f", median(slow)), number("%.2f", median(mean)), number("%.2f", median(ratios)),
		number("%.2f", r.ratio(name, erasureNone, writesMean)), number("%.2f", median(back)), number("%.2f", median(backSlow)),
		fmt.Sprint(sum.overwritten), fmt.Sprint(sum.late), sum.shape(),
	}
}

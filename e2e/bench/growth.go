//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/launch"
)

// growthSteps are the changes of width that are measured, each on as many nodes more as it has columns more.
const growthSteps = "rs(6,3)->rs(9,3);rs(4,2)->rs(6,2);rs(9,3)->rs(12,3)"

// growthLoad is how much of what the links of the nodes could carry clients read, before nodes are added.
const growthLoad = 0.4

// growthWay is what becomes of the objects that are there when nodes are added.
type growthWay string

// The ways. The first three are the ones that the Scale-RS paper compares.
const (
	growNothing growthWay = "nothing moves (No-DM)"
	growBalance growthWay = "blocks move (DM-Only)"
	growColumns growthWay = "columns move (restripe)"
	growCopies  growthWay = "all is copied"
)

var growthWays = []growthWay{growNothing, growBalance, growColumns, growCopies}

// filling is how fast clients wrote, bytes a second, with nobody reading, and beside those that read.
type filling struct {
	offline, online float64
	reads           []time.Duration // beside it
}

// grown is one change of width by one way.
type grown struct {
	change                step
	way                   growthWay
	objects               int
	bytes                 int64 // of the objects
	elapsed               time.Duration
	predicted             api.Traffic
	moved                 transfer
	before, during, after []time.Duration // reads
	fill                  filling
	even                  float64       // what the fullest node holds by what it would if all held as much
	stored                float64       // bytes of cells and parities by those of objects
	back                  time.Duration // narrower again
	backMoved             transfer
	backPredicted         api.Traffic
}

// growthResults are all runs, and how fast stripes that are there are filled up by what clients write into their new columns.
type growthResults struct {
	rate    int // megabits per second
	runs    []grown
	updates map[step]filling
}

// growth measures every step by every way.
func (b *bench) growth(ctx context.Context) (results growthResults, err error) {
	results = growthResults{rate: b.options.rates[0], updates: map[step]filling{}}
	widest := 0
	for _, s := range b.options.growths {
		widest = max(widest, s.nodes())
	}
	n, err := newNetwork(ctx, widest)
	if err != nil {
		return results, err
	}
	defer func() { err = errors.Join(err, n.close(ctx)) }()
	for _, s := range b.options.growths {
		for _, way := range growthWays {
			one, err := b.grow(ctx, n, s, way)
			if err != nil {
				return results, fmt.Errorf("%s, %s: %w", s, way, err)
			}
			results.runs = append(results.runs, one)
		}
		if results.updates[s], err = b.fillByUpdates(ctx, n, s); err != nil {
			return results, fmt.Errorf("%s, filled by updates: %w", s, err)
		}
	}
	return results, nil
}

// growthOther is what the class file has: the class of the objects changes, which those of a file do not.
const growthOther = "classes:\n- {name: other, ladder: rep(1), prefixes: [other/]}\n"

// growthClass has one group an object.
func growthClass(ladder string, objectBytes int64) api.ClassSpec {
	return api.ClassSpec{Name: "grows", Ladder: ladder, Prefixes: []string{""}, PackBelow: "0", GroupBytes: fmt.Sprint(objectBytes)}
}

// grow takes objects from one width to another on more nodes, beside clients that read, and writes new ones afterwards.
func (b *bench) grow(ctx context.Context, n *network, s step, way growthWay) (one grown, err error) {
	one = grown{change: s, way: way}
	nodes, more := s.from.K+s.from.M, s.to.K-s.from.K
	b.say("%s, %s: starting %d agents, a proxy and a gateway", s, way, nodes)
	c, err := b.startCluster(ctx, n, nodes, growthOther)
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	if _, err := c.client.PutClass(ctx, growthClass(s.from.String(), b.options.objectBytes)); err != nil {
		return one, err
	}
	objects, err := b.growthCorpus(s)
	if err != nil {
		return one, err
	}
	one.objects = len(objects)
	for i := range objects {
		if way == growCopies { // groups whose cells are not as large as those of others find none to give them columns
			objects[i] = objects[i][:len(objects[i])-i*128*s.from.K]
		}
		one.bytes += int64(len(objects[i]))
	}
	if err := objects.put(ctx, c.client, ""); err != nil {
		return one, err
	}
	var members []string
	for i := range nodes + more {
		members = append(members, nodeName(i))
	}
	if err := n.shape(ctx, members, b.options.rates[0]); err != nil {
		return one, err
	}
	r := b.growthReader(c, objects, nodes)
	if one.before, err = r.during(ctx, waiting(b.options.reading.quiet/2)); err != nil {
		return one, err
	}
	for i := range more {
		if err := b.join(ctx, c, nodeName(nodes+i)); err != nil {
			return one, err
		}
	}
	if way != growNothing {
		one.during, err = r.during(ctx, func(ctx context.Context) error { return b.redistribute(ctx, c, &one) })
		if err != nil {
			return one, err
		}
	}
	if one.after, err = r.during(ctx, waiting(b.options.reading.quiet/2)); err != nil {
		return one, err
	}
	if err := one.look(ctx, c); err != nil {
		return one, err
	}
	put := func(ctx context.Context, prefix string) error { return objects.put(ctx, c.client, prefix) }
	one.fill, err = b.fill(ctx, r, one.bytes, put)
	if err != nil {
		return one, err
	}
	for _, prefix := range []string{"", "offline/", "online/"} {
		if err := objects.verify(ctx, c.client, prefix); err != nil {
			return one, fmt.Errorf("verifying afterwards: %w", err)
		}
	}
	if way == growColumns {
		if err := b.narrowAgain(ctx, c, objects, &one); err != nil {
			return one, err
		}
	}
	b.say("%-20s %-24s %6.2f s, %s MB between agents, fills %.0f MB/s", s, way, one.elapsed.Seconds(),
		megabytes(one.moved.delivered.bytes), one.fill.offline/1e6)
	return one, n.free(ctx, members)
}

// growthCorpus is about as many objects as are asked for, of which all can become wider together.
func (b *bench) growthCorpus(s step) (corpus, error) {
	return newCorpus(max(1, b.options.objects/s.to.K)*s.to.K, b.options.objectBytes)
}

// growthReader reads whole objects at a rate that loads the links of so many nodes as growthLoad says.
func (b *bench) growthReader(c *cluster, objects corpus, nodes int) *reader {
	perSecond := growthLoad * float64(nodes) * float64(b.options.rates[0]) * 1e6 / 8 / float64(b.options.objectBytes)
	return &reader{client: c.client, objects: objects, every: time.Duration(float64(time.Second) / perSecond)}
}

// join starts another agent and makes it a member.
func (b *bench) join(ctx context.Context, c *cluster, name string) error {
	member := launch.Member{ID: name, Address: c.network.address(name) + agentPort}
	if err := c.startAgent(ctx, b.binary, member); err != nil {
		return err
	}
	_, err := c.client.AddNode(ctx, name, api.AddRequest{Address: member.Address})
	return err
}

// redistribute has the objects that are there use the nodes that were added.
func (b *bench) redistribute(ctx context.Context, c *cluster, one *grown) error {
	before, err := countDevices()
	if err != nil {
		return err
	}
	if one.way == growBalance {
		err = one.balance(ctx, c)
	} else {
		var ended api.Transition
		if ended, err = b.reshape(ctx, c, one.change.to.String()); err == nil {
			one.elapsed, one.predicted = time.Duration(ended.ElapsedSeconds*float64(time.Second)), ended.Predicted
			if reshaped := ended.GroupsReshaped > 0; reshaped != (one.way == growColumns) {
				err = fmt.Errorf("%d groups became wider by columns of others", ended.GroupsReshaped)
			}
		}
	}
	if err != nil {
		return err
	}
	after, err := countDevices()
	one.moved = transferBetween(before, after)
	return err
}

// balance moves blocks until every node holds about its share.
func (g *grown) balance(ctx context.Context, c *cluster) error {
	var unlimited int64
	if _, err := c.client.StartBalance(ctx, api.BalanceRequest{BytesPerSecond: &unlimited}); err != nil {
		return err
	}
	var balance api.Balance
	err := c.await(ctx, "the balance ends", func(ctx context.Context) (_ bool, err error) {
		balance, err = c.client.Balance(ctx)
		return err == nil && !balance.IsUnderWay(), err
	})
	if err == nil && balance.State != api.BalanceDone {
		err = fmt.Errorf("the balance ended %s: %s", balance.State, balance.Error)
	}
	g.elapsed = time.Duration(balance.ElapsedSeconds * float64(time.Second))
	g.predicted.BytesSent = balance.BytesSent
	return err
}

// reshape gives the class another ladder and takes everything to it.
func (b *bench) reshape(ctx context.Context, c *cluster, to string) (ended api.Transition, err error) {
	if _, err := c.client.PutClass(ctx, growthClass(to, b.options.objectBytes)); err != nil {
		return ended, err
	}
	started, err := c.client.StartTransition(ctx, api.TransitionRequest{Selector: api.Selector{Class: "grows"}, To: to})
	if err != nil {
		return ended, err
	}
	ended, err = c.client.Watch(ctx, started.ID, func(api.Transition) error { return nil })
	if err == nil && ended.State != api.TransitionDone {
		err = fmt.Errorf("the transition ended %s: %s", ended.State, ended.Error)
	}
	return ended, err
}

// narrowAgain deletes what was written as wide, and has the rest become as narrow as it was.
func (b *bench) narrowAgain(ctx context.Context, c *cluster, objects corpus, one *grown) error {
	for _, prefix := range []string{"offline/", "online/"} {
		for i := range objects {
			if err := c.client.Delete(ctx, keyOf(prefix, i)); err != nil {
				return err
			}
		}
	}
	before, err := countDevices()
	if err != nil {
		return err
	}
	ended, err := b.reshape(ctx, c, one.change.from.String())
	if err != nil {
		return err
	}
	after, err := countDevices()
	if err != nil {
		return err
	}
	if ended.GroupsReshaped == 0 || ended.ObjectsRewritten > 0 {
		return fmt.Errorf("%d groups gave columns back, and %d objects were copied", ended.GroupsReshaped, ended.ObjectsRewritten)
	}
	one.back, one.backPredicted = time.Duration(ended.ElapsedSeconds*float64(time.Second)), ended.Predicted
	one.backMoved = transferBetween(before, after)
	return objects.verify(ctx, c.client, "")
}

// look notes how much the nodes hold, and how evenly.
func (g *grown) look(ctx context.Context, c *cluster) error {
	plan, err := c.client.PlanBalance(ctx, nil)
	if err != nil {
		return err
	}
	var most, all int64
	for _, node := range plan.Nodes {
		most, all = max(most, node.BytesBefore), all+node.BytesBefore
	}
	g.even, g.stored = float64(most)*float64(len(plan.Nodes))/float64(all), float64(all)/float64(g.bytes)
	return nil
}

// fill writes so many bytes while nobody reads, and then others while clients do.
func (b *bench) fill(
	ctx context.Context, r *reader, size int64, write func(ctx context.Context, prefix string) error,
) (f filling, err error) {
	began := time.Now()
	if err := write(ctx, "offline/"); err != nil {
		return f, err
	}
	f.offline = float64(size) / time.Since(began).Seconds()
	f.reads, err = r.during(ctx, func(ctx context.Context) error {
		began := time.Now()
		err := write(ctx, "online/")
		f.online = float64(size) / time.Since(began).Seconds()
		return err
	})
	return f, err
}

// fillByUpdates writes into the new columns of stripes that are there, as one does who moves nothing and makes no new stripes (No-DM and
// DM-Only in the paper): what the columns change is added to parities that are there. All new columns of a stripe are written by one
// request, which is the paper's deferred update.
func (b *bench) fillByUpdates(ctx context.Context, n *network, s step) (f filling, err error) {
	c, err := b.startCluster(ctx, n, s.nodes(), growthOther)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	if _, err := c.client.PutClass(ctx, growthClass(s.to.String(), b.options.objectBytes)); err != nil {
		return f, err
	}
	objects, err := b.growthCorpus(s)
	if err != nil {
		return f, err
	}
	at := b.options.objectBytes * int64(s.from.K) / int64(s.to.K)
	sparse := make(corpus, len(objects))
	for i, data := range objects {
		sparse[i] = slices.Concat(data[:at], make([]byte, len(data)-int(at)))
	}
	var members []string
	for i := range s.nodes() {
		members = append(members, nodeName(i))
	}
	for _, prefix := range []string{"", "offline/", "online/"} {
		if err := sparse.put(ctx, c.client, prefix); err != nil {
			return f, err
		}
	}
	if err := n.shape(ctx, members, b.options.rates[0]); err != nil {
		return f, err
	}
	update := func(ctx context.Context, prefix string) error {
		workers, ctx := errgroup.WithContext(ctx)
		workers.SetLimit(transfersAtOnce)
		for i, data := range objects {
			workers.Go(func() error {
				_, err := c.client.Update(ctx, keyOf(prefix, i), at, bytes.NewReader(data[at:]), int64(len(data))-at)
				return err
			})
		}
		return workers.Wait()
	}
	size := (b.options.objectBytes - at) * int64(len(objects))
	if f, err = b.fill(ctx, b.growthReader(c, sparse, s.from.K+s.from.M), size, update); err != nil {
		return f, err
	}
	for _, prefix := range []string{"offline/", "online/"} {
		if err := objects.verify(ctx, c.client, prefix); err != nil {
			return f, err
		}
	}
	b.say("%-20s %-24s fills %.0f MB/s", s, "by updates", f.offline/1e6)
	return f, n.free(ctx, members)
}

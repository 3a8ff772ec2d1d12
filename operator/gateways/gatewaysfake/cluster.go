package gatewaysfake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/stripe"
)

// Heat says how often a group is used at a time, in accesses a day.
type Heat func(now time.Time) float64

// Constant is the heat of groups that are always used alike.
func Constant(rate float64) Heat { return func(time.Time) float64 { return rate } }

// Cluster is the gateways of one backend. Its methods are safe for concurrent use.
type Cluster struct {
	*Members
	clock clock.PassiveClock
	speed int64 // bytes per second of a transition without a limit

	mutex   sync.Mutex // of what follows
	down    error
	nodes   []api.NodeStatus
	classes map[string]*class
	strays  []stray
	jobs    map[string]*job
	latency time.Duration
	limit   int64            // that all transitions together must stay within; 0: none
	repair  api.RepairStatus // as it was declared
	calls   map[string]int
	broken  []string
}

// class is a class with its groups.
type class struct {
	info    api.ClassInfo
	layout  *stripe.Layout
	stock   []*batch
	shadows *api.Shadows // reported while the class has prices
}

// SetShadows has the heat of a class with prices report what candidates would have paid.
func SetShadows(c *Cluster, name string, shadows *api.Shadows) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.classes[name].shadows = shadows
}

// batch is groups that are alike.
type batch struct {
	scheme    stripe.Scheme
	groups    int64
	cellBytes int64
	heat      Heat
	since     time.Time
}

// New returns a cluster of so many nodes, which share nothing, and of no classes.
func New(clock clock.PassiveClock, nodes int, speed int64) *Cluster {
	c := &Cluster{clock: clock, speed: speed, classes: map[string]*class{}, jobs: map[string]*job{}, calls: map[string]int{}}
	c.Members = &Members{of: c, agents: map[string]string{}, removed: map[string]bool{}, balance: api.Balance{State: api.BalanceNone}}
	for i := range nodes {
		c.enterNode(api.NodeStatus{ID: nodeName(i), Address: fmt.Sprintf("agent-%d:7400", i+1)})
	}
	return c
}

// Add puts groups into a class that has been declared, settled long since.
func (c *Cluster) Add(name string, scheme string, groups, cellBytes int64, heat Heat) error {
	code, err := stripe.ParseScheme(scheme)
	if err != nil {
		return fmt.Errorf("adding groups: %w", err)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	found := c.classes[name]
	if found == nil {
		return fmt.Errorf("adding groups: there is no class %q", name)
	}
	found.stock = append(found.stock, &batch{scheme: code, groups: groups, cellBytes: cellBytes, heat: heat, since: c.clock.Now().Add(-longSince)})
	return nil
}

// stray is objects of one class whose keys belong to another.
type stray struct {
	belongs string
	count   api.ClassCount
}

// Stray has objects of one class whose keys belong to another, as when they were put before that was declared.
func (c *Cluster) Stray(belongs, is string, objects, bytes int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.strays = append(c.strays, stray{belongs, api.ClassCount{Class: is, Objects: objects, Bytes: bytes}})
}

// Empty takes all groups out of a class, as when their objects are deleted.
func (c *Cluster) Empty(name string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if found := c.classes[name]; found != nil {
		found.stock = nil
	}
}

// longSince is longer than any dwell of a test.
const longSince = 10 * 365 * 24 * time.Hour

// Break makes every call fail with the error until it is called with nil. Transitions go on meanwhile.
func (c *Cluster) Break(err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.down = err
}

// Unreachable is an error for Break.
var Unreachable = fmt.Errorf("%w at http://gateway.test", client.ErrUnreachable)

// SetLimit says within which bytes per second all transitions together must stay, for Broken.
func (c *Cluster) SetLimit(limit int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.limit = limit
}

// forbidExcess writes down that transitions may use more than they all together should.
func (c *Cluster) forbidExcess() {
	var total int64
	for id, j := range c.jobs {
		if j.state.State != api.TransitionRunning || c.limit == 0 {
			continue
		}
		if j.state.BytesPerSecond == 0 {
			c.broken = append(c.broken, fmt.Sprintf("transition %s has no limit", id))
		}
		total += j.state.BytesPerSecond
	}
	if total > c.limit {
		c.broken = append(c.broken, fmt.Sprintf("transitions may use %d bytes per second together, %d are allowed", total, c.limit))
	}
}

// SetLatency makes clients wait so long.
func (c *Cluster) SetLatency(latency time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.latency = latency
}

// SetNode changes the state of a node.
func (c *Cluster) SetNode(i int, state string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.nodes[i].State = state
}

// RepairStatus tells what was declared of repair; nothing is ever repaired.
func (c *Cluster) RepairStatus(context.Context) (api.RepairStatus, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.repair, c.begin("RepairStatus")
}

// ThrottleRepair changes the limits of repair.
func (c *Cluster) ThrottleRepair(_ context.Context, limits api.ThrottleRequest) (api.RepairStatus, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.begin("ThrottleRepair"); err != nil {
		return api.RepairStatus{}, err
	}
	err := change(limits, &c.repair.BytesPerSecond, &c.repair.NodeBytesPerSecond, &c.repair.DomainBytesPerSecond)
	return c.repair, err
}

// change sets the limits that are given.
func change(limits api.ThrottleRequest, total, node, domain *int64) error {
	if err := limits.Check(); err != nil {
		return refusal(api.CodeBadRequest, "%v", err)
	}
	for _, limit := range []struct{ from, to *int64 }{
		{limits.BytesPerSecond, total}, {limits.NodeBytesPerSecond, node}, {limits.DomainBytesPerSecond, domain},
	} {
		if limit.from != nil {
			*limit.to = *limit.from
		}
	}
	return nil
}

// DeferRepair has repair wait, or no more.
func (c *Cluster) DeferRepair(_ context.Context, request api.DeferRequest) (api.RepairStatus, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.begin("DeferRepair"); err != nil {
		return api.RepairStatus{}, err
	}
	c.repair.DeferredUntil, c.repair.DeferredBy = nil, ""
	if request.Until.After(c.clock.Now()) {
		c.repair.DeferredUntil, c.repair.DeferredBy = &request.Until, request.By
	}
	return c.repair, nil
}

// PlaceNode changes the failure domain of a node and whether it is a spare.
func (c *Cluster) PlaceNode(_ context.Context, id string, request api.PlaceRequest) (api.NodeInfo, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.begin("PlaceNode"); err != nil {
		return api.NodeInfo{}, err
	}
	for i := range c.nodes {
		node := &c.nodes[i]
		if string(node.ID) != id {
			continue
		}
		if request.Domain != nil && len(*request.Domain) > 63 {
			return api.NodeInfo{}, refusal(api.CodeBadRequest, "a failure domain has at most 63 bytes, this one has %d", len(*request.Domain))
		}
		if request.Domain != nil {
			node.Domain = *request.Domain
		}
		if request.Spare != nil {
			node.Spare = *request.Spare
		}
		return api.NodeInfo{NodeStatus: *node}, nil
	}
	return api.NodeInfo{}, fmt.Errorf("%w: node %q", api.ErrNotFound, id)
}

// Calls returns how often each method was called.
func (c *Cluster) Calls() map[string]int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return maps.Clone(c.calls)
}

// Broken returns what was asked for and must never be: transitions that overlap, rates above what SetLimit allows.
func (c *Cluster) Broken() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Clone(c.broken)
}

// Groups counts the groups of a class by scheme, now.
func (c *Cluster) Groups(name string) map[string]int64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.advance()
	counts := map[string]int64{}
	if found := c.classes[name]; found != nil {
		for _, b := range found.stock {
			if b.groups > 0 {
				counts[b.scheme.String()] += b.groups
			}
		}
	}
	return counts
}

// ClassNames returns the names of the classes.
func (c *Cluster) ClassNames() []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Sorted(maps.Keys(c.classes))
}

// begin counts a call and fails it while the cluster is broken. The caller holds the mutex.
func (c *Cluster) begin(call string) error {
	c.calls[call]++
	if c.down != nil {
		return c.down
	}
	c.advance()
	return nil
}

// refusal is an error as the gateway's client returns it.
func refusal(code api.Code, format string, values ...any) error {
	return &client.Error{Code: code, Message: fmt.Sprintf(format, values...)}
}

// storedBytes is what a group of the batch takes.
func (k *class) storedBytes(b *batch) int64 {
	return b.cellBytes * int64(k.layout.Cells()+b.scheme.M*k.layout.Cells()/b.scheme.K)
}

package gatewaysfake

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/stripe"
)

func nodeName(i int) block.NodeID { return block.NodeID(fmt.Sprintf("n%d", i+1)) }

// StatusBrief returns the nodes and the sums, without what a walk alone tells.
func (c *Cluster) StatusBrief(context.Context) (api.Status, error) {
	status, err := c.status("StatusBrief")
	status.CanLose = -1
	return status, err
}

// Status returns the nodes and the sums.
func (c *Cluster) Status(context.Context) (api.Status, error) { return c.status("Status") }

func (c *Cluster) status(call string) (api.Status, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.begin(call); err != nil {
		return api.Status{}, err
	}
	status := api.Status{Cluster: "test", Gateway: "gw", Nodes: slices.Clone(c.nodes), CanLose: -1}
	used := int64(0)
	for _, k := range c.classes {
		for _, b := range k.stock {
			if b.groups == 0 {
				continue
			}
			status.Groups += b.groups
			used += b.groups * k.storedBytes(b)
			if status.CanLose < 0 || b.scheme.M < status.CanLose {
				status.CanLose = b.scheme.M
			}
		}
	}
	status.Objects = status.Groups
	for i := range status.Nodes {
		status.Nodes[i].UsedBytes = used / int64(len(status.Nodes))
	}
	return status, nil
}

// Load returns the latency that SetLatency set.
func (c *Cluster) Load(context.Context) (api.Load, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.begin("Load"); err != nil {
		return api.Load{}, err
	}
	return api.Load{WindowSeconds: 10, Requests: 1000, P50Seconds: c.latency.Seconds() / 2, P99Seconds: c.latency.Seconds()}, nil
}

// Classes lists the classes.
func (c *Cluster) Classes(context.Context) ([]api.ClassInfo, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.begin("Classes"); err != nil {
		return nil, err
	}
	var list []api.ClassInfo
	for _, name := range slices.Sorted(maps.Keys(c.classes)) {
		list = append(list, c.classes[name].info)
	}
	return list, nil
}

// PutClass declares or changes a class.
func (c *Cluster) PutClass(_ context.Context, spec api.ClassSpec) (api.ClassInfo, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.begin("PutClass"); err != nil {
		return api.ClassInfo{}, err
	}
	for name, other := range c.classes {
		for _, prefix := range spec.Prefixes {
			if name != spec.Name && slices.Contains(other.info.Prefixes, prefix) {
				return api.ClassInfo{}, refusal(api.CodeConflict, "prefix %q belongs to class %s already", prefix, name)
			}
		}
	}
	info, layout, err := describe(spec)
	if err != nil {
		return api.ClassInfo{}, refusal(api.CodeBadRequest, "class %q, %v", spec.Name, err)
	}
	found := c.classes[spec.Name]
	if found == nil {
		found = &class{}
		c.classes[spec.Name] = found
	}
	found.info, found.layout = info, layout
	return info, nil
}

// DeleteClass removes an empty class.
func (c *Cluster) DeleteClass(_ context.Context, name string) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.begin("DeleteClass"); err != nil {
		return err
	}
	found := c.classes[name]
	if found == nil {
		return nil
	}
	for _, b := range found.stock {
		if b.groups > 0 {
			return refusal(api.CodeConflict, "class %s has objects; delete or move them first", name)
		}
	}
	delete(c.classes, name)
	return nil
}

// Heat sums up the groups.
func (c *Cluster) Heat(context.Context) (api.HeatReport, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.begin("Heat"); err != nil {
		return api.HeatReport{}, err
	}
	now := c.clock.Now()
	report := api.HeatReport{At: now, Began: now, Since: now.Add(-longSince), Complete: true, ObjectsAt: now}
	for _, name := range slices.Sorted(maps.Keys(c.classes)) {
		class := c.classes[name].heat(now)
		for _, s := range c.strays {
			if s.belongs == name {
				class.Elsewhere = append(class.Elsewhere, s.count)
			}
		}
		report.Classes = append(report.Classes, class)
	}
	return report, nil
}

// describe reads a specification as the gateways do.
func describe(spec api.ClassSpec) (api.ClassInfo, *stripe.Layout, error) {
	parsed, err := spec.Parse()
	if err != nil {
		return api.ClassInfo{}, nil, err
	}
	layout, err := stripe.NewLayout(parsed.Ladder, 0, stripe.ModeFree)
	if err != nil {
		return api.ClassInfo{}, nil, err
	}
	return parsed.Info(api.ClassFromAPI), layout, nil
}

// heat sums up a class.
func (k *class) heat(now time.Time) api.ClassHeat {
	report := api.ClassHeat{
		Class: k.info.Name, HalfLife: k.info.HalfLife, Dwell: k.info.Dwell, CountedPrefixes: slices.Sorted(slices.Values(k.info.Prefixes)),
	}
	if k.info.Prices != nil {
		report.Shadows = k.shadows
	}
	dwell, _ := time.ParseDuration(k.info.Dwell) // one that does not parse settles everything
	rungs := map[stripe.Scheme]*api.RungHeat{}
	order := slices.Clone(k.layout.Ladder)
	for _, b := range k.stock {
		if !slices.Contains(order, b.scheme) {
			order = append(order, b.scheme)
		}
	}
	for _, scheme := range order {
		rungs[scheme] = &api.RungHeat{Scheme: scheme.String()}
	}
	for _, b := range k.stock {
		if b.groups == 0 {
			continue
		}
		rung := rungs[b.scheme]
		bytes := b.groups * b.cellBytes * int64(k.layout.Cells())
		rung.Groups += b.groups
		rung.Bytes += bytes
		rung.StoredBytes += b.groups * k.storedBytes(b)
		rung.CellBytesTotal += b.groups * b.cellBytes
		if rung.Buckets == nil {
			rung.Buckets = emptyBuckets()
		}
		bucket := &rung.Buckets[bucketOf(b.heat(now))]
		bucket.Groups += b.groups
		bucket.Bytes += bytes
		if !now.Before(b.since.Add(dwell)) {
			bucket.SettledGroups += b.groups
			bucket.SettledBytes += bytes
		}
		report.Objects += b.groups
		report.Bytes += bytes
	}
	for _, scheme := range order {
		report.Rungs = append(report.Rungs, *rungs[scheme])
	}
	return report
}

func emptyBuckets() []api.HeatBucket {
	buckets := make([]api.HeatBucket, api.HeatBuckets)
	for i := range len(buckets) - 1 {
		buckets[i].Below = api.HeatEdge(i + 1)
	}
	return buckets
}

func bucketOf(heat float64) int {
	for i := api.HeatBuckets - 1; i > 0; i-- {
		if heat >= api.HeatEdge(i) {
			return i
		}
	}
	return 0
}

package ceph

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// osdMap is the part of `ceph osd dump` that is of interest.
type osdMap struct {
	Epoch int64      `json:"epoch"`
	Flags string     `json:"flags"`
	Pools []poolDump `json:"pools"`
	OSDs  []osdDump  `json:"osds"`
}

type poolDump struct {
	ID           int64                        `json:"pool"`
	Name         string                       `json:"pool_name"`
	Type         int                          `json:"type"` // 1 replicated, 3 erasure
	Size         int                          `json:"size"`
	Rule         int                          `json:"crush_rule"`
	Groups       int                          `json:"pg_num"`
	QuotaBytes   int64                        `json:"quota_max_bytes"`
	Applications map[string]map[string]string `json:"application_metadata"`
}

type osdDump struct {
	ID int `json:"osd"`
	Up int `json:"up"`
	In int `json:"in"`
}

// crushMap is the part of `ceph osd crush dump` that is of interest.
type crushMap struct {
	Devices []struct {
		ID   int    `json:"id"`
		Name string `json:"name"`
	} `json:"devices"`
	Buckets []struct {
		ID    int    `json:"id"`
		Name  string `json:"name"`
		Type  string `json:"type_name"`
		Items []struct {
			ID int `json:"id"`
		} `json:"items"`
	} `json:"buckets"`
	Rules []struct {
		ID    int    `json:"rule_id"`
		Name  string `json:"rule_name"`
		Steps []struct {
			Operation string `json:"op"`
			Item      int    `json:"item"`
			ItemName  string `json:"item_name"`
		} `json:"steps"`
	} `json:"rules"`
}

const poolReplicated = 1

// judge returns where a pool keeps its objects, or an error that wraps ErrPool and says why the pool cannot be a node.
func judge(dumped, crushDumped []byte, pool string) (*place, error) {
	var osds osdMap
	if err := json.Unmarshal(dumped, &osds); err != nil {
		return nil, fmt.Errorf("reading the map of the OSDs: %w", err)
	}
	var crush crushMap
	if err := json.Unmarshal(crushDumped, &crush); err != nil {
		return nil, fmt.Errorf("reading the CRUSH map: %w", err)
	}
	found := slices.IndexFunc(osds.Pools, func(p poolDump) bool { return p.Name == pool })
	if found < 0 {
		return nil, fmt.Errorf("%w: there is no pool %s; the cluster has %s; make the pools of nodes with `restripe ceph init`",
			ErrPool, pool, listed(poolNames(osds.Pools)))
	}
	p := &place{epoch: osds.Epoch, pool: osds.Pools[found]}
	if err := p.pool.check(); err != nil {
		return nil, err
	}
	bucket, err := crush.taken(p.pool)
	if err != nil {
		return nil, err
	}
	p.bucket = crush.name(bucket)
	below := crush.below(bucket)
	for _, osd := range osds.OSDs {
		if slices.Contains(below, osd.ID) {
			p.osds = append(p.osds, osd)
		}
	}
	return p, nil
}

// check refuses pools with redundancy of their own and pools of others.
func (p poolDump) check() error {
	if _, ours := p.Applications[Application]; !ours {
		of := "no application"
		if len(p.Applications) > 0 {
			of = "the application " + strings.Join(slices.Sorted(maps.Keys(p.Applications)), ", ")
		}
		return fmt.Errorf("%w: the pool %s belongs to %s, not to %s; make the pools of nodes with `restripe ceph init`, or, if this one is to be a node, "+
			"tag it with `ceph osd pool application enable %s %s`", ErrPool, p.Name, of, Application, p.Name, Application)
	}
	if p.Type != poolReplicated {
		return fmt.Errorf("%w: the pool %s is erasure-coded by Ceph, and the redundancy of a node's blocks is Restripe's; "+
			"make pools of size 1 with `restripe ceph init`", ErrPool, p.Name)
	}
	if p.Size != 1 {
		return fmt.Errorf("%w: the pool %s keeps %d copies of each object (size %d), and the redundancy of a node's blocks is Restripe's; "+
			"make pools of size 1 with `restripe ceph init`, or set it with `ceph osd pool set %s size 1 --yes-i-really-mean-it`", ErrPool, p.Name, p.Size, p.Size, p.Name)
	}
	return nil
}

// taken returns the one bucket or device that the rule of a pool takes.
func (c *crushMap) taken(p poolDump) (int, error) {
	for _, rule := range c.Rules {
		if rule.ID != p.Rule {
			continue
		}
		var items []int
		for _, step := range rule.Steps {
			if step.Operation == "take" && !slices.Contains(items, step.Item) {
				items = append(items, step.Item)
			}
		}
		if len(items) != 1 {
			return 0, fmt.Errorf("%w: the rule %s of the pool %s takes %d buckets, a node's takes one; make pools with `restripe ceph init`",
				ErrPool, rule.Name, p.Name, len(items))
		}
		if kind := c.kind(items[0]); kind == "root" {
			return 0, fmt.Errorf("%w: the rule %s of the pool %s takes the root %s, so that its objects lie on many hosts; a node is one host or one OSD; "+
				"make pools with `restripe ceph init`", ErrPool, rule.Name, p.Name, c.name(items[0]))
		}
		return items[0], nil
	}
	return 0, fmt.Errorf("%w: the pool %s has the rule %d, which the CRUSH map does not have", ErrPool, p.Name, p.Rule)
}

// name returns the name of a bucket, without that of the device class it was narrowed to, or of a device.
func (c *crushMap) name(id int) string {
	for _, bucket := range c.Buckets {
		if bucket.ID == id {
			name, _, _ := strings.Cut(bucket.Name, "~")
			return name
		}
	}
	for _, device := range c.Devices {
		if device.ID == id {
			return device.Name
		}
	}
	return fmt.Sprint(id)
}

// kind returns the type of a bucket; "osd" for a device.
func (c *crushMap) kind(id int) string {
	for _, bucket := range c.Buckets {
		if bucket.ID == id {
			return bucket.Type
		}
	}
	return "osd"
}

// below returns the devices of a bucket; a device is its own.
func (c *crushMap) below(id int) []int {
	if id >= 0 {
		return []int{id}
	}
	var devices []int
	for _, bucket := range c.Buckets {
		if bucket.ID != id {
			continue
		}
		for _, item := range bucket.Items {
			devices = append(devices, c.below(item.ID)...)
		}
	}
	return devices
}

func poolNames(pools []poolDump) []string {
	names := make([]string, len(pools))
	for i, p := range pools {
		names[i] = p.Name
	}
	return names
}

// listed joins names for a message, not too many.
func listed(names []string) string {
	const most = 12
	switch {
	case len(names) == 0:
		return "none"
	case len(names) > most:
		return fmt.Sprintf("%s and %d others", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

package pools

import (
	"context"
	"fmt"
	"strings"
)

// State is a cluster as its monitors describe it.
type State struct {
	FSID           string
	SizeOneAllowed bool // mon_allow_pool_size_one in the monitors' configuration database
	Buckets        []Bucket
	Rules          []Rule
	Pools          []Pool
	OSDs           []OSD
	Flags          []string            // of the whole cluster, such as noout
	Releases       map[string][]string // by kind of daemon, the versions that run
}

// Bucket is one bucket of the CRUSH hierarchy. Shadow buckets of device classes are left out.
type Bucket struct {
	ID     int
	Name   string
	Type   string
	Parent string   // its name; "" for a root
	OSDs   []int    // directly in it or below, ascending, of any weight
	Below  []string // the names of the buckets directly in it
}

// Rule is one rule for placing.
type Rule struct {
	ID    int
	Name  string
	Takes []string // the buckets of its take steps; name~class where it takes one device class
	Spans string   // the type it chooses between in its one choose step; "" where there are more or none
}

// Pool is one pool.
type Pool struct {
	ID              int64
	Name            string
	ErasureCoded    bool
	Size, MinSize   int
	Rule            int
	PlacementGroups int
	AutoscaleMode   string
	Tier            bool // it is a cache of another pool, or has one
	Snapshots       int  // of the whole pool
	Applications    map[string]map[string]string
}

// OSD is one OSD.
type OSD struct {
	ID    int
	Class string
	Up    bool
	In    bool
	State []string // such as nearfull and full
}

// Application is the tag of the pools that are Restripe's nodes.
const Application = "restripe"

// Observe asks the monitors for the state. It takes no more than the right to read from them.
func Observe(ctx context.Context, m Monitor) (*State, error) {
	var crush crushDump
	var osds osdDump
	var releases map[string]map[string]int
	var sizeOne any
	for _, question := range []struct {
		command Command
		answer  any
	}{
		{Command{Prefix: "osd crush dump"}, &crush},
		{Command{Prefix: "osd dump"}, &osds},
		{Command{Prefix: "versions"}, &releases},
		{Command{Prefix: "config get", Arguments: map[string]any{"who": "mon", "key": optionSizeOne}}, &sizeOne},
	} {
		if err := ask(ctx, m, question.command, question.answer); err != nil {
			return nil, fmt.Errorf("observing the cluster: %w", err)
		}
	}
	return newState(&crush, &osds, releases, fmt.Sprint(sizeOne) == "true")
}

// optionSizeOne is the option of monitors without which they refuse pools of size 1.
const optionSizeOne = "mon_allow_pool_size_one"

// crushDump and osdDump are what the monitors print, as far as it is read.
type crushDump struct {
	Devices []struct {
		ID    int    `json:"id"`
		Class string `json:"class"`
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
			Op   string `json:"op"`
			Item string `json:"item_name"`
			Type string `json:"type"`
		} `json:"steps"`
	} `json:"rules"`
}

type osdDump struct {
	FSID  string   `json:"fsid"`
	Flags []string `json:"flags_set"`
	Pools []struct {
		ID              int64                        `json:"pool"`
		Name            string                       `json:"pool_name"`
		Type            int                          `json:"type"`
		Size            int                          `json:"size"`
		MinSize         int                          `json:"min_size"`
		Rule            int                          `json:"crush_rule"`
		PlacementGroups int                          `json:"pg_num_target"`
		AutoscaleMode   string                       `json:"pg_autoscale_mode"`
		Tiers           []int64                      `json:"tiers"`
		TierOf          int64                        `json:"tier_of"`
		Snapshots       []any                        `json:"pool_snaps"`
		Applications    map[string]map[string]string `json:"application_metadata"`
	} `json:"pools"`
	OSDs []struct {
		ID    int      `json:"osd"`
		Up    int      `json:"up"`
		In    int      `json:"in"`
		State []string `json:"state"`
	} `json:"osds"`
}

// erasureType is the number of the type of erasure-coded pools.
const erasureType = 3

func newState(crush *crushDump, osds *osdDump, releases map[string]map[string]int, sizeOneAllowed bool) (*State, error) {
	s := &State{FSID: osds.FSID, SizeOneAllowed: sizeOneAllowed, Flags: osds.Flags, Releases: map[string][]string{}}
	classes := map[int]string{}
	for _, device := range crush.Devices {
		classes[device.ID] = device.Class
	}
	for _, o := range osds.OSDs {
		s.OSDs = append(s.OSDs, OSD{ID: o.ID, Class: classes[o.ID], Up: o.Up == 1, In: o.In == 1, State: o.State})
	}
	for _, p := range osds.Pools {
		s.Pools = append(s.Pools, Pool{
			ID: p.ID, Name: p.Name, ErasureCoded: p.Type == erasureType, Size: p.Size, MinSize: p.MinSize, Rule: p.Rule,
			PlacementGroups: p.PlacementGroups, AutoscaleMode: p.AutoscaleMode, Tier: p.TierOf >= 0 || len(p.Tiers) > 0,
			Snapshots: len(p.Snapshots), Applications: p.Applications,
		})
	}
	for _, r := range crush.Rules {
		rule := Rule{ID: r.ID, Name: r.Name}
		chooses := 0
		for _, step := range r.Steps {
			switch {
			case step.Op == "take":
				rule.Takes = append(rule.Takes, step.Item)
			case strings.HasPrefix(step.Op, "choose"):
				chooses++
				rule.Spans = step.Type
			}
		}
		if chooses != 1 {
			rule.Spans = ""
		}
		s.Rules = append(s.Rules, rule)
	}
	for kind, versions := range releases {
		for version := range versions {
			s.Releases[kind] = append(s.Releases[kind], version)
		}
	}
	return s, s.addBuckets(crush)
}

// addBuckets fills in the hierarchy. It fails where the hierarchy is not one of trees.
func (s *State) addBuckets(crush *crushDump) error {
	at := map[int]int{} // of a bucket's number, its place in s.Buckets
	for _, b := range crush.Buckets {
		if !strings.Contains(b.Name, "~") {
			at[b.ID] = len(s.Buckets)
			s.Buckets = append(s.Buckets, Bucket{ID: b.ID, Name: b.Name, Type: b.Type})
		}
	}
	for _, b := range crush.Buckets {
		place, there := at[b.ID]
		if !there {
			continue
		}
		for _, item := range b.Items {
			below, isBucket := at[item.ID]
			switch {
			case item.ID >= 0:
				s.Buckets[place].OSDs = append(s.Buckets[place].OSDs, item.ID)
			case isBucket:
				if parent := s.Buckets[below].Parent; parent != "" && parent != b.Name {
					return fmt.Errorf("the bucket %s lies both in %s and in %s: Restripe needs a hierarchy in which each bucket has one place",
						s.Buckets[below].Name, parent, b.Name)
				}
				s.Buckets[below].Parent = b.Name
				s.Buckets[place].Below = append(s.Buckets[place].Below, s.Buckets[below].Name)
			}
		}
	}
	for i := range s.Buckets {
		s.Buckets[i].OSDs = s.osdsBelow(&s.Buckets[i])
	}
	return nil
}

package ceph

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// place is where the blocks of a node are.
type place struct {
	epoch    int64 // of the map of the OSDs that says so
	pool     poolDump
	bucket   string
	osds     []osdDump // in the bucket
	inMemory []string  // names of those that keep their objects in memory alone
}

// warnings says what is wrong with the OSDs of a node, in whole sentences.
func (p *place) warnings() (warnings []string) {
	var down, out []string
	for _, osd := range p.osds {
		switch {
		case osd.Up == 0:
			down = append(down, fmt.Sprintf("osd.%d", osd.ID))
		case osd.In == 0:
			out = append(out, fmt.Sprintf("osd.%d", osd.ID))
		}
	}
	if len(down) > 0 {
		warnings = append(warnings, fmt.Sprintf("Down in %s: %s; blocks on it cannot be read or written until it is started again, or is given up and repaired.",
			p.bucket, strings.Join(down, ", ")))
	}
	if len(out) > 0 {
		warnings = append(warnings, fmt.Sprintf("Marked out in %s: %s; Ceph moves its blocks to the other OSDs there.", p.bucket, strings.Join(out, ", ")))
	}
	if len(p.osds) == 0 {
		warnings = append(warnings, fmt.Sprintf("The bucket %s of the pool %s has no OSD, so that nothing can be stored; add one, or remove the node.", p.bucket, p.pool.Name))
	}
	return warnings
}

// usage reads from the answer to `ceph df` how many bytes the pool has and how many it could have, 0 where the managers
// have not said yet.
func (p *place) usage(answer []byte) (used, capacity int64, err error) {
	var df struct {
		Pools []struct {
			Name  string `json:"name"`
			Stats struct {
				Stored    int64 `json:"stored"`
				Available int64 `json:"max_avail"`
			} `json:"stats"`
		} `json:"pools"`
	}
	if err := json.Unmarshal(answer, &df); err != nil {
		return 0, 0, fmt.Errorf("reading the usage of the pools: %w", err)
	}
	for _, pool := range df.Pools {
		if pool.Name == p.pool.Name {
			used, capacity = pool.Stats.Stored, pool.Stats.Stored+pool.Stats.Available
		}
	}
	if quota := p.pool.QuotaBytes; quota > 0 && (capacity == 0 || quota < capacity) {
		capacity = quota
	}
	return max(0, used), max(0, capacity), nil
}

// readMetadata takes from the answer to `ceph osd metadata` which OSDs of the node keep their objects in memory.
func (p *place) readMetadata(answer []byte) error {
	var all []struct {
		ID    int    `json:"id"`
		Store string `json:"osd_objectstore"`
	}
	if err := json.Unmarshal(answer, &all); err != nil {
		return fmt.Errorf("reading what the OSDs keep objects in: %w", err)
	}
	for _, osd := range all {
		if osd.Store == "memstore" && slices.ContainsFunc(p.osds, func(in osdDump) bool { return in.ID == osd.ID }) {
			p.inMemory = append(p.inMemory, fmt.Sprintf("osd.%d", osd.ID))
		}
	}
	return nil
}

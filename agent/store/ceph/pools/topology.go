package pools

import "slices"

// bucket returns the bucket of a name; nil if there is none.
func (s *State) bucket(name string) *Bucket {
	for i := range s.Buckets {
		if s.Buckets[i].Name == name {
			return &s.Buckets[i]
		}
	}
	return nil
}

// osdsBelow returns the OSDs in the bucket and in all buckets below it, ascending.
func (s *State) osdsBelow(b *Bucket) []int {
	seen := map[string]bool{b.Name: true}
	found := slices.Clone(b.OSDs)
	for waiting := slices.Clone(b.Below); len(waiting) > 0; waiting = waiting[1:] {
		if seen[waiting[0]] {
			continue
		}
		seen[waiting[0]] = true
		below := s.bucket(waiting[0])
		found, waiting = append(found, below.OSDs...), append(waiting, below.Below...)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// ancestor returns the nearest bucket of a type above b; nil if there is none.
func (s *State) ancestor(b *Bucket, kind string) *Bucket {
	for above := s.bucket(b.Parent); above != nil; above = s.bucket(above.Parent) {
		if above.Type == kind {
			return above
		}
	}
	return nil
}

// domain returns the failure domain of a bucket: the nearest bucket of the type above it, or, where no type is asked for,
// the one right above it if that is no root. It is "" where there is none: the node is then its own domain.
func (s *State) domain(b *Bucket, kind string) string {
	above := s.bucket(b.Parent)
	if kind != "" {
		above = s.ancestor(b, kind)
	}
	if above == nil || (kind == "" && above.Parent == "") {
		return ""
	}
	return above.Name
}

// OSD returns the OSD of a number; nil if there is none.
func (s *State) OSD(id int) *OSD {
	for i := range s.OSDs {
		if s.OSDs[i].ID == id {
			return &s.OSDs[i]
		}
	}
	return nil
}

// Pool returns the pool of a name; nil if there is none.
func (s *State) Pool(name string) *Pool {
	for i := range s.Pools {
		if s.Pools[i].Name == name {
			return &s.Pools[i]
		}
	}
	return nil
}

func (s *State) rule(name string) *Rule {
	for i := range s.Rules {
		if s.Rules[i].Name == name {
			return &s.Rules[i]
		}
	}
	return nil
}

func (s *State) ruleOf(p *Pool) *Rule {
	for i := range s.Rules {
		if s.Rules[i].ID == p.Rule {
			return &s.Rules[i]
		}
	}
	return nil
}

// Owned reports whether the pool is one of Restripe's.
func (p *Pool) Owned() bool {
	_, tagged := p.Applications[Application]
	return tagged
}

// mark returns what the pool's tag says under a key.
func (p *Pool) mark(key string) string { return p.Applications[Application][key] }

// The keys of the metadata of an owned pool.
const (
	markNode   = "node"   // the bucket
	markType   = "type"   // of the bucket
	markRule   = "rule"   // its name
	markDomain = "domain" // the failure domain; absent where the node is its own
	markClass  = "class"  // of devices; absent where all are used
)

// NodePool is a pool that is a node, as its tag describes it.
type NodePool struct {
	Pool   string `json:"pool"`
	Node   string `json:"node"` // the bucket
	Domain string `json:"domain,omitempty"`
	OSDs   []int  `json:"osds"`
}

// Nodes returns the pools that are nodes, in the order of their names.
func (s *State) Nodes() []NodePool {
	var nodes []NodePool
	for i := range s.Pools {
		p := &s.Pools[i]
		if !p.Owned() || p.mark(markNode) == "" {
			continue
		}
		node := NodePool{Pool: p.Name, Node: p.mark(markNode), Domain: p.mark(markDomain)}
		if b := s.bucket(node.Node); b != nil {
			node.OSDs = s.osdsOf(b, p.mark(markClass))
		}
		nodes = append(nodes, node)
	}
	slices.SortFunc(nodes, func(a, b NodePool) int { return compareNames(a.Pool, b.Pool) })
	return nodes
}

// osdsOf returns the OSDs below the bucket, of a device class where one is given.
func (s *State) osdsOf(b *Bucket, class string) []int {
	var found []int
	for _, id := range b.OSDs {
		if o := s.OSD(id); o != nil && (class == "" || o.Class == class) {
			found = append(found, id)
		}
	}
	return found
}

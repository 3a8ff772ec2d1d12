package launch

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Ceph says which pools of which Ceph cluster are the nodes, and as whom agents connect. Empty paths and an empty user
// are the defaults of package ceph.
type Ceph struct {
	Config  string
	Keyring string
	User    string
	Pools   []CephPool
}

// CephPool is a pool of size 1 that is one node.
type CephPool struct {
	Name   string
	Domain string // failure domain of the node; empty: its own
}

// complete makes paths absolute, since agents run elsewhere, and checks the pools.
func (c *Ceph) complete() error {
	if c == nil || len(c.Pools) == 0 {
		return errors.New("launching a cluster over Ceph: no pools are given to be nodes; make them with `restripe ceph init` and use `restripe up --store ceph`")
	}
	for i, pool := range c.Pools {
		if slices.ContainsFunc(c.Pools[:i], func(other CephPool) bool { return other.Name == pool.Name }) {
			return fmt.Errorf("launching a cluster over Ceph: the pool %s is given twice, but is one node", pool.Name)
		}
	}
	for _, name := range []*string{&c.Config, &c.Keyring} {
		if *name == "" {
			continue
		}
		absolute, err := filepath.Abs(*name)
		if err != nil {
			return fmt.Errorf("launching a cluster over Ceph: %w", err)
		}
		*name = absolute
	}
	return nil
}

// names returns the names of the pools.
func (c *Ceph) names() []string {
	names := make([]string, len(c.Pools))
	for i, pool := range c.Pools {
		names[i] = pool.Name
	}
	return names
}

// address returns the address of a pool's store.
func (c *Ceph) address(pool string) string {
	query := url.Values{}
	for parameter, value := range map[string]string{"conf": c.Config, "keyring": c.Keyring, "user": c.User} {
		if value != "" {
			query.Set(parameter, value)
		}
	}
	address := "ceph:" + url.PathEscape(pool)
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address
}

// order puts the pools in the order in which they became nodes n1, n2, ..., and refuses others than those.
func (c *Ceph) order(directory string, recorded []string) error {
	ordered := make([]CephPool, 0, len(c.Pools))
	for _, name := range recorded {
		if i := slices.IndexFunc(c.Pools, func(pool CephPool) bool { return pool.Name == name }); i >= 0 {
			ordered = append(ordered, c.Pools[i])
		}
	}
	if len(ordered) != len(recorded) || len(ordered) != len(c.Pools) {
		return fmt.Errorf("%w: %s has the pools %s for nodes, asked for are %s: ask for the same, or give another directory",
			ErrOtherShape, directory, strings.Join(recorded, ", "), strings.Join(c.names(), ", "))
	}
	c.Pools = ordered
	return nil
}

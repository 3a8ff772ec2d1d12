//go:build linux && ceph

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ceph/go-ceph/rados"

	"github.com/restripe/restripe/agent/store/ceph/cephtest"
)

// hosts is how many hosts the widest code of the comparison takes, 12 + 2.
const hosts = 14

// ground is a fresh cluster of Ceph with what counts on it.
type ground struct {
	*cephtest.Cluster
	conn     *rados.Conn
	counters *counters
}

// withCeph runs work on a fresh cluster, one OSD for each host, over files on a disk.
func (b *bench) withCeph(ctx context.Context, work func(*ground) error) (err error) {
	directory, err := os.MkdirTemp(b.base, "c")
	if err != nil {
		return fmt.Errorf("making a directory for Ceph: %w", err)
	}
	b.say("starting Ceph: %d hosts with one OSD each, bluestore", hosts)
	cluster, err := cephtest.Launch(ctx, directory, cephtest.Options{Hosts: hosts, Bluestore: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop(), os.RemoveAll(directory)) }()
	// OSDs pad their heartbeats to 2000 bytes, each to every other, twice: that would drown what is counted.
	if _, err := cluster.Command("config set", map[string]any{"who": "osd", "name": "osd_heartbeat_min_size", "value": "0"}); err != nil {
		return err
	}
	conn, err := cluster.Connect()
	if err != nil {
		return err
	}
	defer conn.Shutdown()
	counters, err := newCounters(filepath.Clean(cluster.Config()), hosts)
	if err != nil {
		return err
	}
	return work(&ground{Cluster: cluster, conn: conn, counters: counters})
}

// placementGroups of each pool of the native way, with which objects spread evenly over the OSDs.
const placementGroups = 32

// createPool makes a pool of Ceph's own: of k+m, or of so many copies where k is 0.
func (g *ground) createPool(name string, k, m, copies int) (*rados.IOContext, error) {
	arguments := map[string]any{"pool": name, "pg_num": placementGroups, "pgp_num": placementGroups, "pool_type": "replicated", "size": copies}
	if k > 0 {
		profile := []string{fmt.Sprintf("k=%d", k), fmt.Sprintf("m=%d", m), "plugin=jerasure", "technique=reed_sol_van", "crush-failure-domain=host"}
		if _, err := g.Command("osd erasure-code-profile set", map[string]any{"name": name, "profile": profile}); err != nil {
			return nil, err
		}
		arguments = map[string]any{"pool": name, "pg_num": placementGroups, "pgp_num": placementGroups, "pool_type": "erasure", "erasure_code_profile": name}
	}
	if _, err := g.Command("osd pool create", arguments); err != nil {
		return nil, err
	}
	if err := g.AwaitServing(); err != nil {
		return nil, err
	}
	return g.conn.OpenIOContext(name)
}

// deletePool removes a pool and waits until its space is free.
func (g *ground) deletePool(ctx context.Context, name string, pool *rados.IOContext) error {
	pool.Destroy()
	if _, err := g.Command("osd pool delete", map[string]any{"pool": name, "pool2": name, "yes_i_really_really_mean_it": true}); err != nil {
		return err
	}
	_, err := g.counters.settled(ctx)
	return err
}

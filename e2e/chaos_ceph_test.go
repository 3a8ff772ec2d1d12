//go:build ceph

package e2e

import (
	"fmt"
	"testing"

	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/store/ceph/cephtest"
)

const programTags = "ceph"

// cephKills is how many processes are killed over Ceph, where an OSD takes seconds to come back.
const cephKills = 15

// TestKillAnythingOverCeph is TestKillAnything with the OSDs of a real Ceph as the servers of the stores.
func TestKillAnythingOverCeph(t *testing.T) {
	seed := chaosSeed(t)
	ceph := cephtest.Start(t, cephtest.Options{Hosts: chaosAgents, Bluestore: true})
	if err := ceph.CreateNodePools(2); err != nil {
		t.Fatal(err)
	}
	keyring, err := ceph.CreateUser("restripe", "mon", "allow r", "osd", "allow rw tag restripe *=*")
	if err != nil {
		t.Fatal(err)
	}
	access := &launch.Ceph{Config: ceph.Config(), Keyring: keyring}
	for _, host := range ceph.Hosts() {
		access.Pools = append(access.Pools, launch.CephPool{Name: host})
	}
	c := newChaos(t, launch.Options{Store: launch.StoreCeph, Ceph: access}, seed)
	for id := range chaosAgents {
		c.stores = append(c.stores, killable{
			fmt.Sprintf("osd.%d", id), func() error { return ceph.KillOSD(id) }, func() error { return ceph.StartOSD(id) },
		})
	}
	c.run(cephKills)
}

//go:build ceph

package cephtest_test

import (
	"testing"

	"github.com/restripe/restripe/agent/store/ceph/cephtest"
)

func TestAClusterTakesWritesAndOutlivesItsDaemons(t *testing.T) {
	c := cephtest.Start(t, cephtest.Options{Hosts: 2, Bluestore: true})
	if err := c.CreateNodePools(4); err != nil {
		t.Fatal(err)
	}
	conn, err := c.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Shutdown()
	pool, err := conn.OpenIOContext("node2")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Destroy()
	if err := pool.WriteFull("k", []byte("value")); err != nil {
		t.Fatal(err)
	}
	for _, step := range []func() error{
		func() error { return c.KillOSD(1) }, func() error { return c.StartOSD(1) }, c.AwaitServing, c.StopMon, c.StartMon,
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	p := make([]byte, 5)
	if count, err := pool.Read("k", p, 0); err != nil || string(p[:count]) != "value" {
		t.Errorf("after the restarts: %q, %v", p[:count], err)
	}
	checks, err := c.Health()
	if err != nil {
		t.Fatal(err)
	}
	for name, severity := range checks {
		if severity == "HEALTH_ERR" {
			t.Errorf("%s: %s", severity, name)
		}
	}
	t.Logf("health: %v", checks)
}

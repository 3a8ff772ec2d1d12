//go:build ceph

package pools_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ceph/go-ceph/rados"

	"github.com/restripe/restripe/agent/store/ceph/cephtest"
	"github.com/restripe/restripe/agent/store/ceph/pools"
)

// connect connects as a user and closes with the test.
func connect(t *testing.T, access pools.Access) *pools.Connection {
	t.Helper()
	connection, err := pools.Connect(t.Context(), access)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connection.Close)
	return connection
}

func observe(t *testing.T, m pools.Monitor) *pools.State {
	t.Helper()
	state, err := pools.Observe(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// must runs a command as the administrator.
func must(t *testing.T, c *cephtest.Cluster, prefix string, arguments map[string]any) []byte {
	t.Helper()
	output, err := c.Command(prefix, arguments)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

func apply(t *testing.T, m pools.Monitor, plan *pools.Plan, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Apply(t.Context(), m, func(pools.Step) {}); err != nil {
		t.Fatal(err)
	}
}

// TestPoolsOfARealCluster makes, uses, spoils, checks and removes pools.
func TestPoolsOfARealCluster(t *testing.T) {
	cluster := cephtest.Start(t, cephtest.Options{Hosts: 3, OSDsPerHost: 2})
	must(t, cluster, "osd pool create", map[string]any{"pool": "mine", "pg_num": 1})
	admin := connect(t, pools.Access{Config: cluster.Config(), Keyring: cluster.Keyring()})
	options := pools.Options{User: "blocks"}
	plan, err := pools.Prepare(observe(t, admin), options)
	apply(t, admin, plan, err)
	state := observe(t, admin)
	if nodes := state.Nodes(); len(nodes) != 3 || len(nodes[0].OSDs) != 2 {
		t.Fatalf("the nodes are %+v", nodes)
	}
	if findings := pools.Check(state, admin.Client()); len(findings) > 0 {
		t.Errorf("fresh pools: %+v", findings)
	}
	if state.SizeOneAllowed {
		t.Error("pools of size 1 are still allowed")
	}
	options.User = ""
	if again, err := pools.Prepare(state, options); err != nil || len(again.Steps) > 0 {
		t.Errorf("a second plan: %+v, %v", again, err)
	}
	if err := cluster.AwaitServing(); err != nil {
		t.Fatal(err)
	}

	t.Run("the-user-may-use-them-and-nothing-else", func(t *testing.T) {
		keyring, err := cluster.CreateUser("blocks", "mon", pools.MonitorCapability, "osd", pools.OSDCapability)
		if err != nil {
			t.Fatal(err)
		}
		user := connect(t, pools.Access{Config: cluster.Config(), Keyring: keyring, User: "blocks"})
		pools.Check(observe(t, user), user.Client())
		write(t, user, "restripe.node1", nil)
		write(t, user, "mine", rados.ErrPermissionDenied)
		plan, err := pools.PrepareRemoval(state, pools.Removal{})
		if err != nil {
			t.Fatal(err)
		}
		var refused *pools.CommandError
		if err := plan.Apply(t.Context(), user, func(pools.Step) { t.Error("a step was carried out") }); !errors.As(err, &refused) {
			t.Errorf("removing as a user without the right: %v", err)
		}
	})

	t.Run("drift-is-found", func(t *testing.T) {
		must(t, cluster, "osd pool set", map[string]any{"pool": "restripe.node2", "var": "nosizechange", "val": "0"})
		must(t, cluster, "osd pool set", map[string]any{"pool": "restripe.node2", "var": "size", "val": "2"})
		must(t, cluster, "osd pool set", map[string]any{"pool": "restripe.node3", "var": "crush_rule", "val": "restripe.node1"})
		must(t, cluster, "osd set", map[string]any{"key": "noout"})
		subjects := map[string]bool{}
		for _, f := range pools.Check(observe(t, admin), admin.Client()) {
			subjects[f.Subject] = true
		}
		for _, want := range []string{"pool restripe.node2", "pool restripe.node3", "flag noout"} {
			if !subjects[want] {
				t.Errorf("nothing was found about %s in %v", want, subjects)
			}
		}
		must(t, cluster, "osd unset", map[string]any{"key": "noout"})
	})

	t.Run("only-empty-pools-of-ours-go", func(t *testing.T) {
		objects, err := admin.HasObjects(t.Context(), []string{"restripe.node1", "restripe.node2"})
		if err != nil || objects["restripe.node1"] == 0 || objects["restripe.node2"] != 0 {
			t.Fatalf("what holds objects: %v, %v", objects, err)
		}
		if _, err := pools.PrepareRemoval(observe(t, admin), pools.Removal{Objects: objects}); err == nil || !strings.Contains(err.Error(), "restripe.node1 of node node1 is not empty") {
			t.Errorf("removing all: %v", err)
		}
		plan, err := pools.PrepareRemoval(observe(t, admin), pools.Removal{Objects: objects, DestroyData: true})
		apply(t, admin, plan, err)
		state := observe(t, admin)
		if len(state.Nodes()) != 0 || state.Pool("mine") == nil {
			t.Errorf("left are %+v", state.Pools)
		}
	})
}

// write writes an object and expects an error.
func write(t *testing.T, c *pools.Connection, pool string, want error) {
	t.Helper()
	io, err := c.Rados().OpenIOContext(pool)
	if err != nil {
		t.Fatal(err)
	}
	defer io.Destroy()
	if err := io.WriteFull("object", []byte("x")); !errors.Is(err, want) {
		t.Errorf("writing into %s: %v, want %v", pool, err, want)
	}
}

func TestConnectingFailsInTimeAndSaysWhy(t *testing.T) {
	cluster := cephtest.Start(t, cephtest.Options{Hosts: 1})
	other, err := cluster.CreateUser("other", "mon", "allow r")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		intent string
		access pools.Access
		want   string
	}{
		{"no such file", pools.Access{Config: "no-such.conf"}, "--ceph-conf"},
		{"no such keyring", pools.Access{Config: cluster.Config(), Keyring: "none.keyring"}, "--keyring"},
		{"somebody else's keyring", pools.Access{Config: cluster.Config(), Keyring: other, User: "nobody"}, "--keyring"},
	} {
		if connection, err := pools.Connect(t.Context(), c.access); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a word about %s", c.intent, err, c.want)
			if connection != nil {
				connection.Close()
			}
		}
	}
	if err := cluster.StopMon(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := pools.Connect(t.Context(), pools.Access{Config: cluster.Config(), Keyring: cluster.Keyring(), Timeout: 2 * time.Second}); err == nil || !strings.Contains(err.Error(), "no monitor answered") {
		t.Errorf("without monitors: %v", err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("without monitors it took %v", took)
	}
}

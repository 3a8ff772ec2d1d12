//go:build ceph

package ceph_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/store/ceph/cephtest"
)

// program is the restripe program, built with Ceph.
var program string

func TestMain(m *testing.M) {
	code, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M) (code int, err error) {
	directory, err := os.MkdirTemp("", "restripe-ceph-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	program = filepath.Join(directory, "restripe")
	build := exec.Command("go", "build", "-tags", "ceph", "-o", program, "github.com/restripe/restripe")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return 1, fmt.Errorf("building the program: %w", err)
	}
	return m.Run(), nil
}

// The class wide needs 14 nodes, the class narrow 8, so that it can do without some of 14.
const classes = `classes:
- name: wide
  ladder: rs(4,2),rs(12,2),rep(3)
  prefixes: ["wide/"]
  packBelow: 4KiB
  groupBytes: 96KiB
- name: narrow
  ladder: rep(3),rs(3,2),rs(6,2)
  prefixes: [""]
  packBelow: 4KiB
  groupBytes: 96KiB
`

const nodes = 14

// clientTimeout is how long agents wait for an OSD, as the configuration of Ceph tells them.
const clientTimeout = 3 * time.Second

// world is a cluster of Restripe over the pools of a cluster of Ceph.
type world struct {
	t       *testing.T
	ceph    *cephtest.Cluster
	cluster *launch.Cluster
	client  *client.Client
	random  *rand.Rand
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ceph := cephtest.Start(t, cephtest.Options{Hosts: nodes, Bluestore: true})
	if err := ceph.CreateNodePools(2); err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	access := unprivileged(t, ceph, directory)
	for _, host := range ceph.Hosts() {
		access.Pools = append(access.Pools, launch.CephPool{Name: host})
	}
	given := filepath.Join(directory, "classes.yaml")
	if err := os.WriteFile(given, []byte(classes), 0o644); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(directory, "cluster")
	cluster, err := launch.Start(t.Context(), launch.Options{
		Directory: state, Binary: program, Store: launch.StoreCeph, Ceph: access, ClassFile: given, GatewayArguments: []string{"--grace", "0s"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Errorf("stopping the cluster: %v", err)
		}
		if t.Failed() {
			tails(t, filepath.Join(state, "logs"))
		}
	})
	connection, err := client.New(cluster.Gateway())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connection.Close)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return &world{t: t, ceph: ceph, cluster: cluster, client: connection, random: rand.New(rand.NewPCG(seed, 0))}
}

// unprivileged makes a user with the least capabilities, and a configuration with a time-out.
func unprivileged(t *testing.T, ceph *cephtest.Cluster, directory string) *launch.Ceph {
	t.Helper()
	keyring, err := ceph.CreateUser("restripe", "mon", "allow r", "osd", "allow rw tag restripe *=*")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(ceph.Config())
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(directory, "ceph.conf")
	text = fmt.Appendf(text, "[client]\nrados osd op timeout = %d\n", int(clientTimeout.Seconds()))
	if err := os.WriteFile(config, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return &launch.Ceph{Config: config, Keyring: keyring}
}

// tails prints the ends of the processes' logs.
func tails(t *testing.T, directory string) {
	names, err := filepath.Glob(filepath.Join(directory, "*.log"))
	if err != nil {
		t.Logf("no logs: %v", err)
		return
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil && len(text) > 0 {
			t.Logf("---- %s\n%s", filepath.Base(name), text[max(0, len(text)-2000):])
		}
	}
}

// content draws the bytes of an object.
func (w *world) content(size int) []byte {
	value := make([]byte, size)
	for i := range value {
		value[i] = byte(w.random.Uint32())
	}
	return value
}

func (w *world) put(ctx context.Context, key string, value []byte) error {
	_, err := w.client.Put(ctx, key, bytes.NewReader(value), client.PutOptions{Size: int64(len(value)), SizeKnown: true})
	return err
}

// readBack compares all objects with what was put.
func (w *world) readBack(objects map[string][]byte) {
	w.t.Helper()
	for key, want := range objects {
		content, err := w.client.Get(w.t.Context(), key, client.Range{})
		if err != nil {
			w.t.Errorf("reading %s: %v", key, err)
			continue
		}
		got, err := io.ReadAll(content)
		if err := errors.Join(err, content.Close()); err != nil || !bytes.Equal(got, want) {
			w.t.Errorf("%s reads %d bytes unlike the %d put: %v", key, len(got), len(want), err)
		}
	}
}

// await looks until is.
func (w *world) await(what string, is func() bool) {
	w.t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(3 * time.Minute)
	for !is() {
		select {
		case <-ticker.C:
		case <-deadline:
			w.t.Fatalf("in vain awaited: %s; the gateway says %s", what, w.status())
		}
	}
}

// status is the state of the nodes, for messages.
func (w *world) status() string {
	status, err := w.client.Status(w.t.Context())
	if err != nil {
		return err.Error()
	}
	said := fmt.Sprintf("%d groups, %d not whole:", status.Groups, status.NotWhole)
	for _, node := range status.Nodes {
		said += fmt.Sprintf(" %s %s", node.ID, node.State)
	}
	return said
}

// allUp reports whether the gateway finds every node up.
func (w *world) allUp() bool {
	status, err := w.client.Status(w.t.Context())
	return err == nil && len(status.Nodes) == nodes &&
		!slices.ContainsFunc(status.Nodes, func(node api.NodeStatus) bool {
			return node.State != "up" || node.StoreKind != "ceph" || !node.Durable
		})
}

// whole repairs what needs it and reports whether every group is whole then.
func (w *world) whole() bool {
	if _, err := w.client.Repair(w.t.Context()); err != nil {
		return false
	}
	status, err := w.client.Status(w.t.Context())
	return err == nil && status.NotWhole == 0
}

// healthy fails the test if Ceph complains about anything but pools without redundancy of its own.
func (w *world) healthy() {
	w.t.Helper()
	checks, err := w.ceph.Health()
	if err != nil {
		w.t.Fatal(err)
	}
	for name, severity := range checks {
		if name != "POOL_NO_REDUNDANCY" {
			w.t.Errorf("Ceph complains: %s %s", severity, name)
		}
	}
}

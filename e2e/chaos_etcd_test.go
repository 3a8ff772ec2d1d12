//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// etcdVariable names the server of etcd for the test inside its namespaces.
const etcdVariable = "RESTRIPE_TEST_ETCD"

const memberPort = ":7483" // where the members of a catalog reach one another

// startEtcd starts a member of etcd in each place of the catalog, and returns its address.
func (c *networkChaos) startEtcd(base string) (address string, err error) {
	var members, clients []string
	for _, p := range c.catalogs {
		members, clients = append(members, p.name+"=http://"+p.address+memberPort), append(clients, p.address+storePort)
	}
	var all errgroup.Group
	for _, p := range c.catalogs {
		own, fellows := "http://"+p.address+storePort, "http://"+p.address+memberPort
		all.Go(func() error {
			return p.run(c.t, base, "catalog", storePort, "", os.Getenv(etcdVariable), "--name", p.name,
				"--data-dir", filepath.Join(p.disk, "etcd"),
				"--listen-client-urls", own, "--advertise-client-urls", own, "--listen-peer-urls", fellows,
				"--initial-advertise-peer-urls", fellows, "--initial-cluster", strings.Join(members, ","),
				"--max-txn-ops", "8192", "--max-request-bytes", "18874368", "--auto-compaction-mode", "periodic",
				"--auto-compaction-retention", "1h", "--log-level", "warn")
		})
	}
	return "etcd://" + strings.Join(clients, ","), all.Wait()
}

// otherCatalogs are the places of the catalog but p.
func otherCatalogs(c *networkChaos, p *place) []*place {
	return slices.DeleteFunc(slices.Clone(c.catalogs), func(other *place) bool { return other == p })
}

// leader returns the member of the catalog that leads.
func (c *networkChaos) leader() (found *place) {
	if c.primary != nil {
		return c.primary
	}
	c.await("the catalog has a leader", func() bool {
		for _, p := range c.catalogs {
			if leads, err := isLeader(c.t.Context(), p); err == nil && leads {
				found = p
			}
		}
		return found != nil
	})
	return found
}

// isLeader asks a member of etcd whether it leads.
func isLeader(ctx context.Context, p *place) (leads bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	address := "http://" + p.address + storePort + "/v3/maintenance/status"
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader("{}"))
	if err != nil {
		return false, err
	}
	reply, err := http.DefaultClient.Do(call)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, reply.Body.Close()) }()
	var status struct {
		Leader string
		Header map[string]string
	}
	if err := json.NewDecoder(reply.Body).Decode(&status); err != nil {
		return false, fmt.Errorf("asking %s whether it leads: %w", p.name, err)
	}
	return status.Leader != "" && status.Leader == status.Header["member_id"], nil
}

// fillCatalog fills the disk of a member, which ends by it.
func fillCatalog(_ context.Context, _ *networkChaos, p *place) error {
	p.processes["catalog"].mayEnd()
	return p.fill()
}

func reviveCatalog(ctx context.Context, _ *networkChaos, p *place) error {
	if err := errors.Join(p.drain(), p.processes["catalog"].kill()); err != nil {
		return err
	}
	return p.processes["catalog"].start(ctx)
}

// mayEnd has the end of the process be no failure until it is started again.
func (c *child) mayEnd() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.expected = true
}

//go:build ceph

package cephtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ceph/go-ceph/rados"
)

// Command runs a command of the monitors as client.admin and returns its answer in JSON. A command the managers answer,
// such as pg dump, goes to them by itself.
func (c *Cluster) Command(prefix string, arguments map[string]any) ([]byte, error) {
	c.mutex.Lock()
	admin := c.admin
	c.mutex.Unlock()
	if admin == nil {
		return nil, fmt.Errorf("%s: the cluster was stopped", prefix)
	}
	words := map[string]any{"prefix": prefix, "format": "json"}
	for name, value := range arguments {
		words[name] = value
	}
	text, err := json.Marshal(words)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", prefix, err)
	}
	answer, status, err := admin.MonCommand(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", text, err, status)
	}
	return answer, nil
}

// Ask runs a command and decodes its answer into answer.
func (c *Cluster) Ask(prefix string, arguments map[string]any, answer any) error {
	text, err := c.Command(prefix, arguments)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s answers %q: %w", prefix, text, err)
	}
	return nil
}

// CreateUser makes the user client.NAME with capabilities, in pairs such as "mon", "allow r", and returns the path of
// its keyring.
func (c *Cluster) CreateUser(name string, capabilities ...string) (string, error) {
	var answer []struct {
		Key string `json:"key"`
	}
	if err := c.Ask("auth get-or-create", map[string]any{"entity": "client." + name, "caps": capabilities}, &answer); err != nil {
		return "", err
	}
	if len(answer) != 1 {
		return "", fmt.Errorf("auth get-or-create answers with %d keys", len(answer))
	}
	keyring := c.path("client." + name + ".keyring")
	return keyring, os.WriteFile(keyring, fmt.Appendf(nil, "[client.%s]\n\tkey = %s\n", name, answer[0].Key), 0o600)
}

// CreateNodePool makes what a node is made of: a rule that takes the bucket, and a pool of size 1 with so many placement
// groups and the application restripe. Operations wait until its placement groups are made, for which AwaitServing waits too.
func (c *Cluster) CreateNodePool(pool, bucket string, placementGroups int) error {
	for _, command := range []struct {
		prefix    string
		arguments map[string]any
	}{
		{"osd crush rule create-simple", map[string]any{"name": pool, "root": bucket, "type": "osd", "mode": "firstn"}},
		{"osd pool create", map[string]any{"pool": pool, "pg_num": placementGroups, "pgp_num": placementGroups, "pool_type": "replicated", "rule": pool, "size": 1}},
		{"osd pool set", map[string]any{"pool": pool, "var": "size", "val": "1", "yes_i_really_mean_it": true}},
		{"osd pool application enable", map[string]any{"pool": pool, "app": "restripe", "yes_i_really_mean_it": true}},
	} {
		if _, err := c.Command(command.prefix, command.arguments); err != nil {
			return err
		}
	}
	return nil
}

// CreateNodePools makes a pool of the same name for every host.
func (c *Cluster) CreateNodePools(placementGroups int) error {
	for _, host := range c.Hosts() {
		if err := c.CreateNodePool(host, host, placementGroups); err != nil {
			return err
		}
	}
	return nil
}

// LimitPool gives a pool a quota, 0 for none, and returns once the pool is marked full, or not full any more, as wanted.
func (c *Cluster) LimitPool(pool string, bytes int64, full bool) error {
	if _, err := c.Command("osd pool set-quota", map[string]any{"pool": pool, "field": "max_bytes", "val": strconv.FormatInt(bytes, 10)}); err != nil {
		return err
	}
	return c.await(context.Background(), "the pool "+pool+" is full or not, as wanted", c.alive, func() (bool, error) {
		var dump struct {
			Pools []struct {
				Name  string `json:"pool_name"`
				Flags string `json:"flags_names"`
			} `json:"pools"`
		}
		if err := c.Ask("osd dump", nil, &dump); err != nil {
			return false, err
		}
		for _, p := range dump.Pools {
			if p.Name == pool {
				return strings.Contains(p.Flags, "full_quota") == full, nil
			}
		}
		return false, fmt.Errorf("there is no pool %s", pool)
	})
}

// KillOSD ends an OSD with SIGKILL and waits until it is gone; the monitors may not know yet.
func (c *Cluster) KillOSD(id int) error { return c.end("osd." + strconv.Itoa(id)) }

// AwaitDown returns once the monitors know that an OSD is down, which takes another OSD that misses it.
func (c *Cluster) AwaitDown(id int) error {
	return c.await(context.Background(), fmt.Sprintf("osd.%d is down", id), nil, func() (bool, error) {
		up, err := c.up()
		return up[id] == 0, err
	})
}

// StartOSD starts an OSD again over what it kept and returns once the monitors know.
func (c *Cluster) StartOSD(id int) error {
	var before struct {
		OSDs []osd `json:"osds"`
	}
	if err := c.Ask("osd dump", nil, &before); err != nil {
		return err
	}
	since := int64(0)
	for _, o := range before.OSDs {
		if o.ID == id {
			since = o.UpFrom
		}
	}
	if err := c.runOSD(id); err != nil {
		return err
	}
	return c.await(context.Background(), fmt.Sprintf("osd.%d is up", id), c.alive, func() (bool, error) {
		up, err := c.up()
		return up[id] > since, err
	})
}

func (c *Cluster) runOSD(id int) error {
	return c.run("osd."+strconv.Itoa(id), "ceph-osd", "-i", strconv.Itoa(id))
}

// PurgeOSD removes a dead OSD from the cluster for good: what only it held is lost.
func (c *Cluster) PurgeOSD(id int) error {
	_, err := c.Command("osd purge-actual", map[string]any{"id": id, "yes_i_really_mean_it": true})
	return err
}

// StopMon ends the only monitor with SIGKILL.
func (c *Cluster) StopMon() error { return c.end("mon.a") }

// StartMon starts the monitor again and returns once it answers.
func (c *Cluster) StartMon() error {
	if err := c.run("mon.a", "ceph-mon", "-i", "a"); err != nil {
		return err
	}
	return c.await(context.Background(), "the monitor answers", c.alive, func() (bool, error) {
		_, err := c.Command("osd stat", nil)
		return err == nil, nil
	})
}

// end ends a daemon that runs.
func (c *Cluster) end(name string) error {
	c.mutex.Lock()
	p := c.processes[name]
	delete(c.processes, name)
	c.mutex.Unlock()
	if p == nil {
		return fmt.Errorf("%s does not run", name)
	}
	return p.kill()
}

// AwaitServing returns once every placement group of every pool answers. The managers would say so seconds late.
func (c *Cluster) AwaitServing() error {
	c.mutex.Lock()
	admin := c.admin
	c.mutex.Unlock()
	if err := admin.WaitForLatestOSDMap(); err != nil {
		return fmt.Errorf("waiting for the latest map of the OSDs: %w", err)
	}
	var dump struct {
		Pools []struct {
			Name   string `json:"pool_name"`
			Groups int    `json:"pg_num"`
		} `json:"pools"`
	}
	if err := c.Ask("osd dump", nil, &dump); err != nil {
		return err
	}
	for _, p := range dump.Pools {
		pool, err := admin.OpenIOContext(p.Name)
		if err != nil {
			return fmt.Errorf("opening the pool %s: %w", p.Name, err)
		}
		for i := 0; i < askedPerGroup*p.Groups && err == nil; i++ {
			if _, err = pool.Stat("absent " + strconv.Itoa(i)); errors.Is(err, rados.ErrNotFound) {
				err = nil
			}
		}
		pool.Destroy()
		if err != nil {
			return errors.Join(fmt.Errorf("waiting for the pool %s: %w", p.Name, err), c.state())
		}
	}
	return nil
}

// askedPerGroup is for how many names per placement group an answer is awaited: names fall where their hash says, and few
// groups go unasked.
const askedPerGroup = 8

// Health returns the names of the health checks that complain, with their severity.
func (c *Cluster) Health() (map[string]string, error) {
	var health struct {
		Checks map[string]struct {
			Severity string `json:"severity"`
		} `json:"checks"`
	}
	if err := c.Ask("health", nil, &health); err != nil {
		return nil, err
	}
	checks := map[string]string{}
	for name, check := range health.Checks {
		checks[name] = check.Severity
	}
	return checks, nil
}

// osd is what the monitors say of an OSD.
type osd struct {
	ID     int   `json:"osd"`
	Up     int   `json:"up"`
	UpFrom int64 `json:"up_from"` // the epoch it was started in last
}

// up tells of each OSD in which epoch it was started, 0 for those that the monitors do not count as up.
func (c *Cluster) up() (map[int]int64, error) {
	var dump struct {
		OSDs []osd `json:"osds"`
	}
	if err := c.Ask("osd dump", nil, &dump); err != nil {
		return nil, err
	}
	up := map[int]int64{}
	for _, o := range dump.OSDs {
		if o.Up == 1 {
			up[o.ID] = o.UpFrom
		}
	}
	return up, nil
}

func (c *Cluster) allUp() (bool, error) {
	up, err := c.up()
	return len(up) == len(c.OSDs()), err
}

// lookEvery is the distance between two looks at what is waited for.
const lookEvery = 20 * time.Millisecond

// await looks until done. check, where there is one, ends the wait with an error.
func (c *Cluster) await(ctx context.Context, what string, check func() error, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if check != nil {
			if err := check(); err != nil {
				return fmt.Errorf("waiting until %s: %w", what, err)
			}
		}
		is, err := done()
		if is || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting until %s: %w", what, ctx.Err()), c.state())
		}
	}
}

// state is what the cluster says of itself, as an error to be read.
func (c *Cluster) state() error {
	text, err := c.Command("status", nil)
	if err != nil {
		return err
	}
	return fmt.Errorf("the cluster says %s", text)
}

// Connect opens a connection as client.admin with time-outs, which the caller shuts down.
func (c *Cluster) Connect() (*rados.Conn, error) {
	conn, err := rados.NewConnWithUser("admin")
	if err != nil {
		return nil, err
	}
	err = conn.ReadConfigFile(c.Config())
	for _, option := range [][2]string{{"keyring", c.Keyring()}, {"client_mount_timeout", "30"}, {"rados_mon_op_timeout", "30"}, {"rados_osd_op_timeout", "30"}} {
		err = errors.Join(err, conn.SetConfigOption(option[0], option[1]))
	}
	if err == nil {
		err = conn.Connect()
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to the monitor: %w", err)
	}
	return conn, nil
}

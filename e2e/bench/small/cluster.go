package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/e2e/bench/gauge"
)

// agents is how many a cluster has, each before a memcached of its own.
const agents = 9

// cluster is one that runs, and a client of its gateway.
type cluster struct {
	*launch.Cluster
	gateway *client.Client
	state   string
}

// start runs a cluster as `restripe up` does, with these classes.
func (b *bench) start(ctx context.Context, name string, classes []api.ClassSpec) (_ *cluster, err error) {
	state := filepath.Join(b.directory, name)
	if err := os.Mkdir(state, 0o700); err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(map[string][]api.ClassSpec{"classes": classes})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.directory, name+".yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	b.say("%s: starting %d memcached servers and agents and a gateway", name, agents)
	running, err := launch.Start(ctx, launch.Options{
		Directory: state, Binary: b.binary, Store: launch.StoreMemcached, Agents: agents, ClassFile: file,
		GatewayArguments: []string{"--cache", "0"}, // so that what gets move is seen
	})
	if err != nil {
		return nil, fmt.Errorf("starting the cluster: %w", err)
	}
	c := &cluster{Cluster: running, state: state}
	if c.gateway, err = client.New(running.Gateway()); err != nil {
		return nil, errors.Join(err, running.Stop())
	}
	if err := c.untilUp(ctx); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// startPatience is how long all agents may take to be there for the gateway, which on a busy machine is long.
const startPatience = 5 * time.Minute

// untilUp waits until the gateway has all agents.
func (c *cluster) untilUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	return patiently(ctx, func() (bool, error) {
		metrics, err := c.metrics(ctx)
		return metrics["restripe_node_up"] == agents, err
	})
}

func (c *cluster) stop() error {
	c.gateway.Close()
	return errors.Join(c.Stop(), os.RemoveAll(c.state))
}

// put stores one object.
func (c *cluster) put(ctx context.Context, key string, data []byte) error {
	_, err := c.gateway.Put(ctx, key, bytes.NewReader(data), client.PutOptions{Size: int64(len(data)), SizeKnown: true})
	if err != nil {
		return fmt.Errorf("putting %s: %w", key, err)
	}
	return nil
}

// get returns all of an object.
func (c *cluster) get(ctx context.Context, key string) (_ []byte, err error) {
	content, err := c.gateway.Get(ctx, key, client.Range{})
	if err != nil {
		return nil, fmt.Errorf("getting %s: %w", key, err)
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	return io.ReadAll(content)
}

// atOnce has many clients do everything from 0 to count, each the next one that is left.
func atOnce(ctx context.Context, count int, do func(ctx context.Context, i int) error) error {
	return byClients(ctx, clientsAtOnce, count, do)
}

// byClients has so many clients do everything from 0 to count, each the next one that is left.
func byClients(ctx context.Context, many, count int, do func(ctx context.Context, i int) error) error {
	clients, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range many {
		clients.Go(func() error {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				if err := do(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return clients.Wait()
}

// storesPatience bounds one question to a store.
const storesPatience = 5 * time.Second

// storeBytes asks all memcached servers for the bytes of their items.
func (c *cluster) storeBytes(ctx context.Context) (total int64, err error) {
	for _, member := range c.Members() {
		_, address, _ := strings.Cut(member.Store, "://")
		bytes, err := itemBytes(ctx, address)
		if err != nil {
			return 0, fmt.Errorf("asking the store of %s: %w", member.ID, err)
		}
		total += bytes
	}
	return total, nil
}

// itemBytes asks a memcached for the bytes of its items.
func itemBytes(ctx context.Context, address string) (bytes int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, storesPatience)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, connection.Close()) }()
	deadline, _ := ctx.Deadline()
	if err := connection.SetDeadline(deadline); err != nil {
		return 0, err
	}
	if _, err := io.WriteString(connection, "stats\r\n"); err != nil {
		return 0, err
	}
	return parseItemBytes(connection)
}

// parseItemBytes reads the bytes of all items in the answer to stats.
func parseItemBytes(answer io.Reader) (int64, error) {
	lines := bufio.NewScanner(answer)
	for lines.Scan() && lines.Text() != "END" {
		if value, found := strings.CutPrefix(lines.Text(), "STAT bytes "); found {
			return strconv.ParseInt(value, 10, 64)
		}
	}
	return 0, errors.Join(errors.New("the statistics do not have the bytes of all items"), lines.Err())
}

// patience is between two questions whether something has come about.
const patience = 20 * time.Millisecond

// patiently asks until something has come about.
func patiently(ctx context.Context, holds func() (bool, error)) error {
	ticker := time.NewTicker(patience)
	defer ticker.Stop()
	for {
		if done, err := holds(); done || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// metrics are the gateway's.
func (c *cluster) metrics(ctx context.Context) (map[string]float64, error) {
	return gauge.Metrics(ctx, c.GatewayURL())
}

// peak is the most resident memory that the gateway has had, in bytes.
func (c *cluster) peak() (int64, error) { return gauge.Peak(c.Pids()[launch.GatewayName]) }

// resident is what the gateway has now.
func (c *cluster) resident() (int64, error) { return gauge.Resident(c.Pids()[launch.GatewayName]) }

// bytesOf returns the bytes of one version of an object, the same in every run.
func bytesOf(i, version, size int) []byte {
	random := rand.New(rand.NewPCG(uint64(i), uint64(version)))
	data := make([]byte, 0, size+8)
	for len(data) < size {
		word := random.Uint64()
		for shift := 0; shift < 64; shift += 8 {
			data = append(data, byte(word>>shift))
		}
	}
	return data[:size]
}

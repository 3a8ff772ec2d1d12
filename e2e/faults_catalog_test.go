package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	_ "modernc.org/sqlite"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/sim/register"
	"github.com/restripe/restripe/agent/store/storetest/server"
)

// TestTwoGatewaysOnOneSQLiteFile starts a second gateway on the catalog of a first one: it is told whose it is and what
// to use instead, and the first one goes on.
func TestTwoGatewaysOnOneSQLiteFile(t *testing.T) {
	t.Parallel()
	agents := agentsOver(t, directories(t, 3)...)
	catalog := "sqlite:" + filepath.Join(t.TempDir(), "catalog.db")
	arguments := []string{"gateway", "--catalog", catalog, "--nodes", nodeFile(t, agents...), "--classes", write(t, "classes.yaml", smallClasses), "--listen", "127.0.0.1:0"}
	first := serve(t, append(arguments, "--id", "gw1")...)
	c := clientOf(t, first.address)
	put(t, c, "k", noise(1, 5_000), client.PutOptions{})
	second := restripe(t, "", append(arguments, "--id", "gw2")...)
	refused(t, second, "catalog is in use by process "+fmt.Sprint(first.command.Process.Pid), "stop it, or use a catalog engine for several gateways (redis)")
	put(t, c, "l", noise(2, 5_000), client.PutOptions{})
	first.stop(t)
	other := serve(t, append(arguments, "--id", "gw2")...)
	after := clientOf(t, other.address)
	holds(t, after, "k", noise(1, 5_000))
	holds(t, after, "l", noise(2, 5_000))
}

// TestCatalogOfANewerVersion gives gateways catalogs that a later release has written to: they refuse, and change
// nothing.
func TestCatalogOfANewerVersion(t *testing.T) {
	t.Parallel()
	setting := func(t *testing.T) []string {
		return []string{"gateway", "--nodes", nodeFile(t, agentsOver(t, directories(t, 3)...)...), "--classes", write(t, "classes.yaml", smallClasses), "--listen", "127.0.0.1:0"}
	}
	for _, test := range []struct{ intent, statement, undo string }{
		{"newer records", "UPDATE records SET value = CAST('99' AS BLOB) WHERE key = CAST('meta/schema' AS BLOB)", fmt.Sprintf("UPDATE records SET value = CAST('%d' AS BLOB) WHERE key = CAST('meta/schema' AS BLOB)", catalog.SchemaVersion)},
		{"a newer file format", "PRAGMA user_version = 99", "PRAGMA user_version = 1"},
	} {
		t.Run("SQLite with "+test.intent, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "catalog.db")
			gateway := append(setting(t), "--catalog", "sqlite:"+path)
			g := serve(t, gateway...)
			put(t, clientOf(t, g.address), "k", noise(1, 5_000), client.PutOptions{})
			g.stop(t)
			alter := func(statement string) {
				t.Helper()
				database, err := sql.Open("sqlite", path)
				if err == nil {
					_, err = database.Exec(statement)
					err = errors.Join(err, database.Close())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			alter(test.statement)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			refused(t, restripe(t, "", gateway...), "opening the catalog", "catalog is newer than this program", "version 99", "use a newer release of restripe")
			after, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("the gateway that refused the catalog has changed it (%v)", err)
			}
			alter(test.undo)
			again := serve(t, gateway...)
			holds(t, clientOf(t, again.address), "k", noise(1, 5_000))
		})
	}
	t.Run("Redis with newer records", func(t *testing.T) {
		records := server.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
		gateway := append(setting(t), "--catalog", "redis://"+records.Addr)
		g := serve(t, gateway...)
		put(t, clientOf(t, g.address), "k", noise(1, 5_000), client.PutOptions{})
		g.stop(t)
		tell(t, records.Addr, "HSET {restripe:restripe}records meta/schema 99", ":0")
		refused(t, restripe(t, "", gateway...), "opening the catalog", "catalog is newer than this program", "version 99", "use a newer release of restripe")
		tell(t, records.Addr, fmt.Sprintf("HSET {restripe:restripe}records meta/schema %d", catalog.SchemaVersion), ":0")
		again := serve(t, gateway...)
		holds(t, clientOf(t, again.address), "k", noise(1, 5_000))
	})
}

// TestStoresOfAnotherCluster starts a gateway with a catalog of its own over agents whose stores belong to another one, as
// happens when a catalog file is misspelt. It must not take them for its own: all their blocks would look like orphans.
func TestStoresOfAnotherCluster(t *testing.T) {
	t.Parallel()
	agents := agentsOver(t, directories(t, 4)...)
	first := gatewayOver(t, smallClasses, agents...)
	c := clientOf(t, first.address)
	put(t, c, "k", noise(1, 50_000), client.PutOptions{})
	second := gatewayOver(t, smallClasses, agents...)
	other := clientOf(t, second.address)
	refused(t, restripe(t, second.address, "put", write(t, "file", "text"), "k"), "0 of 4 nodes take blocks", "belongs to cluster", "run the gateway with the catalog of that cluster")
	doctor := restripe(t, second.address, "doctor")
	for _, words := range []string{"node n4", "belongs to cluster", "run the gateway with the catalog of that cluster"} {
		if !strings.Contains(doctor.out, words) {
			t.Errorf("the doctor does not say %q:\n%s", words, doctor.out)
		}
	}
	if result, err := other.Sweep(t.Context(), api.SweepRequest{}); err != nil || result.OrphansDeleted+result.BlocksDeleted+result.Quarantined > 0 {
		t.Errorf("a sweep over stores of another cluster: %+v, %v", result, err)
	}
	holds(t, c, "k", noise(1, 50_000))
	if states, err := c.StatDeep(t.Context(), "k"); err != nil || !allOk(states) {
		t.Errorf("after the other gateway came and swept: %+v, %v", states, err)
	}
}

func allOk(stat api.Stat) bool {
	for _, group := range stat.Groups {
		for _, slot := range group.Slots {
			if slot.State != "ok" {
				return false
			}
		}
	}
	return true
}

// tell sends one inline command to a Redis server and wants an answer.
func tell(t *testing.T, address, command, want string) {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len(want))
	_, err = io.WriteString(connection, command+"\r\n")
	if err == nil {
		_, err = io.ReadFull(connection, answer)
	}
	if err = errors.Join(err, connection.Close()); err != nil || string(answer) != want {
		t.Fatalf("%s is answered %q, %v; want %q", command, answer, err, want)
	}
}

// TestTwoGatewaysOnOneRedisCatalog has clients write, update, read and delete the same objects through two gateways while
// transitions started at either run. All must fit one order per key, and at rest both gateways tell the same.
func TestTwoGatewaysOnOneRedisCatalog(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	records := server.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	agents := agentsOver(t, directories(t, 6)...)
	arguments := []string{"gateway", "--catalog", "redis://" + records.Addr, "--nodes", nodeFile(t, agents...),
		"--classes", write(t, "classes.yaml", faultClasses), "--listen", "127.0.0.1:0", "--grace", "0s"}
	var clients []*client.Client
	var addresses []string
	for _, id := range []string{"gw1", "gw2"} {
		g := serve(t, append(arguments, "--id", id)...)
		clients, addresses = append(clients, clientOf(t, g.address)), append(addresses, g.address)
	}
	c := newWorkload(t, seed, clients...)
	const perWorker = 60
	var number atomic.Uint32
	var workers, movers sync.WaitGroup
	for worker := range 6 {
		random := rand.New(rand.NewPCG(seed, uint64(worker+1)))
		workers.Go(func() {
			for range perWorker {
				// Every worker uses both gateways, so that each sees at once what the other has acknowledged.
				key := fmt.Sprintf("key-%d", random.IntN(6))
				c.actThrough(clients[random.IntN(2)], random, key, &number)
			}
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	movers.Go(func() {
		ladder := []string{"rs(2,1)", "rs(4,1)", "rs(2,1)", "rep(2)"}
		for step := 0; ctx.Err() == nil; step++ {
			at := clients[step%2]
			moving, err := at.StartTransition(ctx, api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: ladder[step%len(ladder)]})
			for err == nil && !moving.State.Final() && ctx.Err() == nil {
				c.pause(20 * time.Millisecond)
				moving, err = at.Transition(ctx, moving.ID)
			}
			if moving.State == api.TransitionFailed {
				t.Errorf("transition %s to %s failed: %s", moving.ID, moving.To, moving.Error)
			}
			if moving.State == api.TransitionDone {
				c.count("transition")
			}
		}
	})
	workers.Wait()
	until(t, "transitions ran through both gateways", func() bool {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		return c.counts["transition"] >= 4 || t.Failed()
	})
	stop()
	movers.Wait()
	for i, at := range clients {
		until(t, "transitions have ended", func() bool {
			status, err := at.Status(t.Context())
			return err == nil && len(status.Transitions) == 0
		})
		for n := range 6 {
			key := fmt.Sprintf("key-%d", n)
			now := time.Since(c.began).Nanoseconds()
			value, err := c.getThrough(t.Context(), at, key)
			if err != nil {
				t.Errorf("reading %s through gateway %d at rest: %v", key, i+1, err)
				continue
			}
			c.record(register.Call{Key: key, Action: register.Get}, register.Answer{Value: value}, now, time.Since(c.began).Nanoseconds())
		}
	}
	switch porcupine.CheckOperationsTimeout(register.Model.ToModel(), c.history, 30*time.Second) {
	case porcupine.Illegal:
		t.Errorf("the history of %d operations over two gateways is not linearizable per key%s", len(c.history), illegal(c.history))
	case porcupine.Unknown:
		t.Errorf("the history of %d operations could not be checked in time", len(c.history))
	}
	t.Logf("operations %v in %v", c.counts, time.Since(c.began).Round(time.Millisecond))
	for _, what := range []string{"put", "get", "update", "delete", "transition"} {
		if c.counts[what] == 0 {
			t.Errorf("no %s succeeded: the test shows nothing", what)
		}
	}
	if one, other := must(t, addresses[0], "ls", "-o", "json"), must(t, addresses[1], "ls", "-o", "json"); one != other {
		t.Errorf("gateway 1 lists\n%s\nand gateway 2\n%s", one, other)
	}
	atRest(t, clients[0])
	atRest(t, clients[1])
	if doctor := restripe(t, addresses[1], "doctor"); strings.Contains(doctor.out, "contradict") {
		t.Errorf("the doctor finds:\n%s", doctor.out)
	}
}

// actThrough does one random operation on a key through the given gateway.
func (c *workload) actThrough(at *client.Client, random *rand.Rand, key string, number *atomic.Uint32) {
	ctx := c.t.Context()
	size := 600 // packed with others
	if key[len(key)-1]%2 == 0 {
		size = 120_000 // two groups of its own
	}
	call := time.Since(c.began).Nanoseconds()
	switch draw := random.IntN(100); {
	case draw < 40:
		value, err := c.getThrough(ctx, at, key)
		if err != nil {
			c.t.Errorf("reading %s with nothing broken: %v", key, err)
			return
		}
		c.finish(register.Call{Key: key, Action: register.Get}, register.Answer{Value: value}, call, nil, "get")
	case draw < 65:
		numbers := make([]uint32, segments)
		for i := range numbers {
			numbers[i] = number.Add(1)
		}
		_, err := at.Put(ctx, key, bytes.NewReader(register.Content(key, size, numbers)), client.PutOptions{Size: int64(size), SizeKnown: random.IntN(2) == 0})
		c.finish(register.Call{Key: key, Action: register.Put, Value: register.Of(numbers)}, register.Answer{}, call, err, "put")
	case draw < 90:
		segment, fresh := random.IntN(segments), number.Add(1)
		data := make([]byte, size/segments)
		register.Fill(key, segment, fresh, data)
		_, err := at.Update(ctx, key, int64(segment*len(data)), bytes.NewReader(data), int64(len(data)))
		c.finish(register.Call{Key: key, Action: register.Update, First: segment, End: segment + 1, Number: fresh}, register.Answer{}, call, err, "update")
	default:
		c.finish(register.Call{Key: key, Action: register.Delete}, register.Answer{}, call, at.Delete(ctx, key), "delete")
	}
}

// getThrough reads an object whole through a gateway. A read that an overwrite breaks off, as the API promises, is made
// again.
func (c *workload) getThrough(ctx context.Context, at *client.Client, key string) (register.Value, error) {
	var data []byte
	err := errors.New("not tried")
	for try := 0; err != nil && try < 20; try++ {
		if data, err = fetch(ctx, at, key); errors.Is(err, api.ErrNotFound) {
			return register.Absent, nil
		}
	}
	if err != nil {
		return register.Absent, err
	}
	value, err := register.Parse(key, segments, data)
	if err != nil {
		c.t.Errorf("a read mixed versions: %v", err)
	}
	return value, err
}

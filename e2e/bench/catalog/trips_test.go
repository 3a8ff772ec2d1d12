package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	catalogmem "github.com/restripe/restripe/agent/catalog/mem"
	"github.com/restripe/restripe/agent/catalog/open"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/store/mem"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(memberVariable); text != "" {
		if err := beMember(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// The round trips to the catalog, one after the other, as kinds of the records that are read or written. A get of what was not seen
// before has two where the object has groups of its own, as only its record says which groups to read as of one instant with it. A put
// looks at what it writes over, announces its blocks, looks at what its commit needs, and commits.
var (
	putTrips = []string{"read meta o u", "update i u v", "read i meta o x", "update e g i l o v"}
	getTrips = []string{"read o", "read g l o"}

	// A small object is counted by its bytes too, as others share its group, and its record says where it lies.
	smallPutTrips = append(slices.Clone(putTrips[:3]), "update b e g i l o v")
	smallGetTrips = getTrips[:1]
)

// recorder takes down the round trips for puts and gets, and leaves out what goes on in the background.
type recorder struct {
	kv.Engine
	mutex sync.Mutex
	trips []string
}

func (r *recorder) note(what string, keys []string, counts func(key string) bool) {
	var kinds []string
	for _, key := range keys {
		kinds = append(kinds, strings.TrimSuffix(kindOf(key), "/"))
	}
	slices.Sort(kinds)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if slices.ContainsFunc(keys, counts) {
		r.trips = append(r.trips, what+" "+strings.Join(slices.Compact(kinds), " "))
	}
}

// Read implements kv.Engine.
func (r *recorder) Read(ctx context.Context, keys ...string) ([][]byte, error) {
	isSweep := slices.ContainsFunc(keys, func(key string) bool { return kindOf(key) == "d/" }) // what is found in stores is looked up
	r.note("read", keys, func(key string) bool {
		return !isSweep && (key == "meta/next" || slices.Contains([]string{"i/", "o/"}, kindOf(key)))
	})
	return r.Engine.Read(ctx, keys...)
}

// Update implements kv.Engine.
func (r *recorder) Update(ctx context.Context, checks []kv.Check, writes []kv.Write) ([]int, error) {
	var keys []string
	for _, write := range writes {
		keys = append(keys, write.Key)
	}
	r.note("update", keys, func(key string) bool { return kindOf(key) == "i/" })
	return r.Engine.Update(ctx, checks, writes)
}

// of returns the round trips of something.
func (r *recorder) of(t *testing.T, do func() error) []string {
	t.Helper()
	r.mutex.Lock()
	r.trips = nil
	r.mutex.Unlock()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.trips
}

func wantTrips(t *testing.T, what string, trips, want []string) {
	t.Helper()
	if !slices.Equal(trips, want) {
		t.Errorf("%s makes these round trips to the catalog:\n  %s\nwant\n  %s", what, strings.Join(trips, "\n  "), strings.Join(want, "\n  "))
	}
}

// startGateway starts a gateway over a catalog, with agents that have their stores in memory.
func startGateway(t *testing.T, engine kv.Engine, agents int) *gateway.Gateway {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	var nodes []catalog.Node
	for i := range agents {
		id := block.NodeID(fmt.Sprintf("n%d", i+1))
		n, err := node.New(node.Options{ID: id, Store: mem.New(0), Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		address, ended, err := node.ListenAndServe(ctx, "127.0.0.1:0", n, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			stop()
			if err := errors.Join(<-ended, n.Close()); err != nil {
				t.Errorf("agent %s: %v", id, err)
			}
		})
		nodes = append(nodes, catalog.Node{ID: id, Address: address.String()})
	}
	records, err := catalog.Open(t.Context(), engine, catalog.Owner("gw", "start"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(t.Context(), gateway.Options{Catalog: records, ID: "gw", Start: "start", Nodes: nodes, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// What a gateway asks of the catalog for an object, small or large, is counted, and is what this program measures.
func TestTripsOfTheGateway(t *testing.T) {
	engine := &recorder{Engine: catalogmem.New()}
	g := startGateway(t, engine, 15)
	for _, size := range []int{1000, largeBytes} {
		data := make([]byte, size)
		key := fmt.Sprint("of ", size)
		trips := engine.of(t, func() error {
			_, err := g.Put(t.Context(), key, bytes.NewReader(data), api.PutOptions{Size: int64(size)})
			return err
		})
		wantPut, wantGet := putTrips, getTrips
		if size < api.DefaultPackBelow {
			wantPut, wantGet = smallPutTrips, smallGetTrips
		}
		wantTrips(t, fmt.Sprintf("a put of %d bytes", size), trips, wantPut)
		trips = engine.of(t, func() error {
			reader, err := g.Open(t.Context(), key)
			if err != nil {
				return err
			}
			return reader.WriteTo(t.Context(), io.Discard, 0, int64(size))
		})
		wantTrips(t, fmt.Sprintf("a get of %d bytes", size), trips, wantGet)
	}
}

func TestTripsOfTheCatalog(t *testing.T) {
	engine := &recorder{Engine: catalogmem.New()}
	c, err := catalog.Open(t.Context(), engine, catalog.Owner("bench", "1"))
	if err != nil {
		t.Fatal(err)
	}
	nodes, random := nodeIDs(slots), rand.New(rand.NewPCG(1, 1))
	if err := enroll(t.Context(), c, nodes); err != nil {
		t.Fatal(err)
	}
	wantTrips(t, "a put as it is measured", engine.of(t, func() error { return putOne(t.Context(), c, "a", nodes, random) }), putTrips)
	wantTrips(t, "a get as it is measured", engine.of(t, func() error { return getOne(t.Context(), c, "a") }), getTrips)

	seen, err := c.Snapshot(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	wantTrips(t, "a get of what was seen before", engine.of(t, func() error {
		_, err := c.Again(t.Context(), seen, 0, largeBytes)
		return err
	}), getTrips[1:])
}

// Each call of an engine is one exchange with its server, as the servers count them.
func TestTripsOnTheWire(t *testing.T) {
	for name, count := range map[string]func(t *testing.T, s *server) (address string, count func() int64){
		"Redis": countRedis, "etcd, 1 member": countEtcd, "PostgreSQL": countPostgres,
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			for _, open := range []string{directory, directory + "/.."} { // PostgreSQL is another user
				if err := os.Chmod(open, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			s, err := startServer(t.Context(), name, directory)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.stop(); err != nil {
					t.Error(err)
				}
			})
			address, trips := count(t, s)
			c, _, err := open.Catalog(t.Context(), address, "bench", "1", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
			nodes, random := nodeIDs(slots), rand.New(rand.NewPCG(1, 1))
			if err := enroll(t.Context(), c, nodes); err != nil {
				t.Fatal(err)
			}
			of := func(do func() error) int64 {
				before := trips()
				if err := do(); err != nil {
					t.Fatal(err)
				}
				return trips() - before
			}
			// The first makes connections and a script known, and where a second has passed PostgreSQL is asked whether it is the primary.
			puts, gets := int64(math.MaxInt64), int64(math.MaxInt64)
			for i := range 10 {
				key := strconv.Itoa(i)
				puts = min(puts, of(func() error { return putOne(t.Context(), c, key, nodes, random) }))
				gets = min(gets, of(func() error { return getOne(t.Context(), c, key) }))
			}
			if err := putInto(t.Context(), c, "small", true, nodes, random); err != nil {
				t.Fatal(err)
			}
			small := of(func() error {
				_, _, err := c.SnapshotToRead(t.Context(), "small", 1)
				return err
			})
			if small != int64(len(smallGetTrips)) {
				t.Errorf("a get of a small object exchanges %d messages with %s; want %d", small, name, len(smallGetTrips))
			}
			if puts != int64(len(putTrips)) || gets != int64(len(getTrips)) {
				t.Errorf("a put exchanges %d messages with %s and a get %d; want %d and %d", puts, name, gets, len(putTrips), len(getTrips))
			}
		})
	}
}

// countRedis counts the commands that the engine sends.
func countRedis(t *testing.T, s *server) (string, func() int64) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: s.hosts, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return s.address, func() (total int64) {
		text, err := client.Do(t.Context(), client.B().Info().Section("commandstats").Build()).ToString()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			for _, name := range []string{"hmget", "evalsha", "eval"} { // others are called by the scripts
				rest, is := strings.CutPrefix(line, "cmdstat_"+name+":calls=")
				if !is {
					continue
				}
				calls, _, _ := strings.Cut(rest, ",")
				n, err := strconv.ParseInt(calls, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				total += n
			}
		}
		return total
	}
}

// countEtcd counts the calls that a member has begun to answer, but streams.
func countEtcd(t *testing.T, s *server) (string, func() int64) {
	return s.address, func() (total int64) {
		answer, err := http.Get("http://" + s.hosts[0] + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := answer.Body.Close(); err != nil {
				t.Error(err)
			}
		}()
		lines, found := bufio.NewScanner(answer.Body), false
		for lines.Scan() {
			line := lines.Text()
			if !strings.HasPrefix(line, "grpc_server_started_total{") || !strings.Contains(line, `grpc_service="etcdserverpb.KV"`) {
				continue
			}
			n, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				t.Fatal(err)
			}
			total, found = total+int64(n), true
		}
		if err := lines.Err(); err != nil || !found {
			t.Fatalf("the member does not count its calls (%v)", err)
		}
		return total
	}
}

// countPostgres passes connections on, and counts how often the server said that it is ready for the next query.
func countPostgres(t *testing.T, s *server) (string, func() int64) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var ready atomic.Int64
	var work sync.WaitGroup
	work.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", s.hosts[0])
			if err != nil {
				t.Error(err)
				return
			}
			work.Go(func() {
				_, _ = io.Copy(server, client) // until one of them goes
				_ = server.Close()
			})
			work.Go(func() {
				_ = countReady(client, server, &ready) // likewise
				_ = client.Close()
			})
		}
	})
	t.Cleanup(func() { // after the catalog was closed, which ends all connections
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		work.Wait()
	})
	return strings.Replace(s.address, s.hosts[0], listener.Addr().String(), 1), ready.Load
}

// countReady passes on what a server says, message by message: a byte for its kind, and a length that counts itself.
func countReady(client io.Writer, server io.Reader, ready *atomic.Int64) error {
	from := bufio.NewReader(server)
	for {
		var head [5]byte
		if _, err := io.ReadFull(from, head[:]); err != nil {
			return err
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(from, body); err != nil {
			return err
		}
		if head[0] == 'Z' {
			ready.Add(1)
		}
		if _, err := client.Write(append(head[:], body...)); err != nil {
			return err
		}
	}
}

package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/decorate"
)

// counted reads one of a gateway's counters.
func counted(t *testing.T, g *gateway.Gateway, name string) int {
	t.Helper()
	answer := httptest.NewRecorder()
	g.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	match := regexp.MustCompile(`(?m)^` + name + ` (\d+)$`).FindStringSubmatch(answer.Body.String())
	if match == nil {
		t.Fatalf("the counter %s is gone", name)
	}
	count, err := strconv.Atoi(match[1])
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// hooked is an engine whose reads and scans are told to hooks first.
type hooked struct {
	kv.Engine
	mutex sync.Mutex
	read  func(keys []string) error // its error is that of the read
	scan  func(prefix, after string)
}

func (e *hooked) hook(read func(keys []string) error, scan func(prefix, after string)) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.read, e.scan = read, scan
}

func (e *hooked) Read(ctx context.Context, keys ...string) ([][]byte, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.read != nil {
		if err := e.read(keys); err != nil {
			return nil, err
		}
	}
	return e.Engine.Read(ctx, keys...)
}

func (e *hooked) Scan(ctx context.Context, prefix, after string, limit int) ([]kv.Record, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.scan != nil {
		e.scan(prefix, after)
	}
	return e.Engine.Scan(ctx, prefix, after, limit)
}

// crowd holds the reads of blocks at all nodes but one, and counts them.
type crowd struct {
	apart block.NodeID
	gate  atomic.Pointer[chan struct{}] // nil: none is held
	reads atomic.Int64
}

func (w *crowd) wrap(agent *testAgent) {
	agent.wrap = func(inner store.Store) store.Store {
		fault := &decorate.Fault{Rule: func(call decorate.Call) decorate.Effect {
			gate := w.gate.Load()
			if agent.id == w.apart || gate == nil || call.Operation != decorate.ReadAt || !strings.HasPrefix(call.Key, block.KeyPrefix) {
				return decorate.Effect{}
			}
			w.reads.Add(1)
			return decorate.Effect{Gate: *gate}
		}}
		return fault.Wrap(inner)
	}
}

// Readers that wait for the same group to be rebuilt wait for one and the same rebuilding, and decode nothing.
func TestReadersThatRepairFirstShareTheRepair(t *testing.T) {
	t.Parallel()
	w := &crowd{apart: "n1"}
	c := newCluster(t, 8, w.wrap)
	key, offset := c.putOn("n1", "rs(6,2)")
	engine := &hooked{Engine: c.engine}
	g := c.newGateway("other", c.over(engine))
	var alone int64
	if _, err := g.Open(t.Context(), key); err != nil { // from now on it is known where it lies
		t.Fatal(err)
	}
	for _, readers := range []int{1, 50} {
		c.damage(key, int(offset)/c.stat(key).Groups[0].CellBytes)
		gate := make(chan struct{})
		met := 0
		engine.hook(func(keys []string) error {
			if keys[0] == "o/"+key {
				if met++; met == 3*readers { // each has opened the object, and looked again after it met the damage
					close(gate)
				}
			}
			return nil
		}, nil)
		w.reads.Store(0)
		w.gate.Store(&gate)
		var reading errgroup.Group
		for range readers {
			reading.Go(func() error {
				reader, err := g.Open(t.Context(), key)
				if err != nil {
					return err
				}
				reader.RepairFirst()
				return reader.WriteTo(t.Context(), &bytes.Buffer{}, offset, 10)
			})
		}
		if err := reading.Wait(); err != nil {
			t.Fatal(err)
		}
		if reads := w.reads.Load(); readers == 1 {
			alone = reads
		} else if reads > 2*alone {
			t.Errorf("%d readers had other nodes read %d times, one alone %d times", readers, reads, alone)
		}
	}
	if status := c.repairStatus(g); status.SlotsRebuilt != 2 {
		t.Errorf("two slots were lost: %+v", status)
	}
	for _, name := range []string{"restripe_gateway_degraded_reads_total", "restripe_gateway_hedged_reads_total"} {
		if n := counted(t, g, name); n != 0 {
			t.Errorf("%s is %d", name, n)
		}
	}
	c.audit()
}

// A read that waits for repairs waits for a slow node as well: no other is asked, and nothing is decoded.
func TestReadsThatRepairFirstAreNotHedged(t *testing.T) {
	t.Parallel()
	c, stuck := newSticking(t)
	key, offset := c.putOn("n4", "rs(6,2)")
	stuck.stick()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	reader, err := c.gateway.Open(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	reader.RepairFirst()
	if err := reader.WriteTo(ctx, &bytes.Buffer{}, offset, 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read that waits for repairs, of a node that is stuck: %v", err)
	}
	if hedges := counted(t, c.gateway, "restripe_gateway_hedged_reads_total"); hedges != 0 {
		t.Errorf("%d hedges", hedges)
	}
}

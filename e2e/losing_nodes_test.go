package e2e

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/launch"
)

var losingRounds = flag.Int("losing.rounds", 5, "how often as many nodes are killed as every object survives")

// The class of the test: groups over 8 of 14 nodes that survive the loss of any 2.
const losingClasses = `classes:
- name: default
  ladder: rep(3),rs(3,2),rs(6,2)
  prefixes: [""]
  packBelow: 4KiB
  groupBytes: 64KiB
`

const (
	losingAgents = 14
	losingAtOnce = 2 // m of the class
)

// TestLosingNodesAgainAndAgain kills any m of 14 nodes in any order while clients write, waits until what lay on them is
// rebuilt, and kills the next m, ten times over. Nodes come back late, half of them with empty stores. Every object that
// was acknowledged reads back, at every moment and in the end.
func TestLosingNodesAgainAndAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("losing nodes needs minutes; -short leaves it out")
	}
	seed := chaosSeed(t)
	l := newLosing(t, seed)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var workers sync.WaitGroup
	for i := range l.writers {
		workers.Go(func() { l.writers[i].work(ctx) })
	}
	var gone, before []string
	for round := range *losingRounds {
		written, began := l.written(), time.Now()
		before, gone = gone, l.lose(gone)
		l.await("what lay on "+strings.Join(gone, " and ")+" is rebuilt elsewhere", func() bool { return l.rebuilt(gone) })
		l.await("clients write all the time", func() bool { return l.written() > written })
		rebuilt := time.Since(began)
		l.comeBack(before)
		t.Logf("round %d: lost %v, rebuilt after %v, took back %v after %v; %d writes so far", round+1, gone, rebuilt.Round(time.Millisecond),
			before, (time.Since(began) - rebuilt).Round(time.Millisecond), l.written())
		if t.Failed() {
			break
		}
	}
	l.comeBack(gone)
	stop()
	workers.Wait()
	l.settle()
}

type losing struct {
	t         *testing.T
	cluster   *launch.Cluster
	directory string
	client    *client.Client
	random    *rand.Rand
	writers   []*writer
}

func newLosing(t *testing.T, seed uint64) *losing {
	t.Helper()
	directory := t.TempDir()
	classes := filepath.Join(directory, "given.yaml")
	if err := os.WriteFile(classes, []byte(losingClasses), 0o644); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(directory, "cluster")
	cluster, err := launch.Start(t.Context(), launch.Options{
		Directory: state, Binary: program(t), Store: launch.StoreFile, Agents: losingAgents, ClassFile: classes, GatewayArguments: []string{"--grace", "0s"},
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
	if _, err := connection.SetPatience(t.Context(), api.Patience{DownAfterSeconds: 1, OutAfterSeconds: 2}); err != nil {
		t.Fatal(err)
	}
	l := &losing{t: t, cluster: cluster, directory: state, client: connection, random: rand.New(rand.NewPCG(seed, 0))}
	for i := range 4 {
		l.writers = append(l.writers, &writer{
			t: t, name: fmt.Sprint("writer-", i), client: connection, random: rand.New(rand.NewPCG(seed, uint64(i+1))), holds: map[string][][]byte{},
		})
	}
	return l
}

// lose kills some nodes that are not gone yet, one shortly after the other.
func (l *losing) lose(gone []string) (lost []string) {
	l.t.Helper()
	for len(lost) < losingAtOnce {
		name := fmt.Sprint("n", 1+l.random.IntN(losingAgents))
		if slices.Contains(gone, name) || slices.Contains(lost, name) {
			continue
		}
		if err := l.cluster.Halt(name); err != nil {
			l.t.Fatalf("killing %s: %v", name, err)
		}
		lost = append(lost, name)
		select {
		case <-time.After(time.Duration(l.random.IntN(400)) * time.Millisecond): // the distance between two faults
		case <-l.t.Context().Done():
		}
	}
	return lost
}

// rebuilt reports whether nodes were given up and nothing is left on them by the records.
func (l *losing) rebuilt(names []string) bool {
	list, err := l.client.Nodes(l.t.Context())
	if err != nil {
		return false
	}
	done := 0
	for _, node := range list.Nodes {
		if slices.Contains(names, string(node.ID)) && node.State == "out" && node.Slots == 0 {
			done++
		}
	}
	return done == len(names)
}

// comeBack starts nodes again, some with all they had and some with nothing, and waits until they take blocks.
func (l *losing) comeBack(names []string) {
	l.t.Helper()
	for _, name := range names {
		if l.random.IntN(2) == 0 {
			store := filepath.Join(l.directory, "nodes", name, "store")
			if err := errors.Join(os.RemoveAll(store), os.MkdirAll(store, 0o755)); err != nil {
				l.t.Fatal(err)
			}
		}
		if err := l.cluster.Restart(l.t.Context(), name); err != nil {
			l.t.Fatalf("starting %s again: %v", name, err)
		}
	}
	l.await(strings.Join(names, " and ")+" are taken back", func() bool {
		list, err := l.client.Nodes(l.t.Context())
		return err == nil && !slices.ContainsFunc(list.Nodes, func(node api.NodeInfo) bool {
			return slices.Contains(names, string(node.ID)) && node.State != "up"
		})
	})
}

func (l *losing) written() (count int) {
	for _, w := range l.writers {
		w.mutex.Lock()
		count += w.written
		w.mutex.Unlock()
	}
	return count
}

func (l *losing) await(what string, holds func() bool) {
	l.t.Helper()
	deadline := time.After(10 * time.Minute)
	for !holds() {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			l.t.Fatalf("after ten minutes it does not hold that %s", what)
		case <-l.t.Context().Done():
			l.t.FailNow()
		}
	}
}

// settle checks every object once more, and that nothing is missing and nothing left over.
func (l *losing) settle() {
	ctx := l.t.Context()
	l.await("every group is whole and dead blocks are gone", func() bool {
		if _, err := l.client.Sweep(ctx, api.SweepRequest{}); err != nil {
			return false
		}
		status, err := l.client.Status(ctx)
		return err == nil && status.NotWhole == 0 && status.Active == 0 && status.Graves == 0 && status.CanLose >= losingAtOnce
	})
	objects := 0
	for _, w := range l.writers {
		for key := range w.holds {
			w.read(ctx, key)
			objects++
		}
	}
	l.await("a sweep at rest finds nothing left over", func() bool {
		swept, err := l.client.Sweep(ctx, api.SweepRequest{})
		return err == nil && leftNothing(swept)
	})
	if l.written() < *losingRounds || objects == 0 {
		l.t.Errorf("%d writes of %d objects: the test shows nothing", l.written(), objects)
	}
	l.t.Logf("%d writes of %d objects, %d nodes lost", l.written(), objects, *losingRounds*losingAtOnce)
}

// writer writes and reads objects of its own, and knows what each may hold: one content, or more where the outcome of a
// write could not be learned.
type writer struct {
	t      *testing.T
	name   string
	client *client.Client
	random *rand.Rand
	holds  map[string][][]byte // nil content: no object

	mutex   sync.Mutex
	written int
}

func (w *writer) work(ctx context.Context) {
	pace := time.NewTicker(40 * time.Millisecond) // leaves repair most of the machine
	defer pace.Stop()
	for ctx.Err() == nil {
		select {
		case <-pace.C:
		case <-ctx.Done():
			return
		}
		key := fmt.Sprintf("%s/%d", w.name, w.random.IntN(10))
		if w.holds[key] == nil {
			w.holds[key] = [][]byte{nil}
		}
		switch draw := w.random.IntN(10); {
		case draw < 5:
			size := 500 + w.random.IntN(1500) // packed with others
			if key[len(key)-1]%2 == 0 {
				size = 100_000 + w.random.IntN(100_000) // groups of its own
			}
			data := make([]byte, size)
			for at := range data {
				data[at] = byte(w.random.Uint32())
			}
			_, err := w.client.Put(ctx, key, bytes.NewReader(data), client.PutOptions{Size: int64(size), SizeKnown: true})
			w.wrote(key, data, err)
		case draw < 6 && len(w.holds[key]) == 1 && w.holds[key][0] != nil:
			data := slices.Clone(w.holds[key][0])
			at := w.random.IntN(len(data) - 100)
			for i := range 100 {
				data[at+i] = byte(w.random.Uint32())
			}
			_, err := w.client.Update(ctx, key, int64(at), bytes.NewReader(data[at:at+100]), 100)
			w.wrote(key, data, err)
		case draw < 7:
			err := w.client.Delete(ctx, key)
			if errors.Is(err, api.ErrNotFound) {
				err = nil
			}
			w.wrote(key, nil, err)
		default:
			w.read(ctx, key)
		}
	}
}

// wrote takes note of what a key holds after a write.
func (w *writer) wrote(key string, data []byte, err error) {
	var refused *client.Error
	switch {
	case err == nil:
		w.holds[key] = [][]byte{data}
		w.mutex.Lock()
		w.written++
		w.mutex.Unlock()
	case errors.As(err, &refused) && slices.Contains([]api.Code{api.CodeUnavailable, api.CodeTooFewNodes, api.CodeConflict, api.CodeBadRequest, api.CodeFull}, refused.Code):
	default:
		w.holds[key] = append(w.holds[key], data)
	}
}

// read checks that a key holds what it may hold.
func (w *writer) read(ctx context.Context, key string) {
	var data []byte
	object, err := w.client.Get(ctx, key, client.Range{})
	if err == nil {
		data, err = io.ReadAll(object)
		err = errors.Join(err, object.Close())
	} else if errors.Is(err, api.ErrNotFound) {
		err = nil
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		w.t.Errorf("reading %s: %v", key, err)
		return
	}
	for _, may := range w.holds[key] {
		if (may == nil) == (data == nil) && bytes.Equal(may, data) {
			w.holds[key] = [][]byte{may}
			return
		}
	}
	w.t.Errorf("%s reads back %d bytes that nobody wrote last", key, len(data))
}

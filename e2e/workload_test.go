package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/sim/register"
)

// segments are those of an object (package register).
const segments = 6

// workload is what clients do while faults happen, and what they saw of it.
type workload struct {
	t        *testing.T
	clients  []*client.Client // one for each gateway; each operation takes any of them
	patience time.Duration    // deadline of one operation; 0: none
	seed     uint64
	began    time.Time
	excused  atomic.Bool // a transition may fail, as a disk was full meanwhile
	number   atomic.Uint32
	turn     atomic.Uint32

	mutex   sync.Mutex
	history []porcupine.Operation
	counts  map[string]int
}

func newWorkload(t *testing.T, seed uint64, clients ...*client.Client) *workload {
	return &workload{t: t, clients: clients, seed: seed, began: time.Now(), counts: map[string]int{}}
}

// client takes the gateways in turn, so that what is tried again is tried elsewhere.
func (w *workload) client() *client.Client {
	return w.clients[int(w.turn.Add(1))%len(w.clients)]
}

// bounded is ctx with the deadline of one operation.
func (w *workload) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.patience == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, w.patience)
}

// begin has so many workers act on keys until ctx ends, somebody take all objects up and down the ladder, and somebody bring small ones
// together.
func (w *workload) begin(ctx context.Context, round, workers int, keys, ladder []string) *sync.WaitGroup {
	group := &sync.WaitGroup{}
	for worker := range workers {
		source := rand.New(rand.NewPCG(w.seed, uint64(round)<<16|uint64(worker+1)))
		group.Go(func() {
			for ctx.Err() == nil {
				w.act(ctx, source, keys[source.IntN(len(keys))], ladder)
			}
		})
	}
	group.Go(func() { w.transitions(ctx, round, ladder) })
	group.Go(func() { w.compactions(ctx) })
	return group
}

// readBack reads keys after the faults are over, as part of the history.
func (w *workload) readBack(keys []string) {
	w.t.Helper()
	for _, key := range keys {
		var value register.Value
		w.await("key "+key+" reads", func() bool {
			ctx, cancel := w.bounded(w.t.Context())
			defer cancel()
			var err error
			value, err = w.get(ctx, w.client(), key)
			return err == nil
		})
		now := time.Since(w.began).Nanoseconds()
		w.record(register.Call{Key: key, Action: register.Get}, register.Answer{Value: value}, now, now+1)
	}
}

// pause lets the clients work for a while: it is the distance between two faults, not a wait for anything.
func (w *workload) pause(length time.Duration) {
	select {
	case <-time.After(length):
	case <-w.t.Context().Done():
	}
}

// endRound lets the clients work on, undisturbed, until one more transition has succeeded beside them.
func (w *workload) endRound(stop context.CancelFunc, workers *sync.WaitGroup) {
	w.t.Helper()
	enough := w.transitioned() + 1
	w.await("a transition succeeds while clients work", func() bool { return w.transitioned() >= enough })
	stop()
	workers.Wait()
}

func (w *workload) transitioned() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.counts["transition"]
}

// acknowledged counts the writes and reads that succeeded so far.
func (w *workload) acknowledged() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.counts["put"] + w.counts["get"] + w.counts["update"] + w.counts["delete"]
}

// allUp reports whether every gateway finds every node up.
func (w *workload) allUp() bool {
	for _, c := range w.clients {
		ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
		status, err := c.Status(ctx)
		cancel()
		if err != nil || slices.ContainsFunc(status.Nodes, func(node api.NodeStatus) bool { return node.State != "up" }) {
			return false
		}
	}
	return true
}

func (w *workload) repaired() bool {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	result, err := w.client().Repair(ctx)
	return err == nil && len(result.Failed) == 0
}

// await polls until holds; it fails the test after ten minutes.
func (w *workload) await(what string, holds func() bool) {
	w.t.Helper()
	deadline := time.After(10 * time.Minute)
	for !holds() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-deadline:
			w.t.Errorf("after ten minutes it does not hold that %s: %s", what, w.situation())
			return
		case <-w.t.Context().Done():
			return
		}
	}
}

// situation is what the gateways say that may keep anything from going on.
func (w *workload) situation() string {
	lines := []string{fmt.Sprintf("%d operations were acknowledged", w.acknowledged())}
	for i, c := range w.clients {
		ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
		status, err := c.Status(ctx)
		cancel()
		if err != nil {
			lines = append(lines, fmt.Sprintf("gateway %d: %v", i, err))
			continue
		}
		for _, node := range status.Nodes {
			if node.State != "up" || len(node.Warnings) > 0 {
				lines = append(lines, fmt.Sprintf("%s is %s %q", node.ID, node.State, node.Warnings))
			}
		}
		for _, t := range status.Transitions {
			lines = append(lines, fmt.Sprintf("to %s: %s %d of %d groups, %d attempts %s", t.To, t.State, t.GroupsDone, t.GroupsTotal, t.Attempts, t.Error))
		}
	}
	return strings.Join(lines, "; ")
}

// transitions takes the class up and down its ladder, over and over.
func (w *workload) transitions(ctx context.Context, round int, ladder []string) {
	steps := []string{ladder[1], ladder[2], ladder[1], ladder[0]}
	for step := 0; ctx.Err() == nil; step++ {
		t, err := w.startTransition(ctx, steps[(round+step)%len(steps)])
		for err == nil && !t.State.Final() && ctx.Err() == nil {
			w.pause(20 * time.Millisecond)
			bounded, cancel := w.bounded(ctx)
			var now api.Transition
			if now, err = w.client().Transition(bounded, t.ID); err == nil {
				t = now
			} else if errors.Is(err, client.ErrUnreachable) || errors.Is(err, api.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
				err = nil // the gateway is away for a while
			}
			cancel()
		}
		switch {
		case err != nil:
			w.pause(20 * time.Millisecond)
		case t.State == api.TransitionDone:
			w.count("transition")
		case t.State == api.TransitionFailed && w.excused.Load():
			w.count("transition failed")
		case t.State == api.TransitionFailed:
			w.t.Errorf("transition %s to %s failed: %s", t.ID, t.To, t.Error)
		}
	}
}

// compactions has all that is dead given back, again and again, until ctx ends.
func (w *workload) compactions(ctx context.Context) {
	for ctx.Err() == nil {
		w.compact(ctx)
		w.pause(100 * time.Millisecond)
	}
}

// compact begins a pass and waits until it has ended, another one has begun, or nobody answers.
func (w *workload) compact(ctx context.Context) {
	ask := func(do func(ctx context.Context, c *client.Client) (api.Compaction, error)) (api.Compaction, error) {
		ctx, cancel := w.bounded(ctx)
		defer cancel()
		return do(ctx, w.client())
	}
	begun, err := ask(func(ctx context.Context, c *client.Client) (api.Compaction, error) {
		return c.StartCompaction(ctx, api.CompactionRequest{Everything: true})
	})
	for err == nil && ctx.Err() == nil {
		var now api.Compaction
		now, err = ask(func(ctx context.Context, c *client.Client) (api.Compaction, error) { return c.Compaction(ctx) })
		if err == nil && (now.Pass != begun.Pass || now.State != api.CompactionRunning) {
			if now.Pass == begun.Pass && now.ObjectsMoved > 0 {
				w.count("compaction")
			}
			return
		}
		w.pause(20 * time.Millisecond)
	}
}

func (w *workload) startTransition(ctx context.Context, to string) (api.Transition, error) {
	ctx, cancel := w.bounded(ctx)
	defer cancel()
	return w.client().StartTransition(ctx, api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: to})
}

func (w *workload) count(what string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.counts[what]++
}

// act does one random operation on a key.
func (w *workload) act(ctx context.Context, source *rand.Rand, key string, ladder []string) {
	ctx, cancel := w.bounded(ctx)
	defer cancel()
	through := w.clients[source.IntN(len(w.clients))]
	size := 600 // packed with others
	if key[len(key)-1]%2 == 0 {
		size = 200_000 // several groups of its own
	}
	call := time.Since(w.began).Nanoseconds()
	switch draw := source.IntN(100); {
	case draw < 35:
		value, err := w.get(ctx, through, key)
		if err == nil {
			w.finish(register.Call{Key: key, Action: register.Get}, register.Answer{Value: value}, call, nil, "get")
		} else {
			w.pause(5 * time.Millisecond)
		}
	case draw < 65:
		numbers := make([]uint32, segments)
		for i := range numbers {
			numbers[i] = w.number.Add(1)
		}
		_, err := through.Put(ctx, key, bytes.NewReader(register.Content(key, size, numbers)), client.PutOptions{Size: int64(size), SizeKnown: source.IntN(2) == 0})
		w.finish(register.Call{Key: key, Action: register.Put, Value: register.Of(numbers)}, register.Answer{}, call, err, "put")
	case draw < 88:
		segment, number := source.IntN(segments), w.number.Add(1)
		each := size / segments
		data := make([]byte, each)
		register.Fill(key, segment, number, data)
		_, err := through.Update(ctx, key, int64(segment*each), bytes.NewReader(data), int64(each))
		w.finish(register.Call{Key: key, Action: register.Update, First: segment, End: segment + 1, Number: number}, register.Answer{}, call, err, "update")
	case draw < 95:
		err := through.Delete(ctx, key)
		w.finish(register.Call{Key: key, Action: register.Delete}, register.Answer{}, call, err, "delete")
	default:
		if _, err := through.Move(ctx, key, ladder[source.IntN(len(ladder))]); err == nil {
			w.count("move")
		}
	}
}

// finish records a write by its outcome: acknowledged, refused (which promises that nothing happened), or unknown.
func (w *workload) finish(in register.Call, out register.Answer, call int64, err error, name string) {
	back := time.Since(w.began).Nanoseconds()
	var refused *client.Error
	var transport *net.OpError
	switch {
	case err == nil:
		w.count(name)
	case errors.Is(err, api.ErrNotFound):
		out.Missing = true
	case errors.As(err, &transport) && transport.Op == "dial": // never sent
		w.count("not sent")
		w.pause(5 * time.Millisecond)
		return
	case errors.As(err, &refused) && !errors.Is(err, api.ErrUnknownOutcome) && refused.Code != "cancelled" && refused.Code != "internal" && refused.Code != "timeout":
		w.count(name + " refused")
		return
	default:
		w.count(name + " unknown")
		out.Unknown, back = true, math.MaxInt64
	}
	w.record(in, out, call, back)
}

func (w *workload) record(in register.Call, out register.Answer, call, back int64) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.history = append(w.history, porcupine.Operation{Input: in, Output: out, Call: call, Return: back})
}

// get reads an object whole. Bytes that are of no one version fail the test.
func (w *workload) get(ctx context.Context, through *client.Client, key string) (register.Value, error) {
	object, err := through.Get(ctx, key, client.Range{})
	if errors.Is(err, api.ErrNotFound) {
		return register.Absent, nil
	}
	if err != nil {
		if errors.Is(err, api.ErrDataLoss) {
			w.t.Errorf("reading %s: %v", key, err)
		}
		return register.Absent, err
	}
	data, err := io.ReadAll(object)
	if err = errors.Join(err, object.Close()); err != nil {
		return register.Absent, err
	}
	if int64(len(data)) != object.Length {
		return register.Absent, fmt.Errorf("%d of %d bytes", len(data), object.Length)
	}
	value, err := register.Parse(key, segments, data)
	if err != nil {
		w.t.Errorf("a read mixed versions: %v", err)
	}
	return value, err
}

// illegal is what clients saw of each key whose operations fit no order, in the order of their calls.
func illegal(history []porcupine.Operation) string {
	keys := map[string][]porcupine.Operation{}
	for _, operation := range history {
		key := operation.Input.(register.Call).Key
		keys[key] = append(keys[key], operation)
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if porcupine.CheckOperationsTimeout(register.Model.ToModel(), keys[key], time.Minute) != porcupine.Illegal {
			continue
		}
		slices.SortFunc(keys[key], func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		for _, operation := range keys[key] {
			back := "never"
			if operation.Return != math.MaxInt64 {
				back = time.Duration(operation.Return).String()
			}
			fmt.Fprintf(&text, "\n  %v to %s: %v: %v", time.Duration(operation.Call), back, operation.Input, operation.Output)
		}
	}
	return text.String()
}

// judge checks what clients saw: every operation must fit one order per key, and every kind must have succeeded once.
func (w *workload) judge() {
	w.t.Helper()
	info := porcupine.Ok
	if len(w.history) > 0 {
		patience := 2*time.Minute + time.Duration(len(w.history))*time.Millisecond
		info = porcupine.CheckOperationsTimeout(register.Model.ToModel(), w.history, patience)
	}
	switch info {
	case porcupine.Illegal:
		w.t.Errorf("the history of %d operations is not linearizable per key%s", len(w.history), illegal(w.history))
	case porcupine.Unknown:
		w.t.Errorf("the history of %d operations could not be checked in time", len(w.history))
	}
	for _, want := range []string{"put", "get", "update", "delete", "move", "transition"} {
		if w.counts[want] == 0 {
			w.t.Errorf("no %s succeeded: the test shows nothing", want)
		}
	}
}

// settle waits until everything is at rest and then looks for what must not be there.
func (w *workload) settle() {
	w.t.Helper()
	ctx, c := w.t.Context(), w.clients[0]
	w.await("transitions have ended", func() bool {
		status, err := c.Status(ctx)
		return err == nil && len(status.Transitions) == 0
	})
	w.await("every group is whole", w.repaired)
	var status api.Status
	var swept api.SweepResult
	w.await("attempts and dead blocks are gone, and a sweep at rest finds nothing left over", func() bool {
		var statusErr, sweepErr error
		status, statusErr = c.Status(ctx)
		swept, sweepErr = c.Sweep(ctx, api.SweepRequest{})
		return statusErr == nil && status.Active == 0 && status.Graves == 0 && status.NotWhole == 0 &&
			sweepErr == nil && leftNothing(swept)
	})
	if w.t.Failed() {
		w.t.Logf("%d attempts, %d dead blocks, %d groups not whole; the last sweep: %+v", status.Active, status.Graves, status.NotWhole, swept)
	}
	findings, err := c.Doctor(ctx)
	if err != nil {
		w.t.Errorf("asking the doctor: %v", err)
	}
	for _, finding := range findings {
		if finding.Severity == "error" {
			w.t.Errorf("the doctor finds: %s: %s", finding.Subject, finding.Text)
		}
	}
	w.audit(ctx, c)
}

// leftNothing reports whether a sweep found nothing left over. Where faults were, one that finds something is awaited to be
// followed by one that does not: a write they delayed may land after the delete that was to undo it was acknowledged, which
// is the scan for orphans to clear (protocol, rule 12), and an operation whose client gave up may be committed meanwhile.
func leftNothing(swept api.SweepResult) bool {
	return swept.GroupsFreed+swept.BlocksDeleted+swept.OrphansDeleted+swept.Quarantined == 0
}

// audit looks at every block of every object.
func (w *workload) audit(ctx context.Context, c *client.Client) {
	w.t.Helper()
	objects := 0
	for object, err := range c.Objects(ctx, "") {
		if err != nil {
			w.t.Fatalf("listing: %v", err)
		}
		objects++
		stat, err := c.Stat(ctx, object.Key)
		if err != nil {
			w.t.Errorf("stat %s: %v", object.Key, err)
			continue
		}
		for _, group := range stat.Groups {
			for _, slot := range group.Slots {
				if slot.State != "ok" {
					w.t.Errorf("%s: slot %d of group %s on %s is %s", object.Key, slot.Slot, group.ID, slot.Node, slot.State)
				}
			}
		}
	}
	if objects == 0 {
		w.t.Error("no object is left: the test shows nothing")
	}
}

package clients_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/sim/register"
)

// allSeeTheSame: what is stored through one protocol at one gateway reads the same through all protocols at both.
func (s *suite) allSeeTheSame(t *testing.T) {
	all := append(faces(t, s.first), faces(t, s.second)...)
	for i, writer := range all {
		for _, size := range []int{0, 1, 5_000, 300_000} {
			key := fmt.Sprintf("same/%d/%d", i, size)
			data := make([]byte, size)
			for at := range data {
				data[at] = byte(at*7 + i)
			}
			if err := writer.put(t.Context(), key, data); err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			for j, reader := range all {
				if got, err := reader.get(t.Context(), key); err != nil || string(got) != string(data) {
					t.Errorf("%s, put by %s, reads as %d other bytes by %s (%d), %v", key, faceNames[i%len(faceNames)], len(got),
						faceNames[j%len(faceNames)], j, err)
				}
			}
			if err := all[(i+1)%len(all)].delete(t.Context(), key); err != nil {
				t.Errorf("deleting %s by another: %v", key, err)
			}
			if _, err := writer.get(t.Context(), key); !errors.Is(err, errMissing) {
				t.Errorf("%s, deleted by another, reads %v", key, err)
			}
		}
	}
}

// segments are those of a value (package register).
const segments = 3

// history is what clients did and saw.
type history struct {
	t      *testing.T
	began  time.Time
	number atomic.Uint32

	mutex      sync.Mutex
	operations []porcupine.Operation
	counts     map[string]int
	reached    map[int]chan struct{} // closed when there are so many operations
}

func (h *history) now() int64 { return time.Since(h.began).Nanoseconds() }

// note records an operation by its outcome. What a read that failed would have seen is of no interest.
func (h *history) note(face string, in register.Call, out register.Answer, call int64, err error) {
	back, outcome := h.now(), ""
	switch {
	case err == nil:
	case errors.Is(err, errRefused):
		outcome = " refused"
	case errors.Is(err, errMissing) && (in.Action == register.Get || in.Action == register.Delete):
		out.Missing = in.Action == register.Delete
	default:
		out.Unknown, back, outcome = true, math.MaxInt64, " unknown"
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.counts[face+" "+in.Action.String()+outcome]++
	if out.Unknown {
		h.t.Logf("%s %v: %v", face, in, err)
	}
	if errors.Is(err, errRefused) || in.Action == register.Get && out.Unknown {
		return
	}
	h.operations = append(h.operations, porcupine.Operation{
		ClientId: slices.Index(faceNames, face), Input: in, Output: out, Call: call, Return: back,
	})
	if reached := h.reached[len(h.operations)]; reached != nil {
		close(reached)
	}
}

// fresh is a value that nobody has written yet, and its bytes.
func (h *history) fresh(key string, size int) (register.Value, []byte) {
	numbers := make([]uint32, segments)
	for i := range numbers {
		numbers[i] = h.number.Add(1)
	}
	return register.Of(numbers), register.Content(key, size, numbers)
}

// read reads a key. Bytes that are of no one version fail the test.
func (h *history) read(ctx context.Context, name string, f face, key string) {
	call := h.now()
	data, err := f.get(ctx, key)
	out := register.Answer{}
	if err == nil {
		if out.Value, err = register.Parse(key, segments, data); err != nil {
			h.t.Errorf("a read by %s mixed versions: %v", name, err)
		}
	}
	h.note(name, register.Call{Key: key, Action: register.Get}, out, call, err)
}

// explain shows what was done to the keys whose histories are wrong.
func (h *history) explain() {
	for _, of := range register.Model.Partition(h.operations) {
		if porcupine.CheckOperationsTimeout(register.Model.ToModel(), of, patience) == porcupine.Ok {
			continue
		}
		slices.SortFunc(of, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		for _, operation := range of {
			h.t.Logf("%9d to %9d us by %s: %v: %v", operation.Call/1000, operation.Return/1000, faceNames[operation.ClientId], operation.Input,
				operation.Output)
		}
	}
}

// act does one random operation through a face.
func (h *history) act(ctx context.Context, name string, f face, key string, draw int) {
	size := 600 // packed with others
	if key[len(key)-1]%2 == 0 {
		size = 150_000 // several groups of its own
	}
	in := register.Call{Key: key}
	call := h.now()
	var data []byte
	var err error
	switch {
	case draw < 30:
		h.read(ctx, name, f, key)
		return
	case draw < 45:
		in.Action = register.Put
		in.Value, data = h.fresh(key, size)
		err = f.put(ctx, key, data)
	case draw < 65:
		in.Action = register.Create
		in.Value, data = h.fresh(key, size)
		err = f.create(ctx, key, data)
	case draw < 85:
		in.Action = register.Swap
		err = f.swap(ctx, key, func(was []byte) []byte {
			over, err := register.Parse(key, segments, was)
			if err != nil {
				h.t.Errorf("a read by %s mixed versions: %v", name, err)
			}
			in.Over, call = over, h.now()
			in.Value, data = h.fresh(key, size)
			return data
		})
	default:
		in.Action = deletion(name)
		err = f.delete(ctx, key)
	}
	h.note(name, in, register.Answer{}, call, err)
}

// deletion is what a delete of a face is to a history: that of S3 does not say whether there was an object.
func deletion(face string) register.Action {
	if face == s3Name {
		return register.Remove
	}
	return register.Delete
}

// oneOrderPerKey has clients of all protocols write, swap, read and delete the same keys at both gateways, while an agent is killed
// with SIGKILL and objects move along the ladder. What they saw must fit one order per key.
func (s *suite) oneOrderPerKey(t *testing.T) {
	const workers, each, keys = 6, 200, 6
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	h := &history{t: t, began: time.Now(), counts: map[string]int{}, reached: map[int]chan struct{}{}}
	toKill := make(chan struct{})
	h.reached[workers*each/4] = toKill
	all := [][]face{faces(t, s.first), faces(t, s.second)}
	var work, trouble sync.WaitGroup
	for worker := range workers {
		random := rand.New(rand.NewPCG(seed, uint64(worker+1)))
		work.Go(func() {
			for range each {
				at, by := random.IntN(2), random.IntN(len(faceNames))
				h.act(t.Context(), faceNames[by], all[at][by], fmt.Sprintf("order/key-%d", random.IntN(keys)), random.IntN(100))
			}
		})
	}
	trouble.Go(func() {
		moving, err := s.first.http.StartTransition(t.Context(), api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: "rs(2,1)"})
		if err != nil {
			t.Errorf("starting a transition: %v", err)
			return
		}
		<-toKill
		if err := s.cluster.Kill("n2"); err != nil {
			t.Errorf("killing an agent: %v", err)
		}
		s.await(t, "the transition has ended", func(ctx context.Context) bool {
			now, err := s.first.http.Transition(ctx, moving.ID)
			if err == nil && now.State == api.TransitionFailed {
				t.Errorf("the transition failed: %s", now.Error)
			}
			return err == nil && now.State.Final()
		})
	})
	work.Wait()
	trouble.Wait()
	for at := range all {
		for by, f := range all[at] {
			for i := range keys {
				h.read(t.Context(), faceNames[by], f, fmt.Sprintf("order/key-%d", i))
			}
		}
	}
	switch porcupine.CheckOperationsTimeout(register.Model.ToModel(), h.operations, patience) {
	case porcupine.Illegal:
		t.Errorf("the history of %d operations is not linearizable per key", len(h.operations))
		h.explain()
	case porcupine.Unknown:
		t.Errorf("the history of %d operations could not be checked in time", len(h.operations))
	}
	t.Logf("operations %v in %v", h.counts, time.Since(h.began).Round(time.Millisecond))
	for _, face := range faceNames {
		for _, action := range []register.Action{register.Get, register.Put, register.Create, register.Swap, deletion(face)} {
			if h.counts[face+" "+action.String()] == 0 {
				t.Errorf("no %s by %s succeeded: the test shows nothing", action, face)
			}
		}
	}
}

// await asks until it holds.
func (s *suite) await(t *testing.T, what string, holds func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !holds(ctx) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Errorf("it does not hold after %v that %s", patience, what)
			return
		}
	}
}

// aGatewayDies: programs that know both gateways, or one address before both, go on when one is killed with SIGKILL, and miss nothing of
// what was acknowledged.
func (s *suite) aGatewayDies(t *testing.T) {
	balancer := balance(t, s.second.s3, s.first.s3)
	programs := [][]string{
		{"memcached_goes_on.py", s.second.memcached, s.first.memcached},
		{"redis_goes_on.py", s.second.redis, s.first.redis},
		{"s3_goes_on.py", "http://" + balancer.address},
	}
	var begun, ended sync.WaitGroup
	killed := make(chan struct{})
	for _, program := range programs {
		command := exec.CommandContext(t.Context(), python(t), append([]string{filepath.Join("testdata", program[0])}, program[1:]...)...)
		var messages strings.Builder
		command.Stderr, command.Env = &messages, s3Environment(anyKey)
		input, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(patience, func() { _ = command.Process.Kill() }) // which ends what it prints
		begun.Add(1)
		ended.Go(func() {
			lines := bufio.NewScanner(output)
			if !lines.Scan() || lines.Text() != "begun" {
				t.Errorf("%s begins with %q", program[0], lines.Text())
			}
			begun.Done()
			<-killed
			if _, err := fmt.Fprintln(input, "killed"); err != nil {
				t.Errorf("telling %s: %v", program[0], err)
			}
			last := ""
			for lines.Scan() {
				last = lines.Text()
			}
			late.Stop()
			if err := command.Wait(); err != nil || !strings.HasPrefix(last, "done") {
				t.Errorf("%s ends with %v and %q: %s", program[0], err, last, messages.String())
			}
			t.Logf("%s: %s", program[0], last)
		})
	}
	begun.Wait()
	s.killSecond()
	close(killed)
	ended.Wait()
	if n := balancer.moved.Load(); n == 0 {
		t.Error("no connection for S3 was led to the other gateway: the one that died was not in use")
	}
}

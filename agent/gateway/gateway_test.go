package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
)

// sizes around every border: none, one byte, cells, packing, one group, several.
var sizes = []int{0, 1, 63, 64, 65, 1000, 4095, 4096, 4097, 65535, 65536, 65537, 300_000, 1 << 20}

func TestObjectsOfEverySizeReadBack(t *testing.T) {
	c := newCluster(t, 9)
	for _, prefix := range []string{"", "odd/", "firm/", "tmp/"} {
		for i, size := range sizes {
			data := noise(size, uint64(i))
			key := fmt.Sprintf("%ssize-%d", prefix, size)
			object := c.put(key, data, api.PutOptions{})
			if object.Size != int64(size) {
				t.Errorf("%s: size %d", key, object.Size)
			}
			c.check(key, data)
			c.put(key+"/unknown", data, api.PutOptions{Size: -1})
			c.check(key+"/unknown", data)
		}
	}
	c.audit()
}

func TestRangesReadWhatTheWholeHas(t *testing.T) {
	c := newCluster(t, 9)
	data := noise(200_000, 1)
	c.put("odd/k", data, api.PutOptions{})
	reader, err := c.gateway.Open(t.Context(), "odd/k")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		offset := random.IntN(len(data))
		length := random.IntN(len(data) - offset + 1)
		var got bytes.Buffer
		if err := reader.WriteTo(t.Context(), &got, int64(offset), int64(length)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), data[offset:offset+length]) {
			t.Fatalf("range %d+%d differs", offset, length)
		}
	}
	if err := reader.WriteTo(t.Context(), io.Discard, 1, int64(len(data))); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("a range past the end: %v", err)
	}
}

// Every step of every ladder, up and down and across, keeps all bytes, costs what its plan says, and ends where
// reads survive the loss of any m nodes.
func TestTransitionsKeepEveryByte(t *testing.T) {
	for class, path := range map[string][]string{
		"default": {"rs(3,2)", "rs(6,2)", "rs(3,2)", "rep(3)", "rs(6,2)", "rep(3)"},
		"odd":     {"rs(5,2)", "rs(4,2)"},
		"firm":    {"rs(3,3)", "rs(6,3)", "rs(3,2)", "rs(6,3)", "rs(3,3)", "rs(3,2)"},
	} {
		t.Run(class, func(t *testing.T) {
			c := newCluster(t, 9)
			prefix := map[string]string{"default": ""}[class]
			if class != "default" {
				prefix = class + "/"
			}
			want := map[string][]byte{}
			for i, size := range sizes {
				key := fmt.Sprintf("%s%d", prefix, size)
				want[key] = noise(size, uint64(i))
				c.put(key, want[key], api.PutOptions{Class: class})
			}
			for _, to := range path {
				done := c.transition(api.TransitionRequest{Selector: api.Selector{Class: class}, To: to})
				if done.State != api.TransitionDone || done.GroupsDone == 0 {
					t.Fatalf("to %s: %+v", to, done)
				}
				expectAsPlanned(t, "to "+to, done.Measured, done.Predicted)
				for key, data := range want {
					c.check(key, data)
				}
			}
			c.audit()
			survives(t, c, want)
		})
	}
}

// survives reads everything with every pair of agents stopped in turn, then with them back.
func survives(t *testing.T, c *cluster, want map[string][]byte) {
	t.Helper()
	random := rand.New(rand.NewPCG(7, 7))
	for range 3 {
		lost := random.Perm(len(c.agents))[:2]
		for _, i := range lost {
			c.agents[i].stop()
		}
		for key, data := range want {
			c.check(key, data)
		}
		back := []block.NodeID{}
		for _, i := range lost {
			c.startAgent(c.agents[i])
			back = append(back, c.agents[i].id)
		}
		c.await("those that are back are asked again", func() bool { return !c.unreachable(want, back) })
	}
}

// unreachable reports whether a block of these objects lies on one of the nodes and cannot be asked for there.
func (c *cluster) unreachable(objects map[string][]byte, nodes []block.NodeID) bool {
	c.t.Helper()
	for key := range objects {
		for _, group := range c.stat(key).Groups {
			for _, slot := range group.Slots {
				if slot.State == "unreachable" && slices.Contains(nodes, slot.Node) {
					return true
				}
			}
		}
	}
	return false
}

func TestMergesSendNothing(t *testing.T) {
	c := newCluster(t, 9)
	c.put("k", noise(500_000, 3), api.PutOptions{})
	for _, to := range []string{"rs(3,2)", "rs(6,2)"} {
		done := c.transition(api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: to})
		if done.Measured.BlocksSent != 0 || done.Measured.BytesSent != 0 || done.Measured.BlocksWritten == 0 {
			t.Errorf("to %s: %+v", to, done.Measured)
		}
		if done.Baselines["reencode"] == 0 || done.Baselines["copy-pool"] <= done.Baselines["reencode"] {
			t.Errorf("to %s: other ways would have sent %v", to, done.Baselines)
		}
	}
}

// The papers' ways, executed through a proxy on the same objects, end in the same bytes.
func TestBaselinePlannersEndInTheSameBytes(t *testing.T) {
	for _, planner := range []string{"ers2-proxy", "ers1-proxy", "srs-proxy", "reencode"} {
		t.Run(planner, func(t *testing.T) {
			c := newCluster(t, 9)
			data := noise(300_000, 9)
			c.put("odd/k", data, api.PutOptions{})
			for _, to := range []string{"rs(5,2)", "rs(4,2)"} {
				done := c.transition(api.TransitionRequest{Selector: api.Selector{Class: "odd"}, To: to, Planner: planner})
				if done.State != api.TransitionDone || done.Measured.BlocksSent == 0 {
					t.Fatalf("to %s: %+v", to, done)
				}
				expectAsPlanned(t, "to "+to, done.Measured, done.Predicted)
				c.check("odd/k", data)
			}
			survives(t, c, map[string][]byte{"odd/k": data})
		})
	}
}

func TestUpdatesChangeExactlyTheirRange(t *testing.T) {
	c := newCluster(t, 9)
	random := rand.New(rand.NewPCG(3, 4))
	want := map[string][]byte{}
	for i, key := range []string{"small", "large", "odd/large", "odd/small", "firm/large", "tmp/large"} {
		size := 150_000
		if strings.Contains(key, "small") {
			size = 700
		}
		want[key] = noise(size, uint64(i))
		c.put(key, want[key], api.PutOptions{})
	}
	for round := range 12 {
		for key, data := range want {
			offset := random.IntN(len(data))
			length := 1 + random.IntN(len(data)-offset)
			if round%2 == 0 {
				length = min(length, 100)
			}
			patch := noise(length, uint64(round)<<8|uint64(len(key)))
			if _, err := c.gateway.Update(t.Context(), key, int64(offset), patch, nil); err != nil {
				t.Fatalf("updating %q %d+%d: %v", key, offset, length, err)
			}
			copy(data[offset:], patch)
		}
		for key, data := range want {
			c.check(key, data)
		}
		if round == 5 {
			c.transition(api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: "rs(6,2)"})
			c.transition(api.TransitionRequest{Selector: api.Selector{Class: "odd"}, To: "rs(5,2)"})
			c.transition(api.TransitionRequest{Selector: api.Selector{Class: "firm"}, To: "rs(6,3)"})
		}
	}
	c.audit()
	delete(want, "tmp/large") // rep(1) survives nothing
	survives(t, c, want)
	if _, err := c.gateway.Update(t.Context(), "large", 149_999, []byte("xx"), nil); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("an update past the end: %v", err)
	}
}

func TestConditionsOnRevisions(t *testing.T) {
	c := newCluster(t, 9)
	for _, size := range []int{100, 100_000} {
		key := fmt.Sprint("k", size)
		first := c.put(key, noise(size, 1), api.PutOptions{IfRevision: &block.Stamp{}})
		_, err := c.gateway.Put(t.Context(), key, bytes.NewReader(noise(size, 2)), api.PutOptions{Size: int64(size), IfRevision: &block.Stamp{}})
		if !errors.Is(err, api.ErrConflict) {
			t.Errorf("a put of an absent key that is there: %v", err)
		}
		second := c.put(key, noise(size, 3), api.PutOptions{IfRevision: &first.Revision})
		if _, err := c.gateway.Update(t.Context(), key, 0, []byte("x"), &first.Revision); !errors.Is(err, api.ErrConflict) {
			t.Errorf("an update of an older revision: %v", err)
		}
		if err := c.gateway.Delete(t.Context(), key, &first.Revision); !errors.Is(err, api.ErrConflict) {
			t.Errorf("a delete of an older revision: %v", err)
		}
		c.check(key, noise(size, 3))
		if err := c.gateway.Delete(t.Context(), key, &second.Revision); err != nil {
			t.Error(err)
		}
		if err := c.gateway.Delete(t.Context(), key, nil); !errors.Is(err, catalog.ErrNoObject) {
			t.Errorf("deleting an absent key: %v", err)
		}
	}
	c.audit()
}

func TestSmallObjectsShareGroups(t *testing.T) {
	c := newCluster(t, 9)
	want := map[string][]byte{}
	var workers sync.WaitGroup
	for i := range 200 {
		key := fmt.Sprintf("small/%03d", i)
		data := noise(1+i*7, uint64(i))
		want[key] = data
		workers.Go(func() { c.put(key, data, api.PutOptions{}) })
	}
	workers.Wait()
	groups := map[block.GroupID]bool{}
	for key, data := range want {
		c.check(key, data)
		stat, err := c.gateway.Stat(t.Context(), key)
		if err != nil || len(stat.Groups) != 1 || !stat.Groups[0].Packed {
			t.Fatalf("%s: %+v, %v", key, stat, err)
		}
		groups[stat.Groups[0].ID] = true
	}
	if len(groups) > 100 {
		t.Errorf("200 objects at once lie in %d groups", len(groups))
	}
	// A prefix that cuts through shared groups moves its objects out of them and leaves the others where they are.
	prefix := api.EncodeKey("small/00")
	done := c.transition(api.TransitionRequest{Selector: api.Selector{Prefix64: &prefix}, To: "rs(6,2)"})
	if done.State != api.TransitionDone || done.GroupsDone+done.ObjectsRewritten == 0 {
		t.Fatalf("%+v", done)
	}
	for key, data := range want {
		c.check(key, data)
		stat, err := c.gateway.Stat(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if scheme := map[bool]string{true: "rs(6,2)", false: "rep(3)"}[strings.HasPrefix(key, "small/00")]; stat.Scheme != scheme {
			t.Errorf("%s is under %s, want %s", key, stat.Scheme, scheme)
		}
	}
	c.audit()
	for key := range want {
		if err := c.gateway.Delete(t.Context(), key, nil); err != nil {
			t.Fatal(err)
		}
	}
	c.audit()
	for _, agent := range c.agents {
		if err := agent.store.List(t.Context(), block.KeyPrefix, func(key string, _ int64) error {
			return fmt.Errorf("%s is left on %s", key, agent.id)
		}); err != nil {
			t.Error(err)
		}
	}
}

// A page of a list names what comes next where something does, and no page is empty.
func TestListsSayWhetherMoreFollows(t *testing.T) {
	c := newCluster(t, 9)
	keys := []string{"a", "p/1", "p/2", "p/3", "p/4", "p/5", "p/6", "q"}
	for i, key := range keys {
		c.put(key, noise(10, uint64(i)), api.PutOptions{})
	}
	server := httptest.NewServer(c.gateway.Handler())
	defer server.Close()
	transport, err := client.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer transport.Close()
	for prefix, want := range map[string][]string{"": keys, "p/": keys[1:7], "q": keys[7:], "r": nil} {
		for limit := 1; limit <= len(keys)+1; limit++ {
			var seen []string
			pages, after := 0, ""
			for {
				page, err := transport.List(t.Context(), prefix, after, limit)
				if err != nil {
					t.Fatal(err)
				}
				pages++
				for _, object := range page.Objects {
					seen = append(seen, object.Key)
				}
				if page.Next == "" {
					break
				}
				if after, err = api.DecodeKey(page.Next); err != nil {
					t.Fatal(err)
				}
				if len(page.Objects) != limit || after != seen[len(seen)-1] {
					t.Fatalf("prefix %q, limit %d: a page of %d is followed by what comes after %q", prefix, limit, len(page.Objects), after)
				}
			}
			if fewest := max(1, (len(want)+limit-1)/limit); pages != fewest || !slices.Equal(seen, want) {
				t.Errorf("prefix %q, limit %d: %q on %d pages, want %q on %d", prefix, limit, seen, pages, want, fewest)
			}
		}
	}
}

func TestDamagedAndLostBlocksAreDecodedAndRebuilt(t *testing.T) {
	c := newCluster(t, 9)
	c.reads = api.RepairNever // the repair that is asked for is to do it
	data := noise(60_000, 5)
	c.put("k", data, api.PutOptions{Scheme: "rs(6,2)"})
	damage := func(role string, change func(value []byte) []byte) {
		t.Helper()
		stat, err := c.gateway.Stat(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		for _, slot := range stat.Groups[0].Slots {
			if slot.Role != role {
				continue
			}
			for _, agent := range c.agents {
				if agent.id != slot.Node {
					continue
				}
				var keys []string
				if err := agent.store.List(t.Context(), block.KeyPrefix, func(key string, _ int64) error {
					keys = append(keys, key)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				for _, key := range keys {
					agent.store.Damage(key, change)
				}
				return
			}
		}
	}
	for name, change := range map[string]func([]byte) []byte{
		"a flipped bit": func(value []byte) []byte {
			if len(value) > 100 { // not what an earlier case left
				value[len(value)-100] ^= 4
			}
			return value
		},
		"a cut block":    func(value []byte) []byte { return value[:len(value)/2] },
		"an empty block": func([]byte) []byte { return nil },
	} {
		for _, role := range []string{"data", "parity"} {
			damage(role, change)
			c.check("k", data)
			result, err := c.gateway.Repair(t.Context(), true, true)
			if err != nil || len(result.Failed) > 0 || result.SlotsRebuilt != 1 {
				t.Errorf("%s in a %s slot: repair %+v, %v", name, role, result, err)
			}
			c.check("k", data)
		}
	}
	c.audit()
	survives(t, c, map[string][]byte{"k": data})
}

func TestEmptiedStoreIsSuspectAtOnceAndRebuilt(t *testing.T) {
	c := newCluster(t, 9)
	want := map[string][]byte{}
	for i := range 10 {
		key := fmt.Sprint("k", i)
		want[key] = noise(70_000, uint64(i))
		c.put(key, want[key], api.PutOptions{Scheme: []string{"rep(3)", "rs(3,2)", "rs(6,2)"}[i%3]})
	}
	for _, agent := range c.agents[:2] {
		agent.store.Erase()
	}
	for key, data := range want {
		c.check(key, data)
	}
	result, err := c.gateway.Repair(t.Context(), true, false)
	if err != nil || len(result.Failed) > 0 || result.SlotsRebuilt == 0 {
		t.Fatalf("repair: %+v, %v", result, err)
	}
	c.audit()
	survives(t, c, want)
}

func TestTransitionsArePausedResumedCancelledAndSurviveTheGateway(t *testing.T) {
	c := newCluster(t, 9)
	data := noise(64<<10*40, 1) // forty groups
	c.put("k", data, api.PutOptions{})
	slow := int64(1 << 20)
	request := api.TransitionRequest{Selector: api.Selector{Class: "default"}, To: "rs(3,2)", BytesPerSecond: slow}
	begun, err := c.gateway.StartTransition(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	c.await("some groups are done", func() bool {
		now, err := c.gateway.Transition(t.Context(), begun.ID)
		return err == nil && now.GroupsDone > 0
	})
	paused, err := c.gateway.PauseTransition(t.Context(), begun.ID)
	if err != nil || paused.State != api.TransitionPaused || paused.GroupsDone == 0 || paused.GroupsDone == 40 {
		t.Fatalf("paused: %+v, %v", paused, err)
	}
	c.check("k", data)
	if _, err := c.gateway.ResumeTransition(t.Context(), begun.ID, &slow); err != nil {
		t.Fatal(err)
	}
	c.stopGateway() // in the middle
	c.startGateway()
	now, err := c.gateway.Transition(t.Context(), begun.ID)
	if err != nil || now.State != api.TransitionRunning {
		t.Fatalf("after a restart: %+v, %v", now, err)
	}
	unlimited := int64(0)
	if _, err := c.gateway.ResumeTransition(t.Context(), begun.ID, &unlimited); err != nil {
		t.Fatal(err)
	}
	if done := c.ended(begun.ID); done.State != api.TransitionDone || done.GroupsDone+done.GroupsSkipped != done.GroupsTotal || done.GroupsTotal != 40 {
		t.Errorf("at the end: %+v", done)
	}
	c.check("k", data)
	request.To = "rs(6,2)"
	if begun, err = c.gateway.StartTransition(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	cancelled, err := c.gateway.CancelTransition(t.Context(), begun.ID)
	if err != nil || cancelled.State != api.TransitionCancelled {
		t.Fatalf("cancelled: %+v, %v", cancelled, err)
	}
	if _, err := c.gateway.ResumeTransition(t.Context(), begun.ID, nil); !errors.Is(err, api.ErrBadRequest) {
		t.Errorf("resuming a cancelled transition: %v", err)
	}
	c.check("k", data)
	c.audit()
}

func TestRefusalsSayWhatAndWhatToDo(t *testing.T) {
	c := newCluster(t, 7) // default needs 8 nodes
	put := func(key string, options api.PutOptions) error {
		_, err := c.gateway.Put(t.Context(), key, strings.NewReader("0123456789"), options)
		return err
	}
	start := func(request api.TransitionRequest) error {
		_, err := c.gateway.StartTransition(t.Context(), request)
		return err
	}
	for _, refusal := range []struct {
		intent string
		err    error
		class  error
		words  string
	}{
		{"a ladder wider than the nodes", put("k", api.PutOptions{Size: 10}), api.ErrTooFewNodes, "add some"},
		{"an unknown class", put("k", api.PutOptions{Size: 10, Class: "none"}), api.ErrBadRequest, "the classes are"},
		{"a scheme off the ladder", put("k", api.PutOptions{Size: 10, Scheme: "rs(9,3)"}), api.ErrBadRequest, "not on the ladder"},
		{"a scheme that is none", put("k", api.PutOptions{Size: 10, Scheme: "raid5"}), api.ErrBadRequest, "raid5"},
		{"an empty key", put("", api.PutOptions{Size: 10}), api.ErrBadRequest, "1 to 4096"},
		{"a key too long", put(strings.Repeat("x", 4097), api.PutOptions{Size: 10}), api.ErrBadRequest, "4097"},
		{"a body shorter than announced", put("odd/k", api.PutOptions{Size: 11}), api.ErrBadRequest, "announced"},
		{"a long body shorter than announced", put("odd/k", api.PutOptions{Size: 5000}), api.ErrBadRequest, "announced"},
		{"a transition of nothing", start(api.TransitionRequest{To: "rep(3)"}), api.ErrBadRequest, "exactly one"},
		{"a transition to a scheme off the ladder", start(api.TransitionRequest{Selector: api.Selector{Class: "odd"}, To: "rs(9,2)"}), api.ErrBadRequest, "ladder"},
		{"an unknown planner", start(api.TransitionRequest{Selector: api.Selector{Class: "odd"}, To: "rs(5,2)", Planner: "magic"}), api.ErrBadRequest, "planners are"},
		{"an absent object", start(api.TransitionRequest{Selector: api.Selector{Key64: api.EncodeKey("no")}, To: "rs(5,2)"}), catalog.ErrNoObject, "no"},
	} {
		if !errors.Is(refusal.err, refusal.class) || !strings.Contains(fmt.Sprint(refusal.err), refusal.words) {
			t.Errorf("%s: %v", refusal.intent, refusal.err)
		}
	}
	c.audit()
}

// A body that breaks off, however its reader says so, stores nothing: neither under an announced length nor without one.
func TestBrokenBodyStoresNothing(t *testing.T) {
	c := newCluster(t, 9)
	for _, broken := range []error{io.ErrUnexpectedEOF, fmt.Errorf("connection lost: %w", io.EOF), errors.New("reset")} {
		for _, length := range []int{0, 100, 5000, 64 << 10, 200_000} {
			for _, announced := range []int64{-1, int64(length) + 1} {
				body := io.MultiReader(bytes.NewReader(noise(length, 1)), iotest.ErrReader(broken))
				if _, err := c.gateway.Put(t.Context(), "k", body, api.PutOptions{Size: announced}); err == nil {
					t.Errorf("%d bytes of %d, then %v: stored", length, announced, broken)
				}
				if _, err := c.gateway.Open(t.Context(), "k"); !errors.Is(err, catalog.ErrNoObject) {
					t.Errorf("%d bytes of %d, then %v: %v", length, announced, broken, err)
				}
			}
		}
	}
	c.audit()
}

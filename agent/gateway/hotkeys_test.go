package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
)

// warm is a class of which keys that are read four times lie under rep(3), and others under rs(3,2).
var warm = api.ClassSpec{
	Name: "warm", Ladder: "rep(3),rs(3,2)", Default: "rs(3,2)", Prefixes: []string{"warm/"}, PackBelow: "4KiB", PackDelay: "0s",
	GroupBytes: "64KiB", HalfLife: "1h", Dwell: "0s", HotKeys: &api.HotKeysSpec{Scheme: "rep(3)", Reads: 4},
}

// heating has a gateway move hot keys at once, and compact nothing.
func heating(o *gateway.Options) {
	o.SweepEvery, o.CompactEvery, o.HotKeysGather = 20*time.Millisecond, -1, time.Millisecond
}

// coolingToo has it take back at once what has cooled.
func coolingToo(o *gateway.Options) {
	heating(o)
	o.CompactEvery, o.CompactSettled = 20*time.Millisecond, time.Hour
}

// newWarmCluster is a cluster with a class of hot keys and a clock that stands still.
func newWarmCluster(t *testing.T, changes ...func(*gateway.Options)) (*cluster, *handClock) {
	t.Helper()
	c := newCluster(t, 9)
	clock := newHandClock()
	c.restart(clock, changes...)
	c.answering()
	c.putClass(c.gateway, warm)
	return c, clock
}

// lies waits until a key lies under a scheme.
func (c *cluster) lies(key, scheme string) {
	c.t.Helper()
	c.until(fmt.Sprintf("%s lies under %s", key, scheme), func() bool { return c.stat(key).Scheme == scheme })
}

// looks waits until so many further looks at how full groups are have ended.
func (c *cluster) looks(count int64) {
	c.t.Helper()
	pass := func() int64 {
		compaction, err := c.gateway.Compaction(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		return compaction.Pass
	}
	before := pass()
	c.until("the compaction has looked again", func() bool { return pass() > before+count })
}

func (c *cluster) moved(to string) (objects, bytes float64) {
	c.t.Helper()
	labels := map[string]string{"to": to}
	return c.figure(c.gateway, "restripe_hot_keys_moved_objects_total", labels),
		c.figure(c.gateway, "restripe_hot_keys_moved_bytes_total", labels)
}

// A key that is read much is moved to where its class has such keys, and put there; others, and those of other classes, stay.
func TestHotKeysLieTogether(t *testing.T) {
	t.Parallel()
	c, _ := newWarmCluster(t, heating)
	c.putClass(c.gateway, api.ClassSpec{
		Name: "plain", Ladder: "rep(3),rs(3,2)", Default: "rs(3,2)", Prefixes: []string{"plain/"}, PackBelow: "4KiB",
		GroupBytes: "64KiB", HalfLife: "1h",
	})
	was := c.put("warm/hot", noise(700, 1), api.PutOptions{})
	c.put("warm/other", noise(800, 2), api.PutOptions{})
	c.put("plain/hot", noise(900, 3), api.PutOptions{})
	c.use(c.gateway, "warm/other", 3)
	c.use(c.gateway, "plain/hot", 20)
	c.use(c.gateway, "warm/hot", 3)
	if is := c.stat("warm/hot").Scheme; is != "rs(3,2)" {
		t.Errorf("after three reads it lies under %s", is)
	}
	c.use(c.gateway, "warm/hot", 1)
	c.lies("warm/hot", "rep(3)")
	c.check("warm/hot", noise(700, 1))
	if is := c.stat("warm/hot"); is.Revision != was.Revision || is.Class != "warm" {
		t.Errorf("it is revision %s of class %s, and was %s", is.Revision, is.Class, was.Revision)
	}
	if objects, bytes := c.moved("hot"); objects != 1 || bytes != 700 {
		t.Errorf("%.0f objects of %.0f bytes were moved, want one of 700", objects, bytes)
	}
	for _, key := range []string{"warm/other", "plain/hot"} {
		if is := c.stat(key).Scheme; is != "rs(3,2)" {
			t.Errorf("%s lies under %s", key, is)
		}
	}

	put := c.put("warm/hot", noise(600, 4), api.PutOptions{})
	if is := c.stat("warm/hot").Scheme; put.Scheme != "rep(3)" || is != "rep(3)" {
		t.Errorf("put again it lies under %s, and the put says %s", is, put.Scheme)
	}
	put = c.put("warm/hot", noise(600, 5), api.PutOptions{Scheme: "rs(3,2)"})
	if put.Scheme != "rs(3,2)" {
		t.Errorf("put under a scheme of its own, the put says %s", put.Scheme)
	}
	c.put("warm/other", noise(700, 6), api.PutOptions{})
	if is := c.stat("warm/other").Scheme; is != "rs(3,2)" {
		t.Errorf("a key that is not hot was put under %s", is)
	}
	c.check("warm/hot", noise(600, 5))
	c.with(func(*gateway.Options) {})
	c.audit()
}

// What has cooled goes back to where it was put, and not before it is read half as often; what was put there on purpose stays.
func TestCooledKeysGoBack(t *testing.T) {
	t.Parallel()
	c, clock := newWarmCluster(t, coolingToo)
	const keys = 20
	name := func(i int) string { return fmt.Sprintf("warm/%02d", i) }
	revisions := map[string]string{}
	for i := range keys {
		revisions[name(i)] = c.put(name(i), noise(500+i, uint64(i)), api.PutOptions{}).Revision.String()
		c.use(c.gateway, name(i), 8)
		c.lies(name(i), "rep(3)") // in a group of its own
	}
	c.put("warm/asked", noise(300, 99), api.PutOptions{Scheme: "rep(3)"})
	clock.move(50 * time.Minute) // of each 8 reads 4.5 are left
	c.looks(3)
	for i := range keys {
		if is := c.stat(name(i)).Scheme; is != "rep(3)" {
			t.Errorf("%s, which is hot, lies under %s", name(i), is)
		}
	}
	clock.move(time.Hour)
	c.use(c.gateway, name(3), 2)
	clock.move(30 * time.Minute) // 1.6 are left, and 3 of what was read again; its put counts in a group as well
	for i := range keys {
		if i != 3 {
			c.lies(name(i), "rs(3,2)")
		}
	}
	c.looks(3)
	if is := c.stat(name(3)).Scheme; is != "rep(3)" {
		t.Errorf("a key that was read again lies under %s", is)
	}
	clock.move(20 * time.Hour)
	c.lies(name(3), "rs(3,2)")
	c.looks(3)
	if is := c.stat("warm/asked").Scheme; is != "rep(3)" {
		t.Errorf("what was put under rep(3) on purpose lies under %s", is)
	}
	objects, _ := c.moved("back")
	if hot, _ := c.moved("hot"); objects < keys || hot != objects {
		t.Errorf("%.0f objects were moved to the hot keys, and %.0f back", hot, objects)
	}
	for i := range keys {
		c.check(name(i), noise(500+i, uint64(i)))
		if is := c.stat(name(i)).Revision.String(); is != revisions[name(i)] {
			t.Errorf("%s is revision %s, and was %s", name(i), is, revisions[name(i)])
		}
	}
	c.with(func(*gateway.Options) {})
	c.audit()
}

// Of a group of hot keys those leave that have cooled, and those that are read yet stay.
func TestCooledKeysLeaveHotOnes(t *testing.T) {
	t.Parallel()
	c, clock := newWarmCluster(t, coolingToo)
	batch := warm
	batch.PackMode, batch.PackDelay = api.PackBatch, "1m"
	c.putClass(c.gateway, batch)
	const keys, size = 100, 656 // the last fills the group
	name := func(i int) string { return fmt.Sprintf("warm/%02d", i) }
	var puts sync.WaitGroup
	for i := range keys {
		for range 8 {
			c.gateway.Popularity.Read("warm", name(i))
		}
		puts.Go(func() { c.put(name(i), noise(size, uint64(i)), api.PutOptions{}) })
	}
	puts.Wait()
	group := c.stat(name(0)).Groups[0].ID
	for i := range keys {
		if stat := c.stat(name(i)); stat.Scheme != "rep(3)" || stat.Groups[0].ID != group {
			t.Fatalf("%s was put under %s in group %s, others in %s", name(i), stat.Scheme, stat.Groups[0].ID, group)
		}
	}
	clock.move(30 * time.Minute)
	for i := range 4 {
		c.use(c.gateway, name(i), 8)
	}
	clock.move(29 * time.Minute)
	c.looks(3)
	if is := c.stat(name(50)).Scheme; is != "rep(3)" {
		t.Errorf("before the gateway has counted for a half-life a key lies under %s", is)
	}
	clock.move(90 * time.Minute)
	for i := 4; i < keys; i++ {
		c.lies(name(i), "rs(3,2)")
	}
	c.looks(3)
	for i := range keys {
		if is := c.stat(name(i)).Scheme; i < 4 && is != "rep(3)" {
			t.Errorf("%s, which is hot, lies under %s", name(i), is)
		}
		c.check(name(i), noise(size, uint64(i)))
	}
	c.with(func(*gateway.Options) {})
	c.audit()
}

// A gateway that starts anew has counted no key, but knows how much groups are used: what is hot stays, and goes when it has cooled.
func TestHotKeysOutlastAGateway(t *testing.T) {
	t.Parallel()
	c, clock := newWarmCluster(t, coolingToo)
	c.put("warm/hot", noise(700, 1), api.PutOptions{})
	c.use(c.gateway, "warm/hot", 40)
	c.lies("warm/hot", "rep(3)")
	c.restart(clock, coolingToo)
	c.looks(3)
	if is := c.stat("warm/hot").Scheme; is != "rep(3)" {
		t.Errorf("after a restart it lies under %s", is)
	}
	c.put("warm/more", noise(700, 2), api.PutOptions{})
	c.use(c.gateway, "warm/more", 4)
	c.lies("warm/more", "rep(3)")
	clock.move(24 * time.Hour)
	c.lies("warm/hot", "rs(3,2)")
	c.lies("warm/more", "rs(3,2)")
	c.check("warm/hot", noise(700, 1))
	c.check("warm/more", noise(700, 2))
}

// A transition by heat leaves hot keys where they are, and takes them when they have cooled.
func TestTransitionsByHeatLeaveHotKeys(t *testing.T) {
	t.Parallel()
	c, clock := newWarmCluster(t, heating)
	c.put("warm/hot", noise(700, 1), api.PutOptions{})
	c.use(c.gateway, "warm/hot", 8)
	c.lies("warm/hot", "rep(3)")
	below := 1e9
	colder := api.TransitionRequest{Selector: api.Selector{Class: "warm"}, From: "rep(3)", To: "rs(3,2)", HeatBelow: &below}
	settled := func() int64 {
		_, settled := groupsAt(classOf(t, c.walked(c.gateway, clock), "warm").Rungs[0], 0, 1<<20)
		return settled
	}
	if n := settled(); n != 0 {
		t.Errorf("%d groups of hot keys count as settled", n)
	}
	c.transition(colder)
	if is := c.stat("warm/hot").Scheme; is != "rep(3)" {
		t.Errorf("a transition by heat took it to %s", is)
	}
	clock.move(3 * time.Hour)
	if n := settled(); n != 1 {
		t.Errorf("%d groups of keys that have cooled count as settled, want 1", n)
	}
	c.transition(colder)
	if is := c.stat("warm/hot").Scheme; is != "rs(3,2)" {
		t.Errorf("a transition by heat left it under %s when it had cooled", is)
	}
	c.check("warm/hot", noise(700, 1))
}

// What is written over, changed in place and deleted while it is moved to and fro is as its writer left it.
func TestHotKeysUnderClients(t *testing.T) {
	t.Parallel()
	c, clock := newWarmCluster(t, coolingToo)
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
	defer stop()
	var clients sync.WaitGroup
	for client := range 4 {
		clients.Go(func() {
			draw := rand.New(rand.NewPCG(uint64(client), 5))
			want := map[string][]byte{}
			for i := 0; ctx.Err() == nil; i++ {
				key := fmt.Sprintf("warm/%d/%d", client, draw.IntN(8))
				switch data := want[key]; {
				case data != nil && draw.IntN(20) == 0:
					if err := c.gateway.Delete(t.Context(), key, nil); err != nil {
						t.Errorf("deleting %s: %v", key, err)
					}
					delete(want, key)
				case len(data) > 30 && draw.IntN(10) == 0:
					changed := append([]byte(nil), data...)
					copy(changed[10:], "changed in place")
					if _, err := c.gateway.Update(t.Context(), key, 10, []byte("changed in place"), nil); err != nil {
						t.Errorf("changing %s: %v", key, err)
					}
					want[key] = changed
				case data == nil || draw.IntN(4) == 0:
					want[key] = noise(1+draw.IntN(2000), uint64(client)<<16+uint64(i))
					c.put(key, want[key], api.PutOptions{})
				}
				if draw.IntN(50) == 0 {
					clock.move(time.Hour)
				}
				if data := want[key]; data != nil {
					if got, err := c.read(key); err != nil || !bytes.Equal(got, data) {
						t.Errorf("%s reads back %d bytes, %v; %d were written", key, len(got), err, len(data))
					}
				}
			}
			for key, data := range want {
				c.check(key, data)
			}
		})
	}
	clients.Wait()
	hot, _ := c.moved("hot")
	back, _ := c.moved("back")
	if hot == 0 {
		t.Error("nothing was moved meanwhile")
	}
	t.Logf("%.0f objects were moved to the hot keys, and %.0f back", hot, back)
	c.with(func(*gateway.Options) {})
	c.audit()
}

// What makes no sense of hot keys is refused, by class files and by the interface alike, and what does is told again.
func TestHotKeysAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		keys api.HotKeysSpec
		says string // empty: nothing is wrong
	}{
		{api.HotKeysSpec{Scheme: "rep(3)", Reads: 1}, ""},
		{api.HotKeysSpec{Scheme: "rs(3,2)", Reads: 5}, ""},
		{api.HotKeysSpec{Scheme: "rep(3)"}, "hotKeys: reads is 0; give how many reads within a half-life make a key a hot one"},
		{api.HotKeysSpec{Scheme: "rep(3)", Reads: -1}, "hotKeys: reads is -1; give"},
		{api.HotKeysSpec{Scheme: "rep(2)", Reads: 5}, "hotKeys: scheme rep(2) is not on the ladder rep(3),rs(3,2),rs(6,2); choose"},
		{api.HotKeysSpec{Scheme: "rs(6,2)", Reads: 5}, "hotKeys: scheme rs(6,2) is colder than the default rs(3,2)"},
		{api.HotKeysSpec{Scheme: "hot", Reads: 5}, "hotKeys: scheme: "},
	} {
		spec := api.ClassSpec{Name: "warm", Ladder: "rep(3),rs(3,2),rs(6,2)", Default: "rs(3,2)", HotKeys: &c.keys}
		class, err := spec.Parse()
		switch {
		case c.says != "":
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v: %v, want %q", c.keys, err, c.says)
			}
		case err != nil:
			t.Errorf("%+v: %v", c.keys, err)
		case *class.Spec().HotKeys != c.keys || *class.Info(api.ClassFromFile).HotKeys != c.keys:
			t.Errorf("%+v is told as %+v", c.keys, class.Spec().HotKeys)
		}
	}
}

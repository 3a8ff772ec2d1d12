package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/memcache"
)

// What clients of memcached do to values of others leaves what they know nothing of as it is.
func TestMemcacheKeepsWhatOthersStored(t *testing.T) {
	c := newCluster(t, 9)
	m := dialMemcache(t, c.serveMemcache())
	c.put("page", []byte("41"), api.PutOptions{Class: "odd", Metadata: map[string]string{"kind": "number", "flags": "7"}})
	for _, one := range []struct{ send, reply string }{
		{"get page\r\n", "VALUE page 7 2\r\n41\r\nEND\r\n"},
		{"incr page 1\r\n", "42\r\n"},
		{"append page 0 0 1\r\n0\r\n", "STORED\r\n"},
		{"prepend page 0 0 1\r\n1\r\n", "STORED\r\n"},
		{"touch page 1000\r\n", "TOUCHED\r\n"},
		{"gat 0 page\r\n", "VALUE page 7 4\r\n1420\r\nEND\r\n"},
		{"md page I\r\n", "HD\r\n"},
		{"mg page R10 f\r\n", "HD f7 X W\r\n"},
		{"ma page v\r\n", "VA 4\r\n1421\r\n"},
	} {
		m.want(one.send, one.reply)
		is := c.stat("page")
		if is.Class != "odd" || is.Metadata["kind"] != "number" || is.Metadata["flags"] != "7" {
			t.Errorf("after %q it is of class %s, with metadata %v", one.send, is.Class, is.Metadata)
		}
	}
	m.want("replace page 0 0 3\r\nnew\r\n", "STORED\r\n")
	if is := c.stat("page"); is.Class != "odd" || len(is.Metadata) > 0 {
		t.Errorf("one that was put in its place is of class %s, with metadata %v", is.Class, is.Metadata)
	}
	m.want("set page 9 100 3\r\nnew\r\n", "STORED\r\n")
	if is := c.stat("page"); is.Class != "default" || is.Metadata["flags"] != "9" || len(is.Metadata) != 1 ||
		time.Until(is.Expires) > 100*time.Second || time.Until(is.Expires) < 10*time.Second {
		t.Errorf("a new one is of class %s, with metadata %v, until %v", is.Class, is.Metadata, is.Expires)
	}
	c.check("page", []byte("new"))
	c.audit()
}

func TestMemcacheValuesExpire(t *testing.T) {
	c := newCluster(t, 9)
	m := dialMemcache(t, c.serveMemcache())
	m.want("set brief 0 1 1\r\n1\r\nset long 0 1 1\r\n1\r\ntouch long 1000\r\n", "STORED\r\nSTORED\r\nTOUCHED\r\n")
	c.await("a value is gone after its second", func() bool { return m.ask("get brief\r\n") == "END\r\n" })
	m.want("get long\r\n", "VALUE long 0 1\r\n1\r\nEND\r\n")
	m.want("add brief 0 0 1\r\n2\r\nget brief\r\n", "STORED\r\nVALUE brief 0 1\r\n2\r\nEND\r\n")
}

// Of many that write a value over the same version, one succeeds.
func TestMemcacheChangesDoNotGetLost(t *testing.T) {
	const clients, rounds = 8, 20
	c := newCluster(t, 9)
	address := c.serveMemcache()
	first := dialMemcache(t, address)
	first.want("set n 3 0 1\r\n0\r\nset list 0 0 0\r\n\r\nset claim 0 0 1\r\n-\r\n", "STORED\r\nSTORED\r\nSTORED\r\n")
	claimed := strings.Fields(first.ask("gets claim\r\n"))[4]
	var work sync.WaitGroup
	var mutex sync.Mutex
	won := 0
	for client := range clients {
		m := dialMemcache(t, address)
		work.Go(func() {
			if m.ask(fmt.Sprintf("cas claim 0 0 1 %s\r\n%d\r\n", claimed, client)) == "STORED\r\n" {
				mutex.Lock()
				won++
				mutex.Unlock()
			}
			for range rounds {
				if reply := m.ask("incr n 1\r\n"); strings.Contains(reply, "ERROR") {
					t.Error(reply)
				}
			}
			m.want("append list 0 0 1\r\nx\r\n", "STORED\r\n")
		})
	}
	work.Wait()
	if won != 1 {
		t.Errorf("%d clients have replaced one version", won)
	}
	first.want("get n\r\n", fmt.Sprintf("VALUE n 3 3\r\n%d\r\nEND\r\n", clients*rounds))
	first.want("get list\r\n", fmt.Sprintf("VALUE list 0 %d\r\n%s\r\nEND\r\n", clients, strings.Repeat("x", clients)))
	c.audit()
}

// Numbers of versions grow, for whatever changes the value.
func TestMemcacheVersionsGrow(t *testing.T) {
	c := newCluster(t, 9)
	m := dialMemcache(t, c.serveMemcache())
	last := uint64(0)
	for _, change := range []string{
		"set v 0 0 1\r\n1\r\n", "incr v 1\r\n", "append v 0 0 1\r\n1\r\n", "touch v 100\r\n", "gat 0 v\r\n",
		"ms v 1 q\r\n1\r\n", "md v I q\r\nmg v k\r\n",
		"ma v q\r\n", "delete v\r\nset v 0 0 1\r\n1\r\n", "replace v 0 0 1\r\n1\r\n",
	} {
		m.ask(change)
		words := strings.Fields(m.ask("gets v\r\n"))
		now, err := strconv.ParseUint(words[4], 10, 64)
		if err != nil || now <= last {
			t.Errorf("after %q the version is %d, %v, was %d", change, now, err, last)
		}
		if told := m.ask("mg v c\r\n"); strings.Fields(told)[1] != fmt.Sprintf("c%d", now) {
			t.Errorf("gets says %d, mg %s", now, told)
		}
		last = now
	}
	if told := m.ask(fmt.Sprintf("ms v 1 C%d c\r\n1\r\n", last)); !strings.HasPrefix(told, "HD c") || told == fmt.Sprintf("HD c%d\r\n", last) {
		t.Errorf("the version that is stored over %d is said to be %q", last, told)
	}
}

func TestMemcacheLargeValues(t *testing.T) {
	c := newCluster(t, 9)
	const most = 1 << 20
	m := dialMemcache(t, c.serveMemcache(func(o *memcache.Options) { o.MaxItemBytes = most }))
	for i, size := range []int{0, 1, 4095, 4096, 5000, 16 << 10, 64 << 10, 64<<10 + 1, 300_000, most} {
		data := noise(size, uint64(i))
		m.want(fmt.Sprintf("set big 0 0 %d\r\n%s\r\n", size, data), "STORED\r\n")
		m.want("get big\r\n", fmt.Sprintf("VALUE big 0 %d\r\n%s\r\nEND\r\n", size, data))
		m.want("mg big v s\r\n", fmt.Sprintf("VA %d s%d\r\n%s\r\n", size, size, data))
	}
	c.check("big", noise(most, 9))
	over := string(noise(most+1, 1))
	const refused = "SERVER_ERROR object too large for cache\r\n"
	for _, command := range []string{"set other 0 0", "add other 0 0", "append big 0 0", "ms other"} {
		m.want(fmt.Sprintf("%s %d\r\n%s\r\nget other\r\n", command, most+1, over), refused+"END\r\n")
	}
	m.want(fmt.Sprintf("set other 0 0 %d noreply\r\n%s\r\nget other\r\n", most+1, over), "END\r\n")
	m.want("append big 0 0 1\r\n1\r\n", refused)
	m.want("prepend big 0 0 1\r\n1\r\nmg big s\r\n", refused+fmt.Sprintf("HD s%d\r\n", most))
	c.put("tall", noise(9<<20, 1), api.PutOptions{})
	if reply := m.ask("get tall\r\n"); !strings.HasPrefix(reply, "CLIENT_ERROR bad request: object \"tall\" has 9437184 bytes") {
		t.Errorf("a value that is too large for the store: %.200q", reply)
	}
	c.audit()
}

// A reply of several values ends with an error where one cannot be read, and the next command has its own reply.
func TestMemcacheSaysWhatCannotBeRead(t *testing.T) {
	c := newCluster(t, 9)
	m := dialMemcache(t, c.serveMemcache())
	m.want("set a 0 0 1\r\n1\r\nset tmp/b 0 0 4\r\nlost\r\n", "STORED\r\nSTORED\r\n")
	c.lose("tmp/b", 0)
	for _, command := range []string{"get a tmp/b a\r\n", "gat 0 a tmp/b a\r\n"} {
		reply := m.ask(command + "get a\r\n")
		if !strings.HasPrefix(reply, "VALUE a 0 1\r\n1\r\nSERVER_ERROR ") || !strings.HasSuffix(reply, "\r\nVALUE a 0 1\r\n1\r\nEND\r\n") ||
			strings.Count(reply, "\n") != 6 {
			t.Errorf("%q is answered by %q", command, reply)
		}
	}
	for _, command := range []string{"get tmp/b\r\n", "mg tmp/b v\r\n", "incr tmp/b 1\r\n", "append tmp/b 0 0 1\r\n1\r\n", "ma tmp/b\r\n"} {
		if reply := m.ask(command); !strings.HasPrefix(reply, "SERVER_ERROR ") || strings.Count(reply, "\n") != 1 {
			t.Errorf("%q is answered by %q", command, reply)
		}
	}
}

// Commands on one key keep their order however they come together, and replies that of the commands.
func TestMemcacheKeepsOrder(t *testing.T) {
	c := newCluster(t, 9)
	m := dialMemcache(t, c.serveMemcache())
	var script, replies strings.Builder
	counts := map[int]int{}
	for i := range 600 {
		key := i * 7 % 5
		switch i % 4 {
		case 0:
			fmt.Fprintf(&script, "set o%d 0 0 3 noreply\r\n%d\r\n", key, 100+i)
			counts[key] = 100 + i
		case 1:
			fmt.Fprintf(&script, "get o%d none o%d\r\n", key, key)
			if value, has := counts[key]; has {
				fmt.Fprintf(&replies, "VALUE o%d 0 3\r\n%d\r\nVALUE o%d 0 3\r\n%d\r\nEND\r\n", key, value, key, value)
			} else {
				replies.WriteString("END\r\n")
			}
		case 2:
			fmt.Fprintf(&script, "mg o%d v q O%d\r\n", key, i)
			if value, has := counts[key]; has {
				fmt.Fprintf(&replies, "VA 3 O%d\r\n%d\r\n", i, value)
			}
		case 3:
			fmt.Fprintf(&script, "incr o%d 1\r\nnonsense\r\n", key)
			if _, has := counts[key]; has {
				counts[key]++
				fmt.Fprintf(&replies, "%d\r\n", counts[key])
			} else {
				replies.WriteString("NOT_FOUND\r\n")
			}
			replies.WriteString("ERROR\r\n")
		}
	}
	m.want(script.String(), replies.String())
	c.audit()
}

func TestMemcacheFlush(t *testing.T) {
	c := newCluster(t, 9)
	m := dialMemcache(t, c.serveMemcache(func(o *memcache.Options) { o.AllowFlush = true }))
	var script bytes.Buffer
	for i := range 300 {
		fmt.Fprintf(&script, "set f%d 0 0 1 noreply\r\n1\r\n", i)
	}
	m.want(script.String()+"get f0\r\nflush_all\r\nget f0 f1 f299\r\nset f1 0 0 1\r\n2\r\nget f1\r\n",
		"VALUE f0 0 1\r\n1\r\nEND\r\nOK\r\nEND\r\nSTORED\r\nVALUE f1 0 1\r\n2\r\nEND\r\n")
	m.want("flush_all 10\r\n", "SERVER_ERROR flush_all with a delay is not supported; send it when it is due\r\n")
	m.want("flush_all x\r\n", "CLIENT_ERROR invalid exptime argument\r\n")
	m.want("flush_all 0 noreply\r\nget f1\r\n", "END\r\n")
	c.audit()
}

func TestMemcacheStats(t *testing.T) {
	c := newCluster(t, 9)
	m := dialMemcache(t, c.serveMemcache())
	m.ask("set a 0 0 1\r\n1\r\nget a\r\nget b c\r\nincr a 1\r\ndelete b\r\ntouch a 0\r\n")
	stats := m.ask("stats\r\n")
	for _, line := range []string{
		"cmd_get 3", "cmd_set 1", "get_hits 1", "get_misses 2", "incr_hits 1", "delete_misses 1", "touch_hits 1", "curr_connections 1",
		"version " + memcache.Version,
	} {
		if !strings.Contains(stats, "STAT "+line+"\r\n") {
			t.Errorf("there is no %q in %q", line, stats)
		}
	}
	c.await("the value is counted", func() bool { return strings.Contains(m.ask("stats\r\n"), "STAT curr_items 1\r\n") })
	m.want("stats items\r\nstats slabs\r\nstats reset\r\n", "END\r\nEND\r\nRESET\r\n")
	if stats := m.ask("stats\r\n"); !strings.Contains(stats, "STAT cmd_get 0\r\n") {
		t.Errorf("after a reset it says %q", stats)
	}
	if settings := m.ask("stats settings\r\n"); !strings.Contains(settings, "STAT item_size_max 8388608\r\n") ||
		!strings.Contains(settings, "STAT flush_enabled no\r\n") {
		t.Errorf("settings: %q", settings)
	}
	m.want("version\r\n", "VERSION "+memcache.Version+"\r\n")
}

// Who leaves in the middle of a command leaves nothing behind, and what was sent before is done.
func TestMemcacheClientsThatLeave(t *testing.T) {
	c := newCluster(t, 9)
	address := c.serveMemcache()
	for i, end := range []string{
		"quit\r\n", "", "set half 0 0 10\r\nonly", "set half 0 0 1\r\n1", "get ha", "ms half 100000000\r\n", "\x80\x00",
	} {
		m := dialMemcache(t, address)
		m.send(fmt.Sprintf("set before%d 0 0 1 noreply\r\n1\r\nget none\r\n%s", i, end))
		if err := m.conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if reply, err := io.ReadAll(m.conn); err != nil || string(reply) != "END\r\n" && !strings.HasPrefix(end, "ms") {
			t.Errorf("before it left with %q it was told %q, %v", end, reply, err)
		}
		c.check(fmt.Sprintf("before%d", i), []byte("1"))
	}
	if _, err := c.gateway.Open(context.Background(), "half"); err == nil {
		t.Error("half a value was stored")
	}
	m := dialMemcache(t, address)
	m.send("get " + strings.Repeat("k ", 1<<20))
	if reply, err := io.ReadAll(m.conn); string(reply) != "CLIENT_ERROR line too long\r\n" {
		t.Logf("the connection ended with %v", err) // what was sent and not read may break it before the reply is read
		if err == nil {
			t.Errorf("a line without an end is answered by %.100q", reply)
		}
	}
	var keys, values strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&keys, " key-number-%d", i)
	}
	m = dialMemcache(t, address)
	m.want("set key-number-19999 0 0 1\r\n1\r\n", "STORED\r\n")
	values.WriteString("VALUE key-number-19999 0 1\r\n1\r\nEND\r\n")
	m.want("get"+keys.String()+"\r\n", values.String())
	m.want("gets"+keys.String()+" "+strings.Repeat("k", 251)+"\r\n", "CLIENT_ERROR bad command line format\r\n")
	dialMemcache(t, address).want("GET\r\n", "ERROR\r\n")
	m = dialMemcache(t, address)
	m.send("GET / HTTP/1.1\r\nset from 0 0 1\r\n1\r\n")
	if reply, err := io.ReadAll(m.conn); len(reply) > 0 {
		t.Errorf("a browser is told %q, %v", reply, err)
	}
}

// What newer releases of memcached have, and the one that others are compared with has not.
func TestMemcacheNewerFlags(t *testing.T) {
	c := newCluster(t, 9)
	m := dialMemcache(t, c.serveMemcache())
	m.want("ms a 3 MA N100 s\r\nabc\r\nms a 3 Ma s\r\ndef\r\nmg a v\r\n", "HD s3\r\nHD s6\r\nVA 6\r\nabcdef\r\n")
	m.want("ms b 1 F7 S1\r\n1\r\n", "CLIENT_ERROR invalid flag 'S'\r\n")
	m.want("ms b 1 F7\r\n1\r\nmd b x\r\nmg b v f\r\n", "HD\r\nHD\r\nVA 0 f0\r\n\r\n")
	m.want("ms b 1 F7\r\n1\r\nmd b x I\r\nmg b v f\r\n", "HD\r\nHD\r\nVA 0 f0 X W\r\n\r\n")
	version := strings.Fields(m.ask("mg a c\r\n"))[1][1:]
	m.want("mg a v s C"+version+"\r\nmg a v s C1\r\n", "HD s6\r\nVA 6 s6\r\nabcdef\r\n")
	const refused = "CLIENT_ERROR flag E is not supported: versions are numbered by the gateway\r\n"
	m.want("ms a 1 E5\r\n1\r\nmd a E5\r\nma a E5\r\n", refused+refused+refused)
	debug := m.ask("me a\r\nme YQ== b\r\nme none b\r\n")
	told := regexp.MustCompile(`^ME a exp=-\d+ cas=(\d+) size=6 class=default\r\nME YQ== exp=-\d+ cas=(\d+) size=6 class=default\r\nEN\r\n$`)
	if found := told.FindStringSubmatch(debug); found == nil || found[1] != version || found[2] != version {
		t.Errorf("me says %q, of version %s", debug, version)
	}
}

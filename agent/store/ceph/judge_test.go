package ceph

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What monitors say, cut to what is read.
const (
	dumped = `{"epoch":31,"pools":[
	{"pool":1,"pool_name":"host","type":1,"size":1,"crush_rule":1,"pg_num":4,"quota_max_bytes":0,"application_metadata":{"restripe":{}}},
	{"pool":2,"pool_name":"ssd","type":1,"size":1,"crush_rule":2,"pg_num":4,"quota_max_bytes":1000,"application_metadata":{"restripe":{"node":"node1"}}},
	{"pool":3,"pool_name":"osd","type":1,"size":1,"crush_rule":3,"pg_num":4,"application_metadata":{"restripe":{}}},
	{"pool":4,"pool_name":"rack","type":1,"size":1,"crush_rule":4,"pg_num":4,"application_metadata":{"restripe":{}}},
	{"pool":5,"pool_name":"two","type":1,"size":1,"crush_rule":5,"pg_num":4,"application_metadata":{"restripe":{}}},
	{"pool":6,"pool_name":"root","type":1,"size":1,"crush_rule":0,"pg_num":4,"application_metadata":{"restripe":{}}},
	{"pool":7,"pool_name":"copies","type":1,"size":3,"crush_rule":1,"pg_num":4,"application_metadata":{"restripe":{}}},
	{"pool":8,"pool_name":"coded","type":3,"size":6,"crush_rule":1,"pg_num":4,"application_metadata":{"restripe":{}}},
	{"pool":9,"pool_name":"images","type":1,"size":1,"crush_rule":1,"pg_num":4,"application_metadata":{"rbd":{}}},
	{"pool":10,"pool_name":"nobody","type":1,"size":1,"crush_rule":1,"pg_num":4,"application_metadata":{}},
	{"pool":11,"pool_name":"ruleless","type":1,"size":1,"crush_rule":9,"pg_num":4,"application_metadata":{"restripe":{}}}],
	"osds":[{"osd":0,"up":1,"in":1},{"osd":1,"up":0,"in":1},{"osd":2,"up":1,"in":0},{"osd":3,"up":1,"in":1}]}`

	crushDumped = `{"devices":[{"id":0,"name":"osd.0"},{"id":1,"name":"osd.1"},{"id":2,"name":"osd.2"},{"id":3,"name":"osd.3"}],
	"buckets":[
	{"id":-1,"name":"default","type_name":"root","items":[{"id":-4}]},
	{"id":-2,"name":"node1","type_name":"host","items":[{"id":0},{"id":1}]},
	{"id":-3,"name":"node2","type_name":"host","items":[{"id":2},{"id":3}]},
	{"id":-4,"name":"rack1","type_name":"rack","items":[{"id":-2},{"id":-3}]},
	{"id":-5,"name":"node1~ssd","type_name":"host","items":[{"id":1}]}],
	"rules":[
	{"rule_id":0,"rule_name":"everywhere","steps":[{"op":"take","item":-1,"item_name":"default"},{"op":"chooseleaf_firstn"},{"op":"emit"}]},
	{"rule_id":1,"rule_name":"one","steps":[{"op":"set_chooseleaf_tries","num":5},{"op":"take","item":-2,"item_name":"node1"},{"op":"choose_firstn"},{"op":"emit"}]},
	{"rule_id":2,"rule_name":"class","steps":[{"op":"take","item":-5,"item_name":"node1~ssd"},{"op":"choose_firstn"},{"op":"emit"}]},
	{"rule_id":3,"rule_name":"device","steps":[{"op":"take","item":3,"item_name":"osd.3"},{"op":"emit"}]},
	{"rule_id":4,"rule_name":"rack","steps":[{"op":"take","item":-4,"item_name":"rack1"},{"op":"chooseleaf_firstn"},{"op":"emit"}]},
	{"rule_id":5,"rule_name":"both","steps":[{"op":"take","item":-2,"item_name":"node1"},{"op":"choose_firstn"},{"op":"emit"},
		{"op":"take","item":-3,"item_name":"node2"},{"op":"choose_firstn"},{"op":"emit"}]}]}`
)

func TestANodeIsWhatTheRuleOfItsPoolTakes(t *testing.T) {
	for _, c := range []struct {
		pool, bucket string
		osds         []int
		warns        []string
	}{
		{"host", "node1", []int{0, 1}, []string{"Down in node1: osd.1"}},
		{"ssd", "node1", []int{1}, []string{"Down in node1: osd.1"}},
		{"osd", "osd.3", []int{3}, nil},
		{"rack", "rack1", []int{0, 1, 2, 3}, []string{"Down in rack1: osd.1", "Marked out in rack1: osd.2"}},
	} {
		p, err := judge([]byte(dumped), []byte(crushDumped), c.pool)
		if err != nil {
			t.Errorf("%s: %v", c.pool, err)
			continue
		}
		var osds []int
		for _, osd := range p.osds {
			osds = append(osds, osd.ID)
		}
		if p.bucket != c.bucket || !slices.Equal(osds, c.osds) || p.epoch != 31 {
			t.Errorf("%s: %s with OSDs %v at %d; want %s with %v at 31", c.pool, p.bucket, osds, p.epoch, c.bucket, c.osds)
		}
		said := strings.Join(p.warnings(), "\n")
		for _, part := range c.warns {
			if !strings.Contains(said, part) {
				t.Errorf("%s: warnings %q do not say %q", c.pool, said, part)
			}
		}
		if len(p.warnings()) != len(c.warns) {
			t.Errorf("%s: warnings %q, want %d", c.pool, said, len(c.warns))
		}
	}
}

func TestPoolsThatAreNoNodesAreRefused(t *testing.T) {
	for pool, says := range map[string][]string{
		"absent":   {"no pool absent", "host, ssd", "restripe ceph init"},
		"two":      {"rule both", "takes 2 buckets", "restripe ceph init"},
		"root":     {"root default", "many hosts", "restripe ceph init"},
		"copies":   {"3 copies", "size 1"},
		"coded":    {"erasure-coded", "size 1"},
		"images":   {"application rbd", "application enable images restripe"},
		"nobody":   {"no application"},
		"ruleless": {"rule 9"},
	} {
		_, err := judge([]byte(dumped), []byte(crushDumped), pool)
		if !errors.Is(err, ErrPool) {
			t.Errorf("%s: %v, want %v", pool, err, ErrPool)
			continue
		}
		for _, part := range says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error does not say %q: %v", pool, part, err)
			}
		}
	}
	for _, text := range [][2]string{{"{", crushDumped}, {dumped, "]"}} {
		if _, err := judge([]byte(text[0]), []byte(text[1]), "host"); err == nil || errors.Is(err, ErrPool) {
			t.Errorf("monitors that say what is not JSON: %v", err)
		}
	}
}

func TestCapacityIsWhatThePoolCouldHaveAndItsQuotaAllows(t *testing.T) {
	const df = `{"pools":[{"name":"host","stats":{"stored":300,"max_avail":5000}},{"name":"ssd","stats":{"stored":300,"max_avail":5000}}]}`
	for pool, want := range map[string][2]int64{"host": {300, 5300}, "ssd": {300, 1000}, "osd": {0, 0}} {
		p, err := judge([]byte(dumped), []byte(crushDumped), pool)
		if err != nil {
			t.Fatal(err)
		}
		used, capacity, err := p.usage([]byte(df))
		if err != nil || used != want[0] || capacity != want[1] {
			t.Errorf("%s: %d of %d bytes, %v; want %v", pool, used, capacity, err, want)
		}
	}
}

func TestOSDsThatKeepObjectsInMemoryAreNamed(t *testing.T) {
	p, err := judge([]byte(dumped), []byte(crushDumped), "host")
	if err != nil {
		t.Fatal(err)
	}
	const metadata = `[{"id":0,"osd_objectstore":"bluestore"},{"id":1,"osd_objectstore":"memstore"},{"id":3,"osd_objectstore":"memstore"}]`
	if err := p.readMetadata([]byte(metadata)); err != nil || !slices.Equal(p.inMemory, []string{"osd.1"}) {
		t.Errorf("in memory: %v, %v; want osd.1", p.inMemory, err)
	}
}

func TestNamesHashAsTheyDoInCeph(t *testing.T) {
	// As `ceph osd map` says.
	for name, want := range map[string]uint32{"foo": 0x7fc1f406, "rbd_directory": 0x30a98c1c} {
		if got := nameHash(name); got != want {
			t.Errorf("%q hashes to %08x, want %08x", name, got, want)
		}
	}
	for groups := 1; groups <= 70; groups++ {
		for group, name := range witnessNames(groups) {
			if placementGroup(name, groups) != group {
				t.Fatalf("witness %d of %d is %q, of placement group %d", group, groups, name, placementGroup(name, groups))
			}
		}
	}
}

func TestASumSaysWhatAValueIs(t *testing.T) {
	for _, value := range [][]byte{nil, []byte("value"), bytes.Repeat([]byte{7}, 1000)} {
		s := sumOf(value)
		if encoded := s.encode(); len(encoded) != sumBytes || parseSum(encoded) != s || s.length != int64(len(value)) {
			t.Errorf("the sum %+v of %d bytes is read as %+v from %d", s, len(value), parseSum(encoded), len(encoded))
		}
	}
	if sumOf([]byte("a")) == sumOf([]byte("b")) {
		t.Error("different values have the same sum")
	}
}

func TestOptionsAreCompletedAndFilesMustBeThere(t *testing.T) {
	config := filepath.Join(t.TempDir(), "ceph.conf")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Config: config, User: "client.someone"}
	if err := o.complete(); err != nil || o.User != "someone" {
		t.Errorf("%+v, %v", o, err)
	}
	o = Options{Config: config}
	if err := o.complete(); err != nil || o.User != defaultUser {
		t.Errorf("%+v, %v", o, err)
	}
	for _, o := range []Options{{Config: config + "x"}, {Config: config, Keyring: config + "x"}} {
		if err := o.complete(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), config+"x") {
			t.Errorf("%+v: %v, want %v that names the file", o, err, ErrConfig)
		}
	}
}

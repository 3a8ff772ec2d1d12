package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/tui/tree"
)

func TestStrideLeadsEverywhere(t *testing.T) {
	for count := 1; count <= 400; count++ {
		stride, seen := strideOver(count), map[int]bool{}
		for i := range count {
			seen[i*stride%count] = true
		}
		if len(seen) != count {
			t.Fatalf("a stride of %d over %d reaches %d", stride, count, len(seen))
		}
	}
}

func TestPopularIsAPartOfTheTree(t *testing.T) {
	var files tree.Tree
	for range 100 {
		files.Files = append(files.Files, tree.File{Size: 10})
		files.Bytes += 10
	}
	first, second := popular(&files, 1, 4), popular(&files, 3, 4)
	if len(first.Files) != 10 || first.Bytes != 100 || &first.Files[0] == &second.Files[0] {
		t.Errorf("%d files of %d bytes are popular first, %d then", len(first.Files), first.Bytes, len(second.Files))
	}
	files.Files[25].Size = 1 << 40
	if first := popular(&files, 1, 4); len(first.Files) != 1 {
		t.Errorf("%d files are popular beside a huge one", len(first.Files))
	}
}

func second(n int64) time.Time { return time.Unix(n, 0) }

func TestStepsAreSummedUpByTheirWay(t *testing.T) {
	class := api.Selector{Class: "media"}
	found := steps([]api.Transition{
		{Selector: class, From: "rs(4,2)", To: "rep(3)", GroupsDone: 1, Started: second(2)},
		{Selector: class, From: "rep(3)", To: "rs(4,2)", GroupsDone: 2, Started: second(1), Baselines: map[string]int64{"reencode": 5}},
		{Selector: api.Selector{Class: "other"}, From: "rep(3)", To: "rs(4,2)", GroupsDone: 100},
		{Selector: class, From: "rep(3)", To: "rs(4,2)", GroupsDone: 4, Started: second(3), Baselines: map[string]int64{"reencode": 6}},
	}, "media")
	if len(found) != 2 || found[0].Groups != 6 || found[0].Transitions != 2 || found[0].Reencode != 11 || found[1].Groups != 1 {
		t.Errorf("the steps are %+v", found)
	}
}

func TestCostsAreOverTime(t *testing.T) {
	var c costs
	if line := c.line(); !strings.Contains(line, "nothing was stored") {
		t.Error(line)
	}
	began := time.Now()
	class := &api.ClassHeat{Rungs: []api.RungHeat{{Scheme: "rep(3)", Bytes: 100, StoredBytes: 300}, {Scheme: "rs(4,2)"}}}
	c.add(class, began)
	class = &api.ClassHeat{Rungs: []api.RungHeat{{Scheme: "rep(3)"}, {Scheme: "rs(4,2)", Bytes: 100, StoredBytes: 150}}}
	c.add(class, began.Add(10*time.Second))
	class = &api.ClassHeat{Rungs: []api.RungHeat{{Scheme: "rep(3)", Bytes: 100, StoredBytes: 300}, {Scheme: "rs(4,2)"}}}
	c.add(class, began.Add(20*time.Second))
	const want = "Over the 20 s in which it cooled and heated, storage cost 0.75 of everything on rep(3), 1.50 of everything on rs(4,2);"
	if line := c.line(); !strings.HasPrefix(line, want) {
		t.Errorf("%s\nwant %s", line, want)
	}
}

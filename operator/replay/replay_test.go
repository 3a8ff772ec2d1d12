package replay

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/heat/shadow"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/price"
)

func TestParse(t *testing.T) {
	const day = 24 * time.Hour
	objects, err := ParseObjects("o", strings.NewReader("1 7 100\n2 8 200\n3 7 100\n4 9 0\n"), 4*day)
	if err != nil || len(objects.Accesses) != 4 || len(objects.Bytes) != 3 || objects.Bytes[1] != 200 ||
		objects.Accesses[2] != (Access{At: 2 * day}) {
		t.Errorf("%+v, %v", objects, err)
	}
	blocks := "version,time,op,size,lbn\n1,100,28,512,0\n1,149,2a,8388608,4096\n1,199,28,512,8191\n"
	disk, err := ParseDisk("d", strings.NewReader(blocks), day)
	if err != nil || len(disk.Bytes) != 3 || len(disk.Accesses) != 5 || disk.Accesses[4].Group != 0 || disk.Accesses[4].At >= day {
		t.Errorf("%+v, %v", disk, err)
	}
	lines, err := ParseCSV("c", strings.NewReader("time,object,bytes\n2026-01-01T00:00:10Z,\"a, b\",5\n1767225600,c,0\n"), 0)
	if err != nil || len(lines.Accesses) != 2 || lines.Accesses[0] != (Access{Group: 1}) ||
		lines.Accesses[1] != (Access{At: 10 * time.Second}) || lines.Bytes[1] != 1 {
		t.Errorf("%+v, %v", lines, err)
	}
}

func TestTracesThatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		parse      Parse
		text, says string
	}{
		{ParseObjects, "1 7\n", "line 1: 2 fields, want 3"},
		{ParseObjects, "1 7 100\n2 8 much\n", `line 2: "much" is no size`},
		{ParseDisk, "names,of,the,five,fields\n1,soon,28,512,0\n", `line 2: "soon" is no time`},
		{ParseDisk, "names,of,the,five,fields\n1,1,28,512,-3\n", "line 2"},
		{ParseCSV, "time,object,bytes\n1,a\n", "want lines of time, object and bytes"},
		{ParseCSV, "time,object,bytes\n1,a,5\nnoon,a,5\n", `line 3: "noon" is no time`},
		{ParseCSV, "time,object,bytes\n1,a,-5\n", `line 2: "-5" is no size`},
		{ParseCSV, "time,object,bytes\n1,a,5\n1767225600000,a,5\n", "times are in seconds"},
	} {
		if _, err := c.parse("t", strings.NewReader(c.text), 0); !errors.Is(err, ErrTrace) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.text, err, c.says)
		}
	}
	if _, err := Read("empty", strings.NewReader("time,object,bytes\n"), ParseCSV, 0); !errors.Is(err, ErrTrace) ||
		!strings.Contains(err.Error(), "empty: ") || !strings.Contains(err.Error(), "no requests") {
		t.Error(err)
	}
}

// A week of ten objects that are read each hour and ninety that are never read: auto is near the best of what everything on one
// code would cost, or better, and the sums of the fixed codes can be worked out by hand.
func TestRun(t *testing.T) {
	var text strings.Builder
	text.WriteString("time,object,bytes\n")
	for hour := range 56 * 24 {
		for object := range 100 {
			if hour == 0 || object < 10 {
				fmt.Fprintf(&text, "%d,o%d,4194304\n", hour*3600, object)
			}
		}
	}
	trace, err := ParseCSV("eight weeks", strings.NewReader(text.String()), 0)
	if err != nil {
		t.Fatal(err)
	}
	ladder := stripe.Ladder{stripe.Replicas(3), stripe.RS(4, 2), stripe.RS(12, 2)}
	rungs, err := price.Default().Rungs(ladder, 4<<20)
	if err != nil {
		t.Fatal(err)
	}
	prices := shadow.Prices(rungs)
	out, err := Run(trace, prices)
	if err != nil {
		t.Fatal(err)
	}
	if out.Days != 56 || out.Groups != 100 || out.Bytes != 400<<20 || out.Accesses != 90+10*56*24 {
		t.Errorf("%+v", out)
	}
	least := math.Inf(1)
	for rung, cost := range out.Written {
		want := 56*prices.Stored[rung]*float64(out.Bytes) + prices.Use[rung]*float64(out.Accesses)*(4<<20)
		if math.Abs(cost-want) > want*1e-9 {
			t.Errorf("everything written on %s costs %v, want %v", ladder[rung], cost, want)
		}
		least = min(least, cost)
	}
	if last := out.Candidates[len(out.Candidates)-1]; last.Always != 2 || last.Cost <= out.Written[2] {
		t.Errorf("moving everything to %s costs %v, writing it there %v", ladder[2], last.Cost, out.Written[2])
	}
	if out.Auto > least {
		t.Errorf("auto costs %.2f of the best code", out.Auto/least)
	}
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/e2e/bench/provenance"
)

// The same seed draws the same objects; a quarter is kept, half overwritten, a quarter deleted; sizes are within their limits.
func TestSubjectsAreDrawnAsTheSeedHasThem(t *testing.T) {
	subjects, changes := newSubjects(4000, 7)
	again, sameChanges := newSubjects(4000, 7)
	other, _ := newSubjects(4000, 8)
	differs := false
	fates, changed := map[fate]int{}, map[int]bool{}
	for i := range subjects {
		if subjects[i] != again[i] {
			t.Fatalf("object %d is %v, and then %v", i, subjects[i], again[i])
		}
		differs = differs || subjects[i] != other[i]
		fates[subjects[i].fate]++
		for _, size := range subjects[i].sizes {
			if size < leastSize || size > mostSize {
				t.Errorf("object %d has a size of %d", i, size)
			}
		}
	}
	if !differs {
		t.Error("another seed draws the same")
	}
	if fates[kept] != 1000 || fates[overwritten] != 2000 || fates[deleted] != 1000 {
		t.Errorf("fates are %v", fates)
	}
	for turn, i := range changes {
		if changed[i] || subjects[i].fate == kept || sameChanges[turn] != i {
			t.Errorf("change %d is of object %d, which is %v", turn, i, subjects[i])
		}
		changed[i] = true
	}
}

func TestBytesAreOfTheObjectAndItsVersion(t *testing.T) {
	one := bytesOf(3, 0, 1001)
	if len(one) != 1001 || !bytes.Equal(one, bytesOf(3, 0, 1001)) {
		t.Errorf("%d bytes, or others the second time", len(one))
	}
	if bytes.Equal(one, bytesOf(3, 1, 1001)) || bytes.Equal(one, bytesOf(4, 0, 1001)) {
		t.Error("another version or object has the same bytes")
	}
}

func TestParse(t *testing.T) {
	const stats = "STAT version 1.6\r\nSTAT bytes_read 9\r\nSTAT bytes 4711\r\nSTAT bytes_written 5\r\nEND\r\n"
	if bytes, err := parseItemBytes(strings.NewReader(stats)); err != nil || bytes != 4711 {
		t.Errorf("%d, %v", bytes, err)
	}
	for _, text := range []string{"", "STAT bytes_read 9\r\nEND\r\n", strings.Replace(stats, "4711", "many", 1)} {
		if _, err := parseItemBytes(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// Only calls about blocks count, and a gateway that does not count them is not taken for one that sent nothing.
func TestWhatIsSentIsOfBlocks(t *testing.T) {
	metrics := map[string]float64{
		`restripe_node_call_bytes_total{call="hello",kind="sent"}`: 1e9, "restripe_compaction_splice_sent_bytes_total": 1000,
	}
	if _, err := wire(metrics); err == nil {
		t.Error("nothing was counted")
	}
	for _, call := range blockCalls {
		for kind, bytes := range map[string]float64{"sent": 10, "received": 1} {
			metrics[fmt.Sprintf("restripe_node_call_bytes_total{call=%q,kind=%q}", call, kind)] = bytes
		}
	}
	if total, err := wire(metrics); err != nil || total != 1055 {
		t.Errorf("%.0f bytes are counted, %v", total, err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	o, err := parseOptions([]string{"-write", "-puts", "7"}, io.Discard)
	if err != nil || o.command != "go run ./e2e/bench/small -puts 7 -write" || len(o.only) != len(parts) {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := parseOptions([]string{"-write", "-only", "popularity"}, io.Discard); err != nil || !o.alone() || o.whole() {
		t.Errorf("%+v, %v", o, err)
	}
	for _, line := range []string{"-objects 0", "-rounds -1", "-writes 0", "more", "-no-such", "-only all", "-only", "-only dead,dead"} {
		if _, err := parseOptions(strings.Fields(line), io.Discard); err == nil {
			t.Errorf("%q was accepted", line)
		}
	}
}

func TestTheBoundIsThatOfTheClass(t *testing.T) {
	if deadBound < 1.9166 || deadBound > 1.9167 {
		t.Errorf("the bound is %f", deadBound)
	}
	for _, class := range putClasses(loneSchemes, manyModes) {
		parsed, err := class.Parse()
		if err != nil {
			t.Fatal(err)
		}
		if parsed.DeadAtMost != api.NeverCompact || parsed.Prefixes[0] != parsed.Ladder.String()+"/"+string(class.PackMode)+"/" {
			t.Errorf("%+v", parsed)
		}
	}
}

func wants(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestReportOfRoom(t *testing.T) {
	at := func(seconds int, stored int64) moment {
		return moment{at: time.Duration(seconds) * time.Second, objects: 100 << 20, stored: stored << 20, items: (stored - 5) << 20, groups: 9}
	}
	results := deadResults{
		objects: 400, overwritten: 200, deleted: 100, readBack: 400, put: at(-20, 170), moved: 30 << 20, freed: 150 << 20, passes: 2,
		worked: 5 * time.Second, peak: 64 << 20,
		moments: []moment{at(-3, 190), at(-2, 300), at(1, 480), at(2, 470), at(12, 470), at(30, 470), at(40, 194), at(41, 193), at(42, 190)},
	}
	text := reportDead(results)
	wants(t, text, "200\nwere overwritten", "100 deleted", "| after the puts | 1.700 | 1.650 |",
		"| at the worst of the records, at 1 s | 4.800 | 4.750 |",
		"| at the end, at 42 s | 1.900 | 1.850 |", "| at the end, to the worst | 0.40 | 0.39 |", "0.63 | 0.62 |",
		"| below 1.950, to stay | after 40 s | after 40 s |", "| below 1.917, to stay | after 42 s | after 40 s |",
		"moved 30.0 MiB of objects and freed 150.0 MiB", "in 5.0 s", "64.0 MiB of memory",
		"| 12 | 100.0 | 470.0 |", "| 40 | 100.0 | 194.0 | 1.940 | 189.0 | 1.890 | 9 | 0 | idle |")
	for _, not := range []string{"| 2 | 100.0 |", "| 30 | 100.0 |"} {
		if strings.Contains(text, not) {
			t.Errorf("%q is shown, soon after another or the same as that:\n%s", not, text)
		}
	}
	results.moments = results.moments[:6]
	wants(t, reportDead(results), "| below 1.950, to stay | not in the time that was watched | not in")
}

func passOf(scheme string, mode api.PackMode, round int, latencies ...int) pass {
	one := pass{scheme: scheme, mode: mode, round: round, elapsed: time.Second, groups: 2, waited: 1}
	for _, latency := range latencies {
		one.latencies = append(one.latencies, time.Duration(latency)*time.Millisecond)
	}
	return one
}

func TestReportOfPuts(t *testing.T) {
	var results putResults
	for round := range 2 {
		for _, scheme := range loneSchemes {
			results.passes = append(results.passes, passOf(scheme, api.PackBatch, round, 8, 10, 10, 20),
				passOf(scheme, api.PackAuto, round, 2, 4+round, 4+round, 5+round), passOf(scheme, api.PackAtOnce, round, 1, 1, 1, 9, 9))
		}
	}
	results.clients, results.peak = 64, 32<<20
	wants(t, reportLone(results), "4 in a pass, in 2 rounds", "| rep(3) | batch | 10.00 ms | 20.00 ms | 20.00 ms | 1 | 1 |",
		"| rs(3,2) | auto | 5.00 ms | 6.00 ms | 6.00 ms | 0.45 (0.40 to 0.50) | 0.28 (0.25 to 0.30) |", "32.0 MiB")
	wants(t, reportMany(results), "64 clients put", "| batch | 4 (4 to 4) | 1 | 10.00 ms | 20.00 ms | 20.00 ms | 1 | 2.0 | 25 % |",
		"| at-once | 5 (5 to 5) | 1.25 (1.25 to 1.25) | 1.00 ms | 9.00 ms | 9.00 ms | 0.45 (0.45 to 0.45) | 2.5 | 20 % |")
}

func TestHeadSaysWhereNumbersComeFrom(t *testing.T) {
	wants(t, head(provenance.Facts{Commit: "abc", Load: "0.10", Command: "go run"}), "commit: abc", "before the run: 0.10", "`go run`")
}

func TestModesTakeTurns(t *testing.T) {
	firsts := map[api.PackMode]bool{}
	for round := range manyModes {
		order := turns(manyModes, round)
		if len(order) != len(manyModes) {
			t.Errorf("round %d has %v", round, order)
		}
		firsts[order[0]] = true
	}
	if len(firsts) != len(manyModes) {
		t.Errorf("only %v are first", firsts)
	}
}

func TestASectionIsExchanged(t *testing.T) {
	section := "## B\n\nnew\n"
	for page, want := range map[string]string{
		"# P\n\n## A\n\na\n\n## B\n\nold\n\n## C\n\nc\n": "# P\n\n## A\n\na\n\n## B\n\nnew\n\n## C\n\nc\n",
		"# P\n\n## B\n\nold\n":                           "# P\n\n## B\n\nnew\n",
		"# P\n":                                          "# P\n\n## B\n\nnew\n",
	} {
		if got := withSection(page, section); got != want {
			t.Errorf("%q became %q", page, got)
		}
	}
}

// What popularity brings is not by chance: of three seeds each moves less with it, where keys differ, and about as much where not. The
// model is the same in every run.
func TestPopularityMovesLess(t *testing.T) {
	const objects, turns = 16_000, 6
	for _, w := range []workload{
		{name: "heavy", theta: 0.99, batch: 48}, {name: "moderate", theta: 0.8, batch: 320}, {name: "uniform", batch: 320},
	} {
		for seed := range uint64(3) {
			var moved [2]float64
			for way := range moved {
				m := newModel(w, objects, seed+1, way == 1)
				m.run(turns)
				if again := newModel(w, objects, seed+1, way == 1); seed == 0 && w.theta == 0 {
					if again.run(turns); again.moved != m.moved || again.made != m.made {
						t.Fatalf("%s: %d bytes are moved, and then %d", w.name, m.moved, again.moved)
					}
				}
				moved[way] = float64(m.moved) / float64(m.written)
			}
			ratio := moved[1] / moved[0]
			t.Logf("%s: %.3f and %.3f, %.3f", w.name, moved[0], moved[1], ratio)
			if w.theta > 0 && ratio > 0.97 || w.theta == 0 && (ratio < 0.95 || ratio > 1.05) {
				t.Errorf("%s, seed %d: %.3f of what was moved is moved with popularity", w.name, seed, ratio)
			}
		}
	}
}

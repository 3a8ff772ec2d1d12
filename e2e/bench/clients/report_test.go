package main

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/restripe/restripe/e2e/bench/provenance"
)

func wants(t *testing.T, text string, want ...string) {
	t.Helper()
	for _, one := range want {
		if !strings.Contains(text, one) {
			t.Errorf("the text lacks %q:\n%s", one, text)
		}
	}
}

// roundsOf are rounds of so many operations a second, each of which took 1000 / that milliseconds.
func roundsOf(perSecond ...float64) (list []round) {
	for _, one := range perSecond {
		took := timing{count: 10, mean: 1000 / one, p50: 1000 / one, p99: 2000 / one}
		list = append(list, round{
			outcome: outcome{operations: 100, perSecond: one, all: took, writes: took}, processor: 10 * time.Millisecond, peak: 64 << 20,
		})
	}
	return list
}

func TestTableHasPeersThatThereAre(t *testing.T) {
	rows := []row{
		{what: "load", names: []string{gatewayName, redisName}, rounds: map[string][]round{
			gatewayName: roundsOf(100, 80, 120), redisName: roundsOf(200, 400, 400),
		}},
		{what: "alone", names: []string{gatewayName}, rounds: map[string][]round{gatewayName: roundsOf(10, 10, 10)}},
	}
	section := newText("## Section")
	section.table("what", rows, redisName, proxyName)
	wants(t, section.String(), "| what |  | a second | to Redis | p50 ms | p99 | processor µs | memory MiB |\n",
		"| load | gateway | 100 (80 to 120) | 0.30 | 10.00 | 20.00 | 100 | 64 |\n",
		"| load | Redis | 400 (200 to 400) | - | 2.50 | 5.00 | 100 | 64 |\n",
		"| alone | gateway | 10 (10 to 10) | - |")
	if strings.Contains(section.String(), proxyName) {
		t.Errorf("there is no twemproxy:\n%s", section.String())
	}
	rows[0].rounds[gatewayName][0].reads = timing{count: 1, p50: 1, p99: 3}
	section = newText("## Section")
	section.table("what", rows[:1], redisName)
	wants(t, section.String(), "| read p50 ms | p99 | write p50 ms | p99 | mean |")
}

func TestClaimsOfThePaper(t *testing.T) {
	as := func(latency, puts, gets map[string]float64) *putRows {
		rows := &putRows{}
		for _, one := range []struct {
			into   *row
			values map[string]float64
		}{{&rows.lone, latency}, {&rows.puts, puts}, {&rows.gets, gets}} {
			one.into.rounds = map[string][]round{}
			for _, scheme := range putSchemes {
				value := one.values[scheme]
				one.into.rounds[scheme] = []round{{outcome: outcome{perSecond: value, all: timing{p50: value}}}}
			}
		}
		return rows
	}
	even := map[string]float64{}
	for _, scheme := range putSchemes {
		even[scheme] = 100
	}
	ring := map[string]float64{"rep(1)": 5, "rep(2)": 8, "rep(3)": 10, "rep(4)": 11, "rs(2,1)": 13, "rs(3,1)": 13, "rs(3,2)": 16}
	rates := map[string]float64{"rep(1)": 430, "rep(2)": 300, "rep(3)": 210, "rep(4)": 190, "rs(2,1)": 180, "rs(3,1)": 180, "rs(3,2)": 100}
	for _, one := range claims(as(ring, rates, even)) {
		if !one.holds {
			t.Errorf("the paper's own figures do not hold: %s", one)
		}
	}
	held := 0
	for _, one := range claims(as(even, even, ring)) {
		if one.holds {
			held++
		}
	}
	if held != 2 { // rep(1) is named first of those that are as fast, and codes with one parity are as fast as each other
		t.Errorf("%d claims hold where all schemes are as fast: %v", held, claims(as(even, even, ring)))
	}
}

func TestLossesAreToldTogether(t *testing.T) {
	lost := func(erased int) []round {
		list := roundsOf(100, 100)
		for i := range list {
			list[i].losses = &losses{
				reads: 1000, erased: erased, decoded: float64(erased), distances: []float64{1, 50, 300},
				read: timing{count: 1, p50: 30, p99: 40, mean: 31},
			}
			list[i].reads = timing{count: 5, p50: 10}
		}
		return list
	}
	r := row{what: "w", names: []string{erasureNone, erasureRepaired, erasureLeft}, rounds: map[string][]round{
		erasureNone: lost(0), erasureRepaired: lost(9), erasureLeft: lost(11),
	}}
	cells := lossCells(&r, erasureRepaired)
	want := []string{"2000", "18", "0.90", "18", "0", "30.00", "40.00", "31.00", "3.00", "1.00", "-", "-", "0", "0"}
	if !slices.Equal(cells[:len(want)], want) {
		t.Errorf("cells %v, want %v", cells, want)
	}
	b := &bench{options: options{percent: 1, shape: 0.75}}
	wants(t, b.reportErasures([]row{r}), "22 of 2000 reads, 1.10 %", "18 of 2000 reads, 0.90 %")
	b.percent = 0
	wants(t, b.reportErasures(nil), "`-erasures 0`")
}

func TestErasuresComeAsOftenAsTheyShould(t *testing.T) {
	const reads = 2_000_000
	s := newSchedule(1, 0.75, 3)
	var l losses
	for range reads {
		if number, erases := s.next(); erases {
			l.numbers = append(l.numbers, number)
			l.erased++
		}
	}
	l.distances = s.distances(l.numbers)
	// About 20,000, with a deviation of 1.35 of a distance's mean each: 1 % in all.
	if share := 100 * float64(l.erased) / reads; math.Abs(share-1) > 0.05 {
		t.Errorf("%.3f %% of reads", share)
	}
	for i, distance := range l.distances {
		l.distances[i] = distance - 0.5
	}
	fit, shapeError, err := fitWeibull(l.distances)
	// Whole reads and bursts that are taken together make the shape a little larger than it was drawn with; 0.7 to 0.8 is aimed at.
	if err != nil || fit.shape < 0.7 || fit.shape > 0.8 || shapeError > 0.01 {
		t.Errorf("the shape is %.3f ± %.3f, %v", fit.shape, shapeError, err)
	}
}

func TestErasuresThatFoundNothingComeLater(t *testing.T) {
	s := newSchedule(1, 0.75, 5)
	first, erases := s.next()
	for !erases {
		first, erases = s.next()
	}
	s.back()
	if next, erases := s.next(); next != first+1 || !erases {
		t.Errorf("read %d after %d has an erasure: %v", next, first, erases)
	}
	if got := s.distances([]int{40, 10, 25}); !slices.Equal(got, []float64{10, 15, 15}) {
		t.Errorf("distances %v", got)
	}
	if got := s.distances([]int{50}); !slices.Equal(got, []float64{10}) {
		t.Errorf("distances of the next run %v", got)
	}
}

func TestErasuresAreSharedByManyClients(t *testing.T) {
	const clients, reads = 32, 2000
	s := newSchedule(1, 0.75, 7)
	var asking sync.WaitGroup
	var erased, given atomic.Int64
	for range clients {
		asking.Go(func() {
			for range reads {
				if _, erases := s.next(); erases {
					if given.Add(1)%2 == 0 {
						s.back()
					} else {
						erased.Add(1)
					}
				}
			}
		})
	}
	asking.Wait()
	// 640 are due, with a deviation of 34; each second one that a read was given went on to the next read.
	if share := 100 * float64(erased.Load()) / (clients * reads); math.Abs(share-1) > 0.25 || s.reads != clients*reads {
		t.Errorf("%.2f %% of %d reads", share, s.reads)
	}
}

func TestCrowdTellsRatios(t *testing.T) {
	lost := func(rate, mean float64) []round {
		list := roundsOf(rate, rate)
		for i := range list {
			list[i].reads = timing{count: 5, p50: 2, mean: 2}
			list[i].losses = &losses{reads: 1000, erased: 10, read: timing{count: 10, p50: mean, p99: mean, mean: mean}}
		}
		return list
	}
	r := row{what: "w", names: []string{erasureNone, erasureSought, erasureRepaired, erasureLeft}, rounds: map[string][]round{
		erasureNone: lost(200, 1), erasureSought: roundsOf(100, 100), erasureRepaired: lost(80, 6), erasureLeft: lost(50, 3),
	}}
	b := &bench{options: options{percent: 1, shape: 0.75, many: 512}}
	wants(t, b.reportCrowd([]row{r}), "512 clients",
		"| w | 0.80 | 0.50 | 1.60 | 1.25 | 2.00 | 0.62 | 6.00 | 3.00 | 2.00 | 3.00 | 1.50 |\n", "20 of 2000 reads, 1.00 %")
	b.percent = 0
	wants(t, b.reportCrowd(nil), "`-erasures 0`")
	if math.IsNaN(lostMean(&lost(1, 1)[0])) || !math.IsNaN(lostMean(&round{})) {
		t.Error("reads that found a block lost are told where there were none")
	}
}

func TestServersOfS3AreToldBesideCeph(t *testing.T) {
	row := largeRow{
		row: row{what: "get", names: []string{byS3Name, cephName, versity}, rounds: map[string][]round{
			byS3Name: roundsOf(200, 300), cephName: roundsOf(100, 100), versity: roundsOf(1000, 1000),
		}},
		others: map[string][]time.Duration{
			byS3Name: {200 * time.Millisecond, 400 * time.Millisecond}, cephName: {400 * time.Millisecond, 400 * time.Millisecond},
		},
	}
	if got := row.bothOf(byS3Name); !slices.Equal(got, []float64{2.1, 4.1}) {
		t.Errorf("%v ms for 1 MiB, of 0.1 and 2 or 4", got)
	}
	text := (&bench{}).reportS3(s3Rows{rows: []largeRow{row}, missing: []string{"one is missing."}})
	wants(t, text, "one is missing.", "| get | gateway by S3 | 300 (200 to 300) | 3.00 | 5.0 | 10.0 | 0.10 | 4.00 | 4.10 | 1.00 | 64 |\n",
		"| get | Ceph RGW | 100 (100 to 100) | - | 10.0 | 20.0 | 0.10 | 4.00 | 4.10 | - | 64 |\n", "| 0.10 | - | 0.10 | 0.02 | 64 |")
	row.names, row.others = []string{byS3Name}, nil
	delete(row.rounds, cephName)
	wants(t, (&bench{}).reportS3(s3Rows{rows: []largeRow{row}}), "| get | gateway by S3 | 300 (200 to 300) | - |")
}

func TestOptions(t *testing.T) {
	o, err := parseOptions([]string{"-only", "puts,ycsb", "-rounds", "1", "-write", "-http", "-before", "/some/program"}, io.Discard)
	if err != nil || o.whole() || !slices.Equal(o.only, []string{"puts", "ycsb"}) || !o.overHTTP {
		t.Errorf("%+v, %v", o, err)
	}
	if want := "go run " + buildTags + "./e2e/bench/clients -before PROGRAM -http -only puts,ycsb -rounds 1 -write"; o.command != want {
		t.Errorf("the command is %q, want %q", o.command, want)
	}
	if o, err := parseOptions(nil, io.Discard); err != nil || !o.whole() {
		t.Errorf("%+v, %v", o, err)
	}
	for _, wrong := range []string{
		"-only none", "-many 0", "-only puts,puts", "-rounds 0", "-seconds 0", "-erasures -1", "-erasures 60", "-shape 0", "-idle 0",
		"more", "-none",
	} {
		if _, err := parseOptions(strings.Fields(wrong), io.Discard); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

func TestPageKeepsOtherSections(t *testing.T) {
	page := head(provenance.Facts{Commit: "abc"})
	wants(t, page, "commit: abc", "# Clients of Redis")
	for _, section := range []string{"## One\n\nfirst\n", "## Two\n\nsecond\n", "## One\n\nagain\n"} {
		page = withSection(page, section)
	}
	wants(t, page, "\n## One\n\nagain\n\n## Two\n\nsecond\n")
	if strings.Contains(page, "first") {
		t.Errorf("the section is there twice:\n%s", page)
	}
}

func TestWhatIsReadOfOthers(t *testing.T) {
	output := `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"GET","123.4","0.5","0.1","0.4","0.9","1.5","3.0"
`
	rate, took, err := parseRedisBenchmark([]byte(output))
	if err != nil || rate != 123.4 || took.p50 != 0.4 || took.p99 != 1.5 || took.mean != 0.5 {
		t.Errorf("%g, %+v, %v", rate, took, err)
	}
	for _, wrong := range []string{"", "a\n", output[:strings.IndexByte(output, '\n')+1], strings.Replace(output, "1.5", "x", 1)} {
		if _, _, err := parseRedisBenchmark([]byte(wrong)); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("\"test\",\"rps\"\n\"GET\",\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		_, _, _ = parseRedisBenchmark([]byte(text))
	})
}

func TestThisProcessIsMeasured(t *testing.T) {
	own := os.Getpid()
	if _, err := processorTime([]int{own}); err != nil {
		t.Error(err)
	}
	pids, err := descendants(os.Getppid())
	if err != nil || !slices.Contains(pids, own) {
		t.Errorf("descendants of the parent are %v, %v, without %d", pids, err, own)
	}
	if _, err := gatewayAmong(pids); err == nil {
		t.Error("a gateway is found among tests")
	}
	if files, err := raiseOpenFiles(1); err != nil || files < 1 {
		t.Errorf("%d files, %v", files, err)
	}
}

func TestRoundsTakeTurns(t *testing.T) {
	var order []string
	b := &bench{options: options{rounds: 2}, messages: io.Discard, planned: 4}
	at := func(name string) target {
		return target{name: name, memory: os.Getpid(), run: func(context.Context, int) (outcome, error) {
			order = append(order, name)
			return outcome{perSecond: float64(len(order)), operations: 1}, nil
		}}
	}
	r, err := b.compare(t.Context(), "what", []target{at("a"), at("b")})
	if err != nil || strings.Join(order, "") != "abba" || !slices.Equal(r.values("a", perSecond), []float64{1, 4}) {
		t.Errorf("%v, %v, %v", order, r.values("a", perSecond), err)
	}
	if ratio := r.ratio("a", "b", perSecond); ratio != median([]float64{0.5, 4.0 / 3}) {
		t.Errorf("the ratio is %g", ratio)
	}
	if !math.IsNaN(r.ratio("a", "none", perSecond)) || b.done != 4 {
		t.Errorf("a ratio to nobody, %d done", b.done)
	}
	broken := errors.New("broken")
	failing := target{name: "c", memory: os.Getpid(), run: func(context.Context, int) (outcome, error) { return outcome{}, broken }}
	if _, err := b.compare(t.Context(), "what", []target{failing}); !errors.Is(err, broken) {
		t.Errorf("a target that fails is %v", err)
	}
}

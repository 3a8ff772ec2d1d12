package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/launch"
)

// The part puts is Figures 7, 9 and 11 of Ring: how long a client that is alone waits for a put under each scheme, and how many puts and
// gets many clients get done. Its SRS(k,m,3) are rs(k,m) here.
var putSchemes = []string{"rep(1)", "rep(2)", "rep(3)", "rep(4)", "rs(2,1)", "rs(3,1)", "rs(3,2)"}

const putSize = 1 << 10

// putRows are what the part measured: a row each, with all schemes.
type putRows struct{ lone, puts, gets row }

func (b *bench) putTargets() int { return 3 * (len(putSchemes) + 1) }

func (b *bench) puts(ctx context.Context) (rows putRows, err error) {
	var classes []api.ClassSpec
	for _, scheme := range putSchemes {
		classes = append(classes, classOf(scheme))
	}
	c, err := b.startCold(ctx, launch.StoreRedis, classes...)
	if err != nil {
		return rows, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	books := map[string]*ledger{redisName: newLedger("", b.records, putSize)}
	for _, scheme := range putSchemes {
		books[scheme] = newLedger(prefixOf(scheme), b.records, putSize)
	}
	b.say("putting %d records under each of %d schemes", b.records, len(putSchemes))
	for name, book := range books {
		address := c.redis
		if name == redisName {
			address = b.peers.redis
		}
		if err := book.fill(redisAt(address)); err != nil {
			return rows, err
		}
	}
	for _, one := range []struct {
		into    *row
		clients int
		reads   int
	}{{&rows.gets, b.clients, 100}, {&rows.lone, 1, 0}, {&rows.puts, b.clients, 0}} { // what is compacted after puts would slow gets
		w := workload{distributions[0], one.reads, putSize}
		run := func(name, address string) func(context.Context, int) (outcome, error) {
			return func(ctx context.Context, round int) (outcome, error) {
				return b.ycsbRun(ctx, w, books[name], one.clients, round, redisAt(address), nil)
			}
		}
		var targets []target
		for _, scheme := range putSchemes {
			targets = append(targets, c.target(scheme, run(scheme, c.redis)))
		}
		targets = append(targets, b.peers.target(redisName, b.peers.redis, run(redisName, b.peers.redis)))
		what := fmt.Sprintf("%s, %d clients", map[int]string{0: "put", 100: "get"}[one.reads], one.clients)
		if *one.into, err = b.compare(ctx, strings.Replace(what, ", 1 clients", ", 1 client", 1), targets); err != nil {
			return rows, err
		}
	}
	return rows, nil
}

// alike is by how much two figures may differ that are said to be the same.
const alike = 0.1

// claim is something that the paper says of an order, and whether it holds here.
type claim struct {
	paper string
	holds bool
	ours  string
}

func (c claim) String() string {
	verdict := "not so here"
	if c.holds {
		verdict = "so here too"
	}
	return fmt.Sprintf("- %s: %s (%s).", c.paper, verdict, c.ours)
}

// claims are what Ring says of its Figures 7, 9 and 11.
func claims(rows *putRows) (list []claim) {
	latency := func(scheme string) float64 { return rows.lone.median(scheme, p50) }
	puts := func(scheme string) float64 { return rows.puts.median(scheme, perSecond) }
	add := func(paper string, holds bool, format string, values ...any) {
		list = append(list, claim{paper, holds, fmt.Sprintf(format, values...)})
	}
	told := func(of func(string) float64, format string, schemes ...string) string {
		var words []string
		for _, scheme := range schemes {
			words = append(words, scheme+" "+fmt.Sprintf(format, of(scheme)))
		}
		return strings.Join(words, ", ")
	}
	least, most := putSchemes[0], putSchemes[0]
	slowestCopies, fastestCode := 0.0, 0.0
	for _, scheme := range putSchemes {
		if latency(scheme) < latency(least) {
			least = scheme
		}
		if latency(scheme) > latency(most) {
			most = scheme
		}
		if strings.HasPrefix(scheme, "rep") {
			slowestCopies = max(slowestCopies, latency(scheme))
		} else if fastestCode == 0 || latency(scheme) < fastestCode {
			fastestCode = latency(scheme)
		}
	}
	add("Rep(1) has the lowest latency of puts", least == "rep(1)", "lowest is %s, %.2f ms", least, latency(least))
	add("puts of copies are faster than those of codes", slowestCopies < fastestCode, "slowest of copies %.2f ms, fastest of codes %.2f ms",
		slowestCopies, fastestCode)
	add("SRS(2,1) and SRS(3,1) take as long as each other, as they have one parity", near(latency("rs(2,1)"), latency("rs(3,1)")),
		"%s ms; within %.0f %% counts as the same", told(latency, "%.2f", "rs(2,1)", "rs(3,1)"), 100*alike)
	add("SRS(3,2) has the highest latency of puts", most == "rs(3,2)", "highest is %s, %.2f ms", most, latency(most))
	add("Rep(1) is 2 times as fast as Rep(3), and 3 times as SRS(3,2)", atLeast(latency("rep(3)")/latency("rep(1)"), 2) &&
		atLeast(latency("rs(3,2)")/latency("rep(1)"), 3), "%.2f and %.2f times", latency("rep(3)")/latency("rep(1)"),
		latency("rs(3,2)")/latency("rep(1)"))
	add("puts a second fall from Rep(1) over Rep(3) to SRS(3,2)", puts("rep(1)") > puts("rep(3)") && puts("rep(3)") > puts("rs(3,2)"),
		"%s a second, %s of rep(1)", told(puts, "%.0f", "rep(1)", "rep(3)", "rs(3,2)"),
		told(func(scheme string) float64 { return rows.puts.ratio(scheme, "rep(1)", perSecond) }, "%.2f", "rep(3)", "rs(3,2)"))
	add("Rep(1) does most puts a second, 2 times as many as Rep(3) and 4.3 times as many as SRS(3,2)", puts("rep(1)") > puts("rep(3)") &&
		atLeast(puts("rep(1)")/puts("rep(3)"), 2) && atLeast(puts("rep(1)")/puts("rs(3,2)"), 4.3), "%.2f and %.2f times; %s a second",
		puts("rep(1)")/puts("rep(3)"), puts("rep(1)")/puts("rs(3,2)"), told(puts, "%.0f", "rep(1)", "rep(3)", "rs(3,2)"))
	fewest, mostGets := 0.0, 0.0
	for _, scheme := range putSchemes {
		gets := rows.gets.median(scheme, perSecond)
		if fewest == 0 || gets < fewest {
			fewest = gets
		}
		mostGets = max(mostGets, gets)
	}
	add("gets are as fast under every scheme", near(fewest, mostGets), "%.0f to %.0f a second", fewest, mostGets)
	return list
}

func near(a, b float64) bool       { return a <= b*(1+alike) && b <= a*(1+alike) }
func atLeast(a, want float64) bool { return a >= want*(1-alike) }

func (b *bench) reportPuts(rows putRows) string {
	t := newText("## Puts by scheme")
	t.prose("Ring, Figures 7, 9 and 11. Values of 1 KiB over RESP, of %d records that are there, drawn evenly; each scheme is a class of one "+
		"gateway, which keeps none in memory (`--cache 0`). The peer is the same on a plain Redis. "+
		"In Ring a put is a message over RDMA between five machines; here it also is a "+
		"transaction in the catalog, the same under every scheme, which brings the schemes closer to each other.", b.records)
	t.table("load", []row{rows.lone, rows.puts, rows.gets}, "rep(1)", redisName)
	t.say("\nThe order of the paper, by medians of the rounds (latencies are p50):\n")
	for _, one := range claims(&rows) {
		t.say("%s", one)
	}
	return t.String()
}

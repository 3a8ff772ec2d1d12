package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/progress"
)

const ratesHead = `# Engines of the catalog, side by side

What a gateway asks of the catalog for puts and gets, without stores: of each put it draws a stamp, announces the blocks of a group of
fourteen, and commits group and object, which are two reads and two updates; of each get it reads the object, and then the object and
its group as of one instant. All engines keep what they acknowledged through a crash of the machine (SQLite synchronous FULL, Redis
appendfsync always, etcd and PostgreSQL as they come), all have their files on one disk, and one gateway's clients are one process.
Engines take turns, in another order each round, so that what disturbs the machine disturbs all; servers that are not asked run idle.
Rates are medians of the rounds, with the lowest and the highest; ratios are to SQLite with as many clients in the same round.

`

// crowds are how many clients there are at a time.
var crowds = []int{1, 16, 64}

// What is aimed at, of SQLite's rate of puts with 64 clients.
const (
	postgresAim = 0.5
	etcdAim     = 0.25
)

// measuring is what is measured at once: kind of operation, engine and number of clients.
type measuring struct {
	kind, engine string
	clients      int
}

// rates measures puts and gets over all engines.
func (b *bench) rates(ctx context.Context) (_ string, err error) {
	servers := map[string]*server{}
	for _, name := range engines {
		s, err := startServer(ctx, name, b.directory)
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, s.stop()) }()
		servers[name] = s
	}
	all, order := map[measuring][]result{}, slices.Clone(engines)
	meter, turns, done, began := progress.New(os.Stderr), b.rounds*len(crowds)*len(engines), 0, time.Now()
	for round := range b.rounds {
		for _, clients := range crowds {
			for _, name := range order {
				put := errand{Kind: "put", Run: fmt.Sprintf("round%d-%d", round, clients), Clients: clients, For: b.phase, Nodes: b.nodes}
				puts, err := put.run(ctx, servers[name])
				if err != nil {
					return "", err
				}
				get := put
				get.Kind, get.Objects = "get", puts.Operations
				gets, err := get.run(ctx, servers[name])
				if err != nil {
					return "", err
				}
				at := measuring{"put", name, clients}
				all[at] = append(all[at], puts)
				at.kind = "get"
				all[at] = append(all[at], gets)
				done++
				meter.Show(time.Now(), func() string {
					left := time.Since(began) * time.Duration(turns-done) / time.Duration(done)
					return fmt.Sprintf("%d of %d turns, about %s left", done, turns, words.About(left))
				})
			}
		}
		slices.Reverse(order)
	}
	meter.Clear()
	return b.ratesText(all), nil
}

func (b *bench) ratesText(all map[measuring][]result) string {
	var text strings.Builder
	line := func(format string, arguments ...any) { fmt.Fprintf(&text, format+"\n", arguments...) }
	for _, kind := range []string{"put", "get"} {
		line("## %ss\n", strings.ToUpper(kind[:1])+kind[1:])
		line("| engine | clients | a second | lowest to highest | to SQLite | median | p99 | slowest | processor, client | processor, server |")
		line("|---|---|---|---|---|---|---|---|---|---|")
		for _, clients := range crowds {
			for _, name := range engines {
				rounds := all[measuring{kind, name, clients}]
				s := summarize(rounds)
				server := short(s.server)
				if name == engines[0] {
					server = "-"
				}
				line("| %s | %d | %.0f | %.0f to %.0f | %.2f | %s | %s | %s | %s | %s |", name, clients, s.rate, s.lowest, s.highest,
					ratio(rounds, all[measuring{kind, engines[0], clients}]), short(s.median), short(s.p99), short(s.slowest),
					short(s.client), server)
			}
		}
		line("")
	}
	line("Processor time is that of one operation; of a server, of all its processes together.\n")
	line("## Memory\n\nThe most of any round; pages that processes of a server share are counted once.\n")
	line("| engine | client with 1 | client with 64 | server |\n|---|---|---|---|")
	for _, name := range engines {
		one, many, server := int64(0), int64(0), int64(0)
		for _, r := range all[measuring{"put", name, crowds[0]}] {
			one, server = max(one, r.Memory), max(server, r.Server.memory)
		}
		for _, r := range all[measuring{"put", name, crowds[len(crowds)-1]}] {
			many, server = max(many, r.Memory), max(server, r.Server.memory)
		}
		line("| %s | %s | %s | %s |", name, words.Bytes(one), words.Bytes(many), orNone(server))
	}
	line("\n## Where the time goes\n")
	for _, aim := range []struct {
		name string
		part float64
	}{{"PostgreSQL", postgresAim}, {"etcd, 1 member", etcdAim}, {"etcd, 3 members", etcdAim}} {
		at := measuring{"put", aim.name, crowds[len(crowds)-1]}
		base := at
		base.engine = engines[0]
		line("%s", whereTimeGoes(aim.name, aim.part, all[at], all[base]))
	}
	return text.String()
}

// whereTimeGoes says what an engine's puts wait for, by the part of the processors that they had.
func whereTimeGoes(name string, aim float64, rounds, base []result) string {
	s, of, got := summarize(rounds), summarize(base), ratio(rounds, base)
	verdict := "so the aim is held"
	if got < aim {
		verdict = "so the aim is missed"
	}
	own := s.rate * (s.client + s.server).Seconds() / float64(runtime.NumCPU())
	others := max(0, 1-s.idle-own)
	why := "most of the time its puts wait for the disk and for the turns of others"
	if own > 2*s.idle {
		why = "processors are what there is too little of"
	}
	return fmt.Sprintf("- **%s** with %d clients puts %.2f times as many objects a second as SQLite; at least %.2f is aimed at, %s. "+
		"A put takes %s of a processor in the client and %s in the server, beside %s of SQLite, which has no server. "+
		"Of the %d processors that was %.0f %%, %.0f %% went to other work and %.0f %% were idle: %s.",
		name, crowds[len(crowds)-1], got, aim, verdict, short(s.client), short(s.server), short(of.client),
		runtime.NumCPU(), 100*own, 100*others, 100*s.idle, why)
}

// summary is one line of a table.
type summary struct {
	rate, lowest, highest                float64 // operations a second
	idle                                 float64
	median, p99, slowest, client, server time.Duration
}

func summarize(rounds []result) summary {
	var rates, idle []float64
	var medians, p99s, slowest, clients, servers []time.Duration
	for _, r := range rounds {
		count := time.Duration(max(1, r.Operations))
		rates, idle = append(rates, rate(r)), append(idle, r.Idle)
		medians, p99s, slowest = append(medians, r.Times.Median), append(p99s, r.Times.P99), append(slowest, r.Times.Slowest)
		clients, servers = append(clients, r.Processor/count), append(servers, r.Server.processor/count)
	}
	return summary{
		rate: middle(rates), idle: middle(idle), lowest: slices.Min(rates), highest: slices.Max(rates),
		median: middle(medians), p99: middle(p99s), slowest: slices.Max(slowest), client: middle(clients), server: middle(servers),
	}
}

func rate(r result) float64 { return float64(r.Operations) / r.Took.Seconds() }

// ratio is the median of the ratios to another engine in the same rounds.
func ratio(rounds, base []result) float64 {
	var ratios []float64
	for i := range rounds {
		ratios = append(ratios, rate(rounds[i])/rate(base[i]))
	}
	return middle(ratios)
}

func middle[T int64 | float64 | time.Duration](list []T) T {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

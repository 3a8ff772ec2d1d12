//go:build linux

package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/stripe"
)

// The parts of a run.
const (
	partTransitions = "transitions"
	partDataPath    = "data-path"
	partRepair      = "repair"
	partScrub       = "scrub"
	partGrowth      = "growth"
)

// parts are the parts of a run, in its order.
var parts = []string{partTransitions, partDataPath, partRepair, partScrub, partGrowth}

// options say what to measure.
type options struct {
	quick       bool
	write       bool
	parts       map[string]bool
	rounds      []int // of transitions, at each of rates
	objects     int
	objectBytes int64
	rates       []int // megabits per second
	steps       []step
	merges      []step
	growths     []step // to schemes of more data blocks, on as many nodes more
	stores      []launch.StoreKind
	passes      int // rounds of the data path
	concurrency int
	flood       flood
	lostCell    int // bytes of the one lost block whose repair is set against a plain transfer
	lostRounds  int // of that, at each of rates
	reading     reading
	binary      string
	documents   string
	command     string // as typed, for the provenance
}

// flood is the load under which the gateway's peak memory is measured.
type flood struct {
	objects     int // all at once
	objectBytes int64
}

// reading is the load of clients beside which a node is repaired.
type reading struct {
	perSecond   int
	objectBytes int64
	quiet       time.Duration // how long it is measured with nothing lost, all rounds
	rounds      int           // of losing and repairing a node
}

// step is one change of scheme; the bench goes there and back.
type step struct{ from, to stripe.Scheme }

// String returns the text parseSteps reads.
func (s step) String() string { return s.from.String() + "->" + s.to.String() }

// defaultSteps are parameter sets (k,m,k') of the ERS paper's evaluation; defaultMerges move no byte under restripe.
const (
	defaultSteps  = "rs(4,1)->rs(5,1);rs(5,1)->rs(6,1);rs(8,2)->rs(10,2);rs(9,2)->rs(10,2);rs(10,3)->rs(12,3);rs(12,3)->rs(14,3)"
	defaultMerges = "rep(3)->rs(4,2);rs(6,3)->rs(12,3);rs(4,2)->rs(12,2)"
)

// parseOptions reads the command line. Errors of the flag package are printed by it, too.
func parseOptions(arguments []string, messages io.Writer) (options, error) {
	o := options{parts: map[string]bool{}, flood: flood{objects: 64, objectBytes: 64 << 20}, lostCell: 64 << 20, lostRounds: 3}
	o.reading = reading{perSecond: 40, objectBytes: 1 << 20, quiet: 20 * time.Second, rounds: 16}
	var only, rates, rounds, steps, merges, growths, stores string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(messages)
	flags.BoolVar(&o.quick, "quick", false, "every part once, on few and small objects: shows that it works, not how fast")
	flags.BoolVar(&o.write, "write", false, "write the results to the directory of -documents")
	flags.StringVar(&only, "only", "", "parts to run, comma-separated: "+strings.Join(parts, ", ")+" (default all)")
	flags.StringVar(&rounds, "rounds", "2,3", "rounds of transitions, one number for each rate")
	flags.IntVar(&o.objects, "objects", 64, "objects a transition covers")
	flags.Int64Var(&o.objectBytes, "object-bytes", 4<<20, "bytes of such an object, one group each")
	flags.StringVar(&rates, "rates", "200,1000", "rates of the links, megabits per second")
	flags.StringVar(&steps, "steps", defaultSteps, "changes of scheme to compare, separated by semicolons; may be empty")
	flags.StringVar(&merges, "merges", defaultMerges, "changes of scheme that move nothing under restripe; may be empty")
	flags.StringVar(&growths, "growths", growthSteps, "changes of width to compare, separated by semicolons; may be empty")
	flags.StringVar(&stores, "stores", "memcached,redis", "stores of the data path")
	flags.IntVar(&o.passes, "passes", 5, "rounds of the data path")
	flags.IntVar(&o.concurrency, "concurrency", 8, "clients of the data path at once")
	flags.StringVar(&o.binary, "binary", "", "the restripe program (default: build it)")
	flags.StringVar(&o.documents, "documents", "docs/benchmarks", "where -write puts the pages")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag; run with -help for the list", flags.Arg(0))
	}
	o.command = strings.Join(append([]string{"go run ./e2e/bench"}, arguments...), " ")
	if o.quick {
		rates, rounds, growths = "1000", "1", "rs(4,2)->rs(6,2)"
		o.objects, o.objectBytes, o.passes = 8, 1<<20, 1
		o.flood = flood{objects: 16, objectBytes: 8 << 20}
		o.lostCell, o.lostRounds, o.reading.quiet, o.reading.rounds = 4<<20, 1, time.Second, 1
	}
	return o, o.complete(only, rates, rounds, steps, merges, growths, stores)
}

// complete reads the lists.
func (o *options) complete(only, rates, rounds, steps, merges, growths, stores string) (err error) {
	if only == "" {
		only = strings.Join(parts, ",")
	}
	for name := range strings.SplitSeq(only, ",") {
		if !slices.Contains(parts, name) {
			return fmt.Errorf("-only: there is no part %q; the parts are %s", name, strings.Join(parts, ", "))
		}
		o.parts[name] = true
	}
	if o.rates, err = parseNumbers(rates, 100_000); err != nil {
		return fmt.Errorf("-rates: %w", err)
	}
	if o.rounds, err = parseNumbers(rounds, 1000); err != nil {
		return fmt.Errorf("-rounds: %w", err)
	}
	if len(o.rates) != len(o.rounds) {
		return fmt.Errorf("-rounds: %d numbers for %d rates; give one for each", len(o.rounds), len(o.rates))
	}
	if o.steps, err = parseSteps(steps); err != nil {
		return fmt.Errorf("-steps: %w", err)
	}
	if o.merges, err = parseSteps(merges); err != nil {
		return fmt.Errorf("-merges: %w", err)
	}
	if o.growths, err = parseSteps(growths); err != nil {
		return fmt.Errorf("-growths: %w", err)
	}
	for _, s := range o.growths {
		if s.from.K >= s.to.K || s.from.M != s.to.M {
			return fmt.Errorf("-growths: %s does not become wider with as many parities", s)
		}
	}
	for text := range strings.SplitSeq(stores, ",") {
		kind, err := launch.ParseStoreKind(text)
		if err != nil || kind == launch.StoreFile {
			return fmt.Errorf("-stores: %q; the plain client of the comparison speaks to memcached and redis", text)
		}
		o.stores = append(o.stores, kind)
	}
	for name, value := range map[string]int{"objects": o.objects, "passes": o.passes, "concurrency": o.concurrency} {
		if value < 1 {
			return fmt.Errorf("-%s: %d; want at least 1", name, value)
		}
	}
	if o.objectBytes < 64<<10 || o.objectBytes > 64<<20 {
		return fmt.Errorf("-object-bytes: %d is outside 64 KiB to 64 MiB, the sizes of a group", o.objectBytes)
	}
	return nil
}

// parseNumbers reads a list such as "200,1000" of numbers from 1 to most.
func parseNumbers(text string, most int) ([]int, error) {
	var numbers []int
	for entry := range strings.SplitSeq(text, ",") {
		number, err := strconv.Atoi(entry)
		if err != nil || number < 1 || number > most {
			return nil, fmt.Errorf("%q is not a number of 1 to %d", entry, most)
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

// parseSteps reads changes of scheme such as "rs(4,1)->rs(5,1);rep(3)->rs(4,2)".
func parseSteps(text string) ([]step, error) {
	var steps []step
	for entry := range strings.SplitSeq(text, ";") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		from, to, found := strings.Cut(entry, "->")
		if !found {
			return nil, fmt.Errorf("%q: want two schemes, such as rs(4,1)->rs(5,1)", entry)
		}
		var s step
		var err error
		if s.from, err = stripe.ParseScheme(strings.TrimSpace(from)); err != nil {
			return nil, err
		}
		if s.to, err = stripe.ParseScheme(strings.TrimSpace(to)); err != nil {
			return nil, err
		}
		if err := s.ladder().Validate(); err != nil {
			return nil, err
		}
		if slices.Contains(steps, s) {
			return nil, fmt.Errorf("%s is given twice", s)
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func (s step) ladder() stripe.Ladder { return stripe.Ladder{s.from, s.to} }

// nodes is how many nodes a group of the step's ladder lies on.
func (s step) nodes() int { return s.ladder().Width() + s.ladder().MaxParity() }

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/restripe/restripe/e2e/bench/provenance"
)

const document = "docs/benchmarks/clients.md"

// part is something that is measured, for a section of the page.
type part struct {
	name    string
	targets func(b *bench) int // that are loaded in a round
	section func(ctx context.Context, b *bench) (string, error)
}

// parts are what is measured, in this order.
var parts = []part{
	{"protocols", (*bench).protocolTargets, reported((*bench).protocols, (*bench).reportProtocols)},
	{"ycsb", (*bench).ycsbTargets, reported((*bench).ycsb, (*bench).reportYCSB)},
	{"erasures", (*bench).erasureLoads, reported((*bench).erasures, (*bench).reportErasures)},
	{"crowd", (*bench).crowdTargets, reported((*bench).crowd, (*bench).reportCrowd)},
	{"puts", (*bench).putTargets, reported((*bench).puts, (*bench).reportPuts)},
	{"large", (*bench).largeTargets, reported((*bench).large, (*bench).reportLarge)},
	{"s3", (*bench).s3Targets, reported((*bench).s3, (*bench).reportS3)},
	{"memory", (*bench).memoryTargets, reported((*bench).memory, (*bench).reportMemory)},
}

// partNames are the names of all parts.
func partNames() (names []string) {
	for _, one := range parts {
		names = append(names, one.name)
	}
	return names
}

// reported measures and writes about it.
func reported[R any](
	measure func(*bench, context.Context) (R, error), report func(*bench, R) string,
) func(context.Context, *bench) (string, error) {
	return func(ctx context.Context, b *bench) (string, error) {
		results, err := measure(b, ctx)
		if err != nil {
			return "", err
		}
		return report(b, results), nil
	}
}

// options are what the program is told.
type options struct {
	only           []string // parts
	write          bool
	before         string
	seconds        float64
	rounds         int
	clients        int
	records        int
	overHTTP       bool
	percent, shape float64 // of erasures
	many           int
	idle, busy     int
	command        string // what was typed
}

// parseOptions reads the command line.
func parseOptions(arguments []string, messages io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("clients", flag.ContinueOnError)
	flags.SetOutput(messages)
	only := ""
	flags.BoolVar(&o.write, "write", false, "write "+document+", or with -only the sections of those parts in it")
	flags.StringVar(&only, "only", strings.Join(partNames(), ","), "parts to measure")
	flags.Float64Var(&o.seconds, "seconds", 2, "seconds of a measurement, about")
	flags.IntVar(&o.rounds, "rounds", 3, "rounds")
	flags.StringVar(&o.before, "before", "", "program of an earlier commit, whose HTTP is measured beside")
	flags.IntVar(&o.clients, "clients", 16, "clients of the parts ycsb and puts")
	flags.IntVar(&o.records, "records", 10_000, "records of the parts ycsb, erasures, crowd and puts")
	flags.BoolVar(&o.overHTTP, "http", false, "measure YCSB over HTTP too")
	flags.Float64Var(&o.percent, "erasures", 1,
		"percent of reads that find a block lost in the parts erasures and crowd; 0: neither is measured")
	flags.Float64Var(&o.shape, "shape", 0.75, "shape of the Weibull distribution from one erasure to the next")
	flags.IntVar(&o.many, "many", 512, "clients of the part crowd")
	flags.IntVar(&o.idle, "idle", 10_000, "idle connections of the part memory")
	flags.IntVar(&o.busy, "busy", 1000, "busy connections of the part memory")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	for name, value := range map[string]int{
		"rounds": o.rounds, "clients": o.clients, "records": o.records, "many": o.many, "idle": o.idle, "busy": o.busy,
	} {
		if value < 1 {
			return o, fmt.Errorf("-%s %d: give 1 or more", name, value)
		}
	}
	if o.seconds < 0.1 || o.percent < 0 || o.percent > 50 || o.shape < 0.1 || o.shape > 10 {
		return o, fmt.Errorf("-seconds %g -erasures %g -shape %g: give at least 0.1 seconds, 0 to 50 percent, and a shape of 0.1 to 10",
			o.seconds, o.percent, o.shape)
	}
	for name := range strings.SplitSeq(only, ",") {
		if names := partNames(); !slices.Contains(names, name) {
			return o, fmt.Errorf("-only %q: there are %s", name, strings.Join(names, ", "))
		}
		if slices.Contains(o.only, name) {
			return o, fmt.Errorf("-only has %s twice", name)
		}
		o.only = append(o.only, name)
	}
	o.command = "go run " + buildTags + "./e2e/bench/clients"
	flags.Visit(func(f *flag.Flag) {
		switch f.Name {
		case "write", "http":
			o.command += " -" + f.Name
		case "before":
			o.command += " -before PROGRAM"
		default:
			o.command += " -" + f.Name + " " + f.Value.String()
		}
	})
	return o, nil
}

// whole reports whether all parts are measured, so that the page is written anew.
func (o *options) whole() bool { return len(o.only) == len(parts) }

// bench is one run.
type bench struct {
	options
	directory, binary string
	files             uint64 // that may be open
	peers             peers
	messages          io.Writer

	began, measuring time.Time // of the run, of the first part
	done, planned    int       // measurements
}

func main() {
	o, err := parseOptions(os.Args[1:], os.Stderr)
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "clients:", err)
		}
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &bench{options: o, messages: os.Stderr, began: time.Now()}
	if err := b.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

// say tells what is done.
func (b *bench) say(format string, values ...any) {
	fmt.Fprintf(b.messages, "%7.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, values...))
}

// progress tells of a measurement that is done, and when all will be, if what is left takes as long as what is done did.
func (b *bench) progress(format string, values ...any) {
	b.done++
	left := time.Duration(float64(time.Since(b.measuring)) / float64(b.done) * float64(b.planned-b.done))
	b.say("%d of %d, %s left: %s", b.done, b.planned, left.Round(time.Second), fmt.Sprintf(format, values...))
}

func (b *bench) run(ctx context.Context) (err error) {
	source, err := provenance.Read(b.command)
	if err != nil {
		return err
	}
	if b.files, err = raiseOpenFiles(uint64(max(b.idle, b.many)) + 2000); err != nil {
		return err
	}
	if b.directory, err = os.MkdirTemp("", "restripe-clients-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.directory)) }()
	b.binary = filepath.Join(b.directory, "restripe")
	b.say("building restripe")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.binary, "./tui/restripe-agent").CombinedOutput(); err != nil {
		return fmt.Errorf("building restripe: %w\n%s", err, out)
	}
	defer func() { err = errors.Join(err, b.peers.stop()) }()
	if err := b.peers.start(ctx, b.directory); err != nil {
		return err
	}
	text := head(source)
	page := []byte(text)
	if b.write && !b.whole() {
		if page, err = os.ReadFile(document); errors.Is(err, os.ErrNotExist) {
			page, err = []byte(text), nil
		}
		if err != nil {
			return err
		}
	}
	chosen := slices.DeleteFunc(slices.Clone(parts), func(p part) bool { return !slices.Contains(b.only, p.name) })
	for _, one := range chosen {
		b.planned += one.targets(b) * b.rounds
	}
	b.measuring = time.Now()
	for _, one := range chosen {
		if err := b.peers.empty(); err != nil {
			return fmt.Errorf("emptying the plain servers: %w", err)
		}
		section, err := one.section(ctx, b)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		if !b.whole() {
			section += from(source)
		}
		text += "\n" + section
		page = []byte(withSection(string(page), section))
		if b.write { // what was measured is kept whatever becomes of the rest
			if err := os.WriteFile(document, page, 0o644); err != nil {
				return err
			}
		}
	}
	_, err = io.WriteString(os.Stdout, text)
	return err
}

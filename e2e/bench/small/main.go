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

const document = "docs/benchmarks/small-objects.md"

// part is something that is measured.
type part struct {
	name    string
	section func(ctx context.Context, b *bench) (string, error) // measures it, for the page
}

// parts are what is measured, in this order.
var parts = []part{
	{"dead", reported((*bench).dead, reportDead)},
	{"lone", reported((*bench).lone, reportLone)},
	{"many", reported((*bench).many, reportMany)},
	{"codes", reported((*bench).codes, reportCodes)},
	{"keys", reported((*bench).byKeys, reportKeys)},
	{"batches", reported((*bench).byBatch, reportBatches)},
	{"rates", reported((*bench).rates, reportRates)},
	{"flat", reported((*bench).flat, reportFlat)},
	{"footprint", reported((*bench).footprint, reportFootprint)},
	{"popularity", func(_ context.Context, b *bench) (string, error) {
		return reportPopularity(b.popularity(), b.objects), nil
	}},
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
	measure func(*bench, context.Context) (R, error), report func(R) string,
) func(context.Context, *bench) (string, error) {
	return func(ctx context.Context, b *bench) (string, error) {
		results, err := measure(b, ctx)
		if err != nil {
			return "", err
		}
		return report(results), nil
	}
}

// options are what the program is told.
type options struct {
	directory                     string
	only                          []string // parts
	write                         bool
	objects, puts, rounds, second int // second: seconds of a pass
	writes, lasting, held         int // lasting: seconds of the part flat; held: the most objects of the part footprint
	command                       string
}

// alone reports whether only that is measured which is the same on every machine.
func (o *options) alone() bool { return slices.Equal(o.only, []string{"popularity"}) }

// whole reports whether all parts are measured, so that the page is written anew.
func (o *options) whole() bool { return len(o.only) == len(parts) }

// withSection puts a section in the place of the one with the same heading, or at the end.
func withSection(page, section string) string {
	heading, _, _ := strings.Cut(section, "\n")
	before, rest, found := strings.Cut(page, heading+"\n")
	if !found {
		return page + "\n" + section
	}
	if at := strings.Index(rest, "\n## "); at >= 0 {
		return before + section + rest[at:]
	}
	return before + section
}

// clientsAtOnce is how many clients the parts have that have many.
const clientsAtOnce = 64

// bench is one run.
type bench struct {
	options
	binary   string // the restripe program
	messages io.Writer
	began    time.Time
}

func main() {
	o, err := parseOptions(os.Args[1:], os.Stderr)
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "small:", err)
		}
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &bench{options: o, messages: os.Stderr, began: time.Now()}
	if err := b.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "small:", err)
		os.Exit(1)
	}
}

// parseOptions reads the command line.
func parseOptions(arguments []string, messages io.Writer) (o options, err error) {
	flags := flag.NewFlagSet("small", flag.ContinueOnError)
	flags.SetOutput(messages)
	only := ""
	flags.BoolVar(&o.write, "write", false, "write "+document+", or with -only the sections of those parts in it")
	flags.StringVar(&o.directory, "directory", os.TempDir(), "where clusters are made: the catalog is on that disk, objects are in memory")
	flags.StringVar(&only, "only", strings.Join(partNames(), ","), "parts to measure")
	flags.IntVar(&o.objects, "objects", 20_000, "objects of the parts dead and popularity")
	flags.IntVar(&o.puts, "puts", 300, "puts of a pass of the part lone")
	flags.IntVar(&o.second, "seconds", 5, "seconds of a pass of the part many")
	flags.IntVar(&o.rounds, "rounds", 3, "rounds of the parts lone and many")
	flags.IntVar(&o.writes, "writes", 2000, "puts of a run of the parts codes, keys, batches and footprint")
	flags.IntVar(&o.lasting, "lasting", 240, "seconds of the part flat")
	flags.IntVar(&o.held, "held", 100_000, "objects that the part footprint puts at most")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag", flags.Arg(0))
	}
	for name, value := range map[string]int{
		"objects": o.objects, "puts": o.puts, "seconds": o.second, "rounds": o.rounds, "writes": o.writes, "lasting": o.lasting, "held": o.held,
	} {
		if value < 1 {
			return o, fmt.Errorf("-%s %d; give 1 or more", name, value)
		}
	}
	for part := range strings.SplitSeq(only, ",") {
		if names := partNames(); !slices.Contains(names, part) {
			return o, fmt.Errorf("-only %q: there are %s", part, strings.Join(names, ", "))
		}
		if slices.Contains(o.only, part) {
			return o, fmt.Errorf("-only has %s twice", part)
		}
		o.only = append(o.only, part)
	}
	o.command = "go run ./e2e/bench/small"
	flags.Visit(func(f *flag.Flag) {
		if f.Name == "write" {
			o.command += " -write"
		} else {
			o.command += " -" + f.Name + " " + f.Value.String()
		}
	})
	return o, nil
}

// say reports progress.
func (b *bench) say(format string, values ...any) {
	fmt.Fprintf(b.messages, "%7.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, values...))
}

func (b *bench) run(ctx context.Context) (err error) {
	source, err := provenance.Read(b.command)
	if err != nil {
		return err
	}
	if b.directory, err = os.MkdirTemp(b.directory, "restripe-small-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.directory)) }()
	if !b.alone() { // else there is no cluster
		if err := b.build(ctx); err != nil {
			return err
		}
	}
	text := head(source)
	page := []byte(text)
	if b.write && !b.whole() {
		if page, err = os.ReadFile(document); err != nil {
			return err
		}
	}
	for _, one := range parts {
		if !slices.Contains(b.only, one.name) {
			continue
		}
		section, err := one.section(ctx, b)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		if !b.whole() && !b.alone() {
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

// build makes the program that is measured.
func (b *bench) build(ctx context.Context) error {
	b.say("building restripe")
	b.binary = filepath.Join(b.directory, "restripe")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.binary, "./tui/restripe-agent").CombinedOutput(); err != nil {
		return fmt.Errorf("building restripe: %w\n%s", err, out)
	}
	return nil
}

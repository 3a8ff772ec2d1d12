package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/restripe/restripe/agent/kernel"
)

const (
	leastRounds = 15
	document    = "../../../docs/benchmarks/kernel.md"
)

type options struct {
	rounds       int
	only         *regexp.Regexp
	write, quick bool
}

func main() {
	if err := run(os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "kernelbench:", err)
		os.Exit(1)
	}
}

func parseOptions(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("kernelbench", flag.ContinueOnError)
	flags.IntVar(&o.rounds, "rounds", 21, "rounds of every row, 15 at least")
	only := flags.String("only", "", "run the tables whose name matches this regular expression")
	flags.BoolVar(&o.write, "write", false, "write docs/benchmarks/kernel.md")
	flags.BoolVar(&o.quick, "quick", false, "measure for a third of the time, and fewer sizes from memory")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if o.rounds < leastRounds {
		return o, fmt.Errorf("-rounds %d: medians need at least %d rounds", o.rounds, leastRounds)
	}
	if o.write && (*only != "" || o.quick) {
		return o, errors.New("-write: the document holds a whole run; leave -only and -quick away")
	}
	var err error
	if o.only, err = regexp.Compile(*only); err != nil {
		return o, fmt.Errorf("-only: %w", err)
	}
	var names []string
	for _, part := range parts {
		if o.only.MatchString(part.name) {
			return o, nil
		}
		names = append(names, part.name)
	}
	return o, fmt.Errorf("-only %s: no table has such a name; there are %s", *only, strings.Join(names, ", "))
}

// parts are the tables by name, in the order of the document.
var parts = []struct {
	name string
	run  func(b *bench) (*section, error)
}{
	{"encode", (*bench).encode},
	{"delta", (*bench).delta},
	{"batch", (*bench).batch},
	{"sparse", (*bench).sparse},
	{"decode", (*bench).decode},
	{"patterns", (*bench).patterns},
	{"memory", (*bench).memory},
	{"crossover", (*bench).crossover},
	{"fingerprint", (*bench).fingerprint},
	{"sum", (*bench).applySum},
	{"allocation", (*bench).allocation},
}

func run(arguments []string) error {
	o, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	// One thread measures, and goroutines that a peer starts take turns with it.
	runtime.GOMAXPROCS(1)
	runtime.LockOSThread()
	p, err := readProvenance()
	if err != nil {
		return err
	}
	b := newBench(o)
	var sections strings.Builder
	for _, part := range parts {
		if !o.only.MatchString(part.name) {
			continue
		}
		s, err := part.run(b)
		if err != nil {
			return err
		}
		if err := s.print(io.MultiWriter(os.Stdout, &sections)); err != nil {
			return err
		}
	}
	head, err := b.head(p)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(os.Stdout, head); err != nil {
		return fmt.Errorf("writing where the numbers come from: %w", err)
	}
	if !o.write {
		return nil
	}
	text := head + "\n" + strings.TrimRight(sections.String(), "\n") + "\n"
	if err := os.WriteFile(document, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the document: %w", err)
	}
	return nil
}

func newBench(o options) *bench {
	b := &bench{rounds: o.rounds, span: 1500 * time.Microsecond, meter: newCycleMeter(), quick: o.quick,
		arena: &arena{bytes: arenaBytes(lastLevelCacheBytes())}, affine: affineBytesPerCycle(o.rounds)}
	if o.quick {
		b.span /= 3
	}
	return b
}

// pathText names the path of the kernel, and says whether it was chosen by hand.
func pathText() string {
	if os.Getenv(kernel.PathVariable) == "" {
		return kernel.Path()
	}
	return kernel.Path() + ", by " + kernel.PathVariable
}

// head is the title and the provenance.
func (b *bench) head(p provenance) (string, error) {
	version, err := versionOf("github.com/klauspost/reedsolomon")
	if err != nil {
		return "", err
	}
	frequency := "no row was measured"
	if len(b.frequencies) > 0 {
		frequency = fmt.Sprintf("%.2f GHz in the median round, %.2f to %.2f, by %s", b.frequencies.median(), b.frequencies.least(), b.frequencies.most(), b.meter.source)
	}
	affine := "none with 64-byte vectors: no ceilings"
	if b.affine > 0 {
		affine = fmt.Sprintf("%.0f bytes a cycle measured; ceilings are at 64", b.affine)
	}
	arenaText := "not used"
	if b.arena.memory != nil {
		arenaText = fmt.Sprintf("stripes taken in turn from %d MiB; the last-level cache has %d MiB", b.arena.bytes>>20, lastLevelCacheBytes()>>20)
	}
	return "# The kernel beside its peers\n\n" +
		"Package agent/kernel, klauspost/reedsolomon and ISA-L on the same blocks in one run, on one core.\n\n" +
		p.lines(
			"command: `make bench-kernel`",
			"kernel path: "+pathText(),
			"klauspost/reedsolomon "+version+", one goroutine",
			fmt.Sprintf("ISA-L %s, its calls repeated in C (a call from Go to C would add %.0f ns)", isalVersion(), callNanoseconds(b.rounds)),
			"frequency: "+frequency,
			"affine products: "+affine,
			"from memory: "+arenaText,
			fmt.Sprintf("rounds: %d; the contenders of a row take turns, each for about %.1f ms of the thread's processor time in a round", b.rounds, b.span.Seconds()*1000),
			"results checked before measuring: every byte against the kernel, and the kernel against the definition",
		), nil
}

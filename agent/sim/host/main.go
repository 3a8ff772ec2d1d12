// Command host builds the guest program and runs seeds of the simulation, each in a process of its own, over all processors.
// It replays one seed with its journal, or tries seeds for as long as it is told to, and prints every seed that failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"time"

	"github.com/restripe/restripe/agent/sim"
)

type options struct {
	guest    string
	size     sim.Size
	seed     uint64
	from     uint64
	count    uint64
	duration time.Duration
	workers  int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(1)
	}
}

// seedsThatDo is in how many seeds everything there is to try is tried.
const seedsThatDo = 150

var errFailed = errors.New("seeds have failed")

func run(ctx context.Context, arguments []string, out io.Writer) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	if err := build(ctx, o.guest, nil); err != nil {
		return err
	}
	m := &machine{guest: o.guest}
	if o.seed != 0 {
		return replay(ctx, m, o, out)
	}
	t := m.try(ctx, o, watch{
		failed:   func(f failure) { fmt.Fprintln(out, f) },
		progress: func(t *tally) { fmt.Fprintln(os.Stderr, t) },
	})
	fmt.Fprintln(out, t)
	if t.seeds >= seedsThatDo && (t.commits == 0 || t.compactions == 0 || t.splices == 0) {
		return fmt.Errorf("%w: nothing was committed, or nothing compacted or spliced, in %d seeds, so nothing was tried",
			errFailed, t.seeds)
	}
	if len(t.failures) > 0 {
		return fmt.Errorf("%w: replay one with make sim SEED=%d SIZE=%s", errFailed, t.failures[0].Seed, o.size)
	}
	return nil
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("host", flag.ContinueOnError)
	flags.StringVar(&o.guest, "guest", "", "where the guest program is built")
	size := flags.String("size", string(sim.Short), "size of the runs: short or long")
	flags.Uint64Var(&o.seed, "seed", 0, "replay this seed, from 1, and print its journal")
	flags.Uint64Var(&o.from, "from", 1, "first seed to try")
	flags.Uint64Var(&o.count, "count", 0, "how many seeds to try; 0: until the duration is over")
	flags.DurationVar(&o.duration, "duration", 0, "how long to try seeds; 0: until the count is reached")
	flags.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "seeds at a time")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	o.size = sim.Size(*size)
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.guest == "":
		return o, fmt.Errorf("-guest is missing: say where to build the guest program")
	case o.size != sim.Short && o.size != sim.Long:
		return o, fmt.Errorf("-size %q: want %s or %s", o.size, sim.Short, sim.Long)
	case o.workers < 1:
		return o, fmt.Errorf("-workers %d: want 1 or more", o.workers)
	case o.seed == 0 && o.count == 0 && o.duration == 0:
		return o, fmt.Errorf("nothing to do: give -seed, -count or -duration")
	}
	return o, nil
}

func replay(ctx context.Context, m *machine, o options, out io.Writer) error {
	done, err := m.run(ctx, o.seed, o.size, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "journal %s\n", done.Hash)
	if done.Violation != "" {
		return fmt.Errorf("%w: %s", errFailed, done.Violation)
	}
	return nil
}

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
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// What is written: the rates have a page of their own, the sizes a part of one.
const (
	ratesDocument = "docs/benchmarks/catalog.md"
	sizesDocument = "docs/scale.md"
)

// bench is what is measured, and where.
type bench struct {
	directory string
	rounds    int
	phase     time.Duration
	objects   int64
	report    bool   // what is kept
	only      string // engine whose sizes are measured; empty: all
	kept      string // file in which what was measured of sizes is kept
	nodes     int
	most      map[string]*int64 // objects in one catalog, by engine
}

func main() {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, "catalog:", err)
		os.Exit(1)
	}
}

func start() error {
	if text := os.Getenv(memberVariable); text != "" {
		return beMember(text)
	}
	if text := os.Getenv(errandVariable); text != "" {
		return beClient(text)
	}
	b := bench{most: map[string]*int64{}}
	write := flag.Bool("write", false, "write "+ratesDocument+", or with -objects the tables of "+sizesDocument)
	flag.StringVar(&b.directory, "directory", "", "where the catalogs are made, on the disk to be measured; default: with temporary files")
	flag.IntVar(&b.rounds, "rounds", 3, "rounds over all engines")
	flag.DurationVar(&b.phase, "phase", 4*time.Second, "how long puts are measured at a time, and gets as well")
	flag.IntVar(&b.nodes, "nodes", 100, "nodes of the cluster")
	flag.Int64Var(&b.objects, "objects", 0,
		"measure catalogs of up to so many objects instead of rates: 100000, and ten times as many until there")
	flag.StringVar(&b.kept, "keep", "", "file to keep what was measured of catalogs in: the same command goes on after it was broken off")
	flag.StringVar(&b.only, "engine", "", "measure catalogs of this engine alone: "+strings.Join(sized, "; "))
	flag.BoolVar(&b.report, "report", false, "measure nothing more, and report what -keep has")
	b.most["Redis"] = flag.Int64("redis", 1_000_000, "objects in Redis at most, which has them in memory")
	b.most["etcd, 1 member"] = flag.Int64("etcd", 1_000_000, "objects in etcd at most, whose database is to have 8 GiB at most")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return b.run(ctx, *write)
}

func (b *bench) run(ctx context.Context, write bool) (err error) {
	if b.directory, err = os.MkdirTemp(b.directory, "restripe-catalog-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.directory)) }()
	if err := os.Chmod(b.directory, 0o755); err != nil { // PostgreSQL is another user
		return err
	}
	from, err := b.provenance()
	if err != nil {
		return err
	}
	if b.objects > 0 {
		text, err := b.sizes(ctx, from)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(os.Stdout, text); err != nil || !write {
			return err
		}
		return replaceMeasured(sizesDocument, text)
	}
	tables, err := b.rates(ctx)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(os.Stdout, ratesHead+from+tables); err != nil || !write {
		return err
	}
	return os.WriteFile(ratesDocument, []byte(ratesHead+from+tables), 0o644)
}

// What stands around the part of a document that a run writes.
const (
	measuredBegin = "<!-- what follows is written by e2e/bench/catalog -->\n"
	measuredEnd   = "<!-- and ends here -->\n"
)

// replaceMeasured puts what was measured into a document, in place of what was measured before.
func replaceMeasured(document, measured string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(text), measuredBegin)
	_, after, ends := strings.Cut(rest, measuredEnd)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for what was measured", document)
	}
	return os.WriteFile(document, []byte(before+measuredBegin+"\n"+measured+measuredEnd+after), 0o644)
}

// provenance says where the numbers come from.
func (b *bench) provenance() (string, error) {
	commit, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		commit = []byte("unknown: not run in a checkout")
	}
	information, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "", err
	}
	processor := "unknown"
	for line := range strings.Lines(string(information)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			processor = strings.TrimSpace(value)
			break
		}
	}
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return "", err
	}
	kilobytes, err := field(memory, "MemTotal:")
	if err != nil {
		return "", err
	}
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(load), " ")
	sync, err := b.syncTimes()
	if err != nil {
		return "", err
	}
	command := "go run ./e2e/bench/catalog -write"
	flag.Visit(func(f *flag.Flag) {
		if f.Name != "write" && f.Name != "directory" && f.Name != "keep" && f.Name != "report" {
			command += " -" + f.Name + " " + f.Value.String()
		}
	})
	servers := []string{"etcd 3.7.0"}
	redis, err := exec.Command("redis-server", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking Redis for its version: %w", err)
	}
	if words := strings.Fields(string(redis)); len(words) > 2 {
		servers = append(servers, "Redis "+strings.TrimPrefix(words[2], "v="))
	}
	folder, err := postgresFolder()
	if err != nil {
		return "", err
	}
	postgres, err := exec.Command(folder+"/postgres", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking PostgreSQL for its version: %w", err)
	}
	if words := strings.Fields(string(postgres)); len(words) > 2 {
		servers = append(servers, "PostgreSQL "+words[2])
	}
	slices.Sort(servers)
	return strings.Join([]string{
		fmt.Sprintf("- date: %s, commit: %s, %s",
			time.Now().UTC().Format("2006-01-02 15:04 MST"), strings.TrimSpace(string(commit)), runtime.Version()),
		fmt.Sprintf("- machine: %s, %d cores, %.0f GiB; load average before the run: %s (with more than about 0.3 something else "+
			"was running: rates and times are then preliminary, processor times are not); a write of 4 KiB is on the disk after %s "+
			"(median of %d; the slowest %s)",
			processor, runtime.NumCPU(), float64(kilobytes)/(1<<20), first, short(sync.Median), syncs, short(sync.Slowest)),
		"- servers: " + strings.Join(servers, ", ") + ", as they come from the distribution but for what the head says",
		"- command: `" + command + "`",
		"", "",
	}, "\n"), nil
}

// syncs is how many writes are made durable to learn how long the disk takes.
const syncs = 200

func (b *bench) syncTimes() (_ times, err error) {
	file, err := os.CreateTemp(b.directory, "sync")
	if err != nil {
		return times{}, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	var all []time.Duration
	for range syncs {
		began := time.Now()
		if _, err := file.Write(make([]byte, 4096)); err != nil {
			return times{}, err
		}
		if err := file.Sync(); err != nil {
			return times{}, err
		}
		all = append(all, time.Since(began))
	}
	return timesOf(all), nil
}

// short is a duration with three digits.
func short(d time.Duration) string {
	switch {
	case d >= 100*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%.3g µs", float64(d)/float64(time.Microsecond))
}

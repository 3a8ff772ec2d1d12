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
	"strings"
	"syscall"
	"time"

	"github.com/restripe/restripe/e2e/bench/provenance"
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
	command := "go run ./e2e/bench/catalog -write"
	flag.Visit(func(f *flag.Flag) {
		if f.Name != "write" && f.Name != "directory" && f.Name != "keep" && f.Name != "report" {
			command += " -" + f.Name + " " + f.Value.String()
		}
	})
	source, err := provenance.Read(command)
	if err != nil {
		return "", err
	}
	sync, err := b.syncTimes()
	if err != nil {
		return "", err
	}
	folder, err := postgresFolder()
	if err != nil {
		return "", err
	}
	redis, err := releaseOf("redis-server")
	if err != nil {
		return "", err
	}
	postgres, err := releaseOf(folder + "/postgres")
	if err != nil {
		return "", err
	}
	return source.List("rates and times are then preliminary, sizes and processor times are not",
		fmt.Sprintf("disk: a write of 4 KiB is on it after %s (median of %d; the slowest %s)", short(sync.Median), syncs, short(sync.Slowest)),
		fmt.Sprintf("servers: PostgreSQL %s, Redis %s, etcd 3.7.0, as they come from the distribution but for what the head says",
			postgres, strings.TrimPrefix(redis, "v="))) + "\n", nil
}

// releaseOf is what a server says that it is.
func releaseOf(program string) (string, error) {
	said, err := exec.Command(program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("asking %s for its release: %w", program, err)
	}
	words := strings.Fields(string(said))
	if len(words) < 3 {
		return "", fmt.Errorf("asking %s for its release: it says %q", program, said)
	}
	return words[2], nil
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

//go:build linux && ceph

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
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/restripe/restripe/e2e/bench/provenance"
)

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// options say what to measure.
type options struct {
	quick       bool
	write       bool
	objects     int
	objectBytes int
	documents   string
	command     string // as typed, for the provenance
}

// userBytes is the size of all objects together.
func (o options) userBytes() int64 { return int64(o.objects) * int64(o.objectBytes) }

func parseOptions(arguments []string, messages io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("ceph", flag.ContinueOnError)
	flags.SetOutput(messages)
	flags.BoolVar(&o.quick, "quick", false, "few and small objects: shows that it works, not what it costs")
	flags.BoolVar(&o.write, "write", false, "write the results to the directory of -documents")
	flags.IntVar(&o.objects, "objects", 200, "objects of each step")
	flags.IntVar(&o.objectBytes, "object-bytes", 4<<20, "bytes of such an object, one group each under Restripe")
	flags.StringVar(&o.documents, "documents", "docs/benchmarks", "where -write puts the page")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q is no flag; run with -help for the list", flags.Arg(0))
	}
	o.command = strings.Join(append([]string{"go run -tags ceph ./e2e/bench/ceph"}, arguments...), " ")
	if o.quick {
		o.objects, o.objectBytes = 12, 1<<20
	}
	if o.objects < 1 || o.objectBytes < 64<<10 || o.objectBytes > 64<<20 {
		return o, fmt.Errorf("%d objects of %d bytes: want at least one of 64 KiB to 64 MiB", o.objects, o.objectBytes)
	}
	return o, nil
}

// insideVariable tells the second start of this program that it is in its own namespace, and where its files are.
const insideVariable = "RESTRIPE_BENCH_CEPH_INSIDE"

// execute runs the bench and returns the exit status. Results go to out, progress and errors to messages.
func execute(arguments []string, out, messages io.Writer) int {
	o, err := parseOptions(arguments, messages)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(messages, "bench:", err)
		return 2
	}
	if base := os.Getenv(insideVariable); base != "" {
		err = runInside(base, o, out, messages)
	} else {
		err = runOutside(arguments, out, messages)
	}
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		return ended.ExitCode() // it has said why
	case err != nil:
		fmt.Fprintln(messages, "bench:", err)
		return 1
	}
	return 0
}

// runOutside builds the product and starts this program again in a network namespace of its own.
func runOutside(arguments []string, out, messages io.Writer) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("this bench makes a network namespace, which takes root: run it as root, for example with sudo -E")
	}
	base, err := os.MkdirTemp("", "bench-ceph-") // sockets have short paths
	if err != nil {
		return fmt.Errorf("making a directory for the bench: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(base)) }()
	build := exec.Command("go", "build", "-tags", "ceph", "-o", filepath.Join(base, "restripe"), "github.com/restripe/restripe")
	build.Stdout, build.Stderr = messages, messages
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the restripe program: %w; run the bench inside the repository", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	runtime.LockOSThread() // the kernel ends the process inside with the thread that started it
	defer runtime.UnlockOSThread()
	inside := exec.Command(self, arguments...)
	inside.Env = append(os.Environ(), insideVariable+"="+base)
	inside.Stdout, inside.Stderr = out, messages
	inside.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGTERM}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM) // the one inside ends by itself, and this one with it
	defer signal.Stop(interrupts)
	return inside.Run()
}

// runInside measures.
func runInside(base string, o options, out, messages io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if text, err := exec.CommandContext(ctx, "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("starting the loopback device: %w: %s; it takes iproute2", err, text)
	}
	source, err := provenance.Read(o.command)
	if err != nil {
		return err
	}
	release, err := cephRelease()
	if err != nil {
		return err
	}
	b := &bench{options: o, base: base, messages: messages, began: time.Now(), objects: newCorpus(o.objects, o.objectBytes)}
	var steps []step
	for _, way := range []func(context.Context) ([]step, error){b.native, b.restripe} {
		measured, err := way(ctx)
		if err != nil {
			return err
		}
		steps = append(steps, measured...)
	}
	page := report(source, release, o, steps)
	if _, err := io.WriteString(out, page); err != nil {
		return fmt.Errorf("printing results: %w", err)
	}
	if !o.write {
		return nil
	}
	if err := os.WriteFile(filepath.Join(o.documents, "ceph.md"), []byte(page), 0o644); err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	return nil
}

// bench is one run.
type bench struct {
	options  options
	base     string // directory that ends with the bench
	messages io.Writer
	began    time.Time
	objects  corpus
}

// say reports progress.
func (b *bench) say(format string, values ...any) {
	fmt.Fprintf(b.messages, "%7.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, values...))
}

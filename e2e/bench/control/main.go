package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"syscall"

	"github.com/restripe/restripe/operator/apiserver"
)

// serveVariable makes the program an API server on the directory it names, until its standard input ends.
const serveVariable = "RESTRIPE_BENCH_SERVE"

const document = "docs/benchmarks/operator.md"

func main() {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, "control:", err)
		os.Exit(1)
	}
}

func start() error {
	if directory := os.Getenv(serveVariable); directory != "" {
		return serve(directory)
	}
	write := flag.Bool("write", false, "write "+document)
	size := scale{}
	flag.IntVar(&size.policies, "policies", 1000, "policies on one backend")
	flag.IntVar(&size.nodes, "nodes", 100, "nodes of the backend")
	profile := flag.String("profile", "", "write a processor profile of the operator to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return profiled(*profile, func() error { return run(ctx, size, *write) })
}

// profiled runs something under the profiler, if there is a file to write to.
func profiled(path string, run func() error) (err error) {
	if path == "" {
		return run()
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("writing the profile: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := pprof.StartCPUProfile(file); err != nil {
		return fmt.Errorf("starting the profile: %w", err)
	}
	defer pprof.StopCPUProfile()
	return run()
}

func serve(directory string) (err error) {
	server, err := apiserver.Start(context.Background(), apiserver.Options{Directory: directory, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	fmt.Println(server.Kubeconfig())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// scale is how much is declared.
type scale struct{ policies, nodes int }

func run(ctx context.Context, size scale, write bool) (err error) {
	beginning, err := head(size)
	if err != nil {
		return err
	}
	s, err := newStage(ctx, size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var text strings.Builder
	text.WriteString(beginning)
	for _, part := range []func(context.Context) (string, error){s.many, s.large} {
		report, err := part(ctx)
		if err != nil {
			return err
		}
		text.WriteString(report)
	}
	if _, err := io.WriteString(os.Stdout, text.String()); err != nil || !write {
		return err
	}
	if err := os.WriteFile(document, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

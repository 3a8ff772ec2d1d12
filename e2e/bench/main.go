//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/restripe/restripe/e2e/bench/provenance"
)

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// execute runs the bench and returns the exit status. Results go to out, progress and errors to messages.
func execute(arguments []string, out, messages io.Writer) int {
	if len(arguments) > 0 && arguments[0] == relayCommand {
		if err := relay(arguments[1:], os.Stdin, out); err != nil {
			fmt.Fprintln(messages, "bench:", err)
			return 1
		}
		return 0
	}
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
		err = runOutside(arguments, o, out, messages)
	}
	var ended *insideEnded
	switch {
	case errors.As(err, &ended):
		return ended.status // it has said why
	case err != nil:
		fmt.Fprintln(messages, "bench:", err)
		return 1
	}
	return 0
}

// runInside measures, in the namespaces made by runOutside.
func runInside(base string, o options, out, messages io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := furnish(ctx, base); err != nil {
		return fmt.Errorf("preparing the namespaces: %w", err)
	}
	b := &bench{
		options: o, binary: filepath.Join(base, binaryName), state: filepath.Join(base, stateName),
		messages: messages, began: time.Now(),
	}
	source, err := provenance.Read(o.command)
	if err != nil {
		return err
	}
	if o.parts[partTransitions] {
		results, err := b.transitions(ctx)
		if err != nil {
			return fmt.Errorf("measuring transitions: %w", err)
		}
		if err := publish(out, o, "transitions.md", reportTransitions(source, o, results)); err != nil {
			return err
		}
	}
	if o.parts[partDataPath] {
		results, err := b.dataPath(ctx)
		if err != nil {
			return fmt.Errorf("measuring the data path: %w", err)
		}
		if err := publish(out, o, "data-path.md", reportDataPath(source, o, results)); err != nil {
			return err
		}
	}
	if o.parts[partRepair] {
		results, err := b.repairs(ctx)
		if err != nil {
			return fmt.Errorf("measuring repair: %w", err)
		}
		if err := publish(out, o, "repair.md", reportRepair(source, o, results)); err != nil {
			return err
		}
	}
	if o.parts[partScrub] {
		runs, err := b.scrubs(ctx)
		if err != nil {
			return fmt.Errorf("measuring scrubs: %w", err)
		}
		if err := publish(out, o, "scrub.md", reportScrub(source, o, runs)); err != nil {
			return err
		}
	}
	if o.parts[partGrowth] {
		results, err := b.growth(ctx)
		if err != nil {
			return fmt.Errorf("measuring growth: %w", err)
		}
		if err := publish(out, o, "growth.md", reportGrowth(source, o, results)); err != nil {
			return err
		}
	}
	b.say("done")
	return nil
}

// bench is one run.
type bench struct {
	options  options
	binary   string // the restripe program
	state    string // directory in memory that ends with the bench
	messages io.Writer
	began    time.Time
	serial   int // directories handed out
}

// say reports progress.
func (b *bench) say(format string, values ...any) {
	fmt.Fprintf(b.messages, "%7.1fs  %s\n", time.Since(b.began).Seconds(), fmt.Sprintf(format, values...))
}

// directory makes a fresh directory; remove it to give its memory free.
func (b *bench) directory(name string) (string, error) {
	b.serial++
	path := filepath.Join(b.state, fmt.Sprintf("%02d-%s", b.serial, name))
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", fmt.Errorf("making a state directory: %w", err)
	}
	return path, nil
}

// publish prints a page and, where asked for, writes it to the documentation.
func publish(out io.Writer, o options, name, page string) error {
	if _, err := io.WriteString(out, page+"\n"); err != nil {
		return fmt.Errorf("printing results: %w", err)
	}
	if !o.write {
		return nil
	}
	if err := os.MkdirAll(o.documents, 0o755); err != nil {
		return fmt.Errorf("making the directory of the results: %w", err)
	}
	if err := os.WriteFile(filepath.Join(o.documents, name), []byte(page), 0o644); err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	return nil
}

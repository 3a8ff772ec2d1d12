//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/sqlite"
	"github.com/restripe/restripe/agent/gateway"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/mem"
)

// profileScheme is how the objects of the profile are kept, and profileRounds how often each is put and read.
const (
	profileScheme = "rs(4,2)"
	profileRounds = 8
)

// roleLabel marks the samples of a CPU profile with the role of the goroutine that was running.
const roleLabel = "role"

// profile is where CPU time goes by role and package, each operation on its own.
type profile struct {
	operation string
	role      string
	packages  []packageTime // most first
}

type packageTime struct {
	name    string
	seconds float64
}

// profiles runs a gateway and its agents inside the bench, over stores in memory and connections on loopback, and takes
// CPU profiles of puts and gets. Goroutines inherit the label of their role.
func (b *bench) profiles(ctx context.Context, objects corpus) (found []profile, err error) {
	b.say("profiling puts and gets, gateway and agents in one process")
	state, err := b.directory("profile")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	c, stop, err := startInside(ctx, state, dataPathAgents, nil, inMemory)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	carriers := make([]carrier, b.options.concurrency)
	for i := range carriers {
		carriers[i] = protectedClient{c, profileScheme}
	}
	for _, operation := range []string{"put", "get"} {
		path := filepath.Join(state, operation+".pprof")
		if err := profileInto(path, func() error {
			one := pass{operation: operation, way: profileScheme, repeats: profileRounds}
			return carryAll(ctx, carriers, &one, objects)
		}); err != nil {
			return nil, fmt.Errorf("profiling %s: %w", operation, err)
		}
		for _, role := range []string{"gateway", "agent"} {
			packages, err := timeByPackage(ctx, role, path)
			if err != nil {
				return nil, fmt.Errorf("reading the profile of %s: %w", operation, err)
			}
			found = append(found, profile{operation: operation, role: role, packages: packages})
		}
	}
	return found, nil
}

func profileInto(path string, work func() error) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return work()
}

// inRole runs work, and all goroutines it starts, under the label of a role.
func inRole(ctx context.Context, role string, work func(ctx context.Context) error) (err error) {
	pprof.Do(ctx, pprof.Labels(roleLabel, role), func(ctx context.Context) { err = work(ctx) })
	return err
}

// openStore opens the store of an agent.
type openStore func(ctx context.Context, id string) (store.Store, error)

func inMemory(context.Context, string) (store.Store, error) { return mem.New(0), nil }

// startInside runs so many agents and a gateway in this process; no classes are those built in. stop ends them.
func startInside(ctx context.Context, state string, agents int, classes []api.Class, open openStore) (_ *client.Client, stop func() error, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var ends []func() error
	stop = func() error {
		cancel()
		var errs []error
		for _, end := range slices.Backward(ends) {
			errs = append(errs, end())
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()
	silent := slog.New(slog.DiscardHandler)
	var members []catalog.Node
	if err := inRole(ctx, "agent", func(ctx context.Context) error {
		for i := range agents {
			blocks, err := open(ctx, nodeName(i))
			if err != nil {
				return err
			}
			ends = append(ends, blocks.Close)
			agent, err := node.New(node.Options{ID: block.NodeID(nodeName(i)), Store: blocks, Logger: silent})
			if err != nil {
				return err
			}
			address, ended, err := node.ListenAndServe(ctx, "127.0.0.1:0", agent, false)
			if err != nil {
				return errors.Join(err, agent.Close())
			}
			ends = append(ends, func() error { return errors.Join(<-ended, agent.Close()) })
			members = append(members, catalog.Node{ID: agent.ID(), Address: address.String()})
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	var address string
	if err := inRole(ctx, "gateway", func(ctx context.Context) error {
		engine, err := sqlite.Open(ctx, filepath.Join(state, "catalog.db"))
		if err != nil {
			return err
		}
		opened, err := catalog.Open(ctx, engine, catalog.Owner("profiled", "once"))
		if err != nil {
			return errors.Join(err, engine.Close())
		}
		ends = append(ends, opened.Close)
		g, err := gateway.New(ctx, gateway.Options{Catalog: opened, ID: "profiled", Start: "once", Classes: classes, Nodes: members, Logger: silent})
		if err != nil {
			return err
		}
		ends = append(ends, g.Close)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		server, ended := &http.Server{Handler: g.Handler()}, make(chan error, 1)
		go func() { ended <- server.Serve(listener) }()
		ends = append(ends, func() error {
			err := server.Close()
			if end := <-ended; !errors.Is(end, http.ErrServerClosed) {
				err = errors.Join(err, end)
			}
			return err
		})
		address = listener.Addr().String()
		return nil
	}); err != nil {
		return nil, nil, err
	}
	c, err := client.New(address)
	return c, stop, err
}

// timeByPackage sums up the CPU time of a role, or of everything if none is given, by package, most first. Several
// profiles count as one.
func timeByPackage(ctx context.Context, role string, paths ...string) ([]packageTime, error) {
	arguments := []string{"tool", "pprof", "-top", "-flat", "-unit=ms", "-nodecount=100000", "-nodefraction=0"}
	if role != "" {
		arguments = append(arguments, "-tagfocus="+roleLabel+"="+role)
	}
	command := exec.CommandContext(ctx, "go", append(arguments, paths...)...)
	var text, complaints bytes.Buffer
	command.Stdout, command.Stderr = &text, &complaints
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", command, err, strings.TrimSpace(complaints.String()))
	}
	return parseTop(&text)
}

// parseTop reads the listing of pprof -top: headings down to the one of the columns, then a function a line, as
// "flat flat% sum% cum cum% name", times in milliseconds.
func parseTop(text io.Reader) ([]packageTime, error) {
	all, err := io.ReadAll(text)
	if err != nil {
		return nil, fmt.Errorf("reading the listing: %w", err)
	}
	seconds, listing := map[string]float64{}, false
	for line := range strings.Lines(string(all)) {
		fields := strings.Fields(line)
		if !listing {
			listing = len(fields) > 1 && fields[0] == "flat" && fields[1] == "flat%"
			continue
		}
		if len(fields) < 6 {
			return nil, fmt.Errorf("line %q of the listing has %d columns, want 6", line, len(fields))
		}
		value, err := strconv.ParseFloat(strings.TrimSuffix(fields[0], "ms"), 64)
		if err != nil {
			return nil, fmt.Errorf("line %q of the listing: %w", line, err)
		}
		seconds[packageOf(fields[5])] += value / 1000
	}
	if !listing {
		return nil, errors.New("the listing has no headings of columns")
	}
	var packages []packageTime
	for name, total := range seconds {
		packages = append(packages, packageTime{name, total})
	}
	slices.SortFunc(packages, func(a, b packageTime) int {
		if a.seconds != b.seconds {
			return int(1e6*b.seconds) - int(1e6*a.seconds)
		}
		return strings.Compare(a.name, b.name)
	})
	return packages, nil
}

// packageOf returns the import path of a function's package: what stands before the first dot after the last slash.
// Type parameters may hold slashes of their own.
func packageOf(function string) string {
	name, _, _ := strings.Cut(function, "[")
	slash := strings.LastIndexByte(name, '/') + 1
	if dot := strings.IndexByte(name[slash:], '.'); dot >= 0 {
		return name[:slash+dot]
	}
	return name
}

package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/atomicfile"
	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/store/open"
	"github.com/restripe/restripe/agent/wire"
	"github.com/restripe/restripe/tui/cli/program"
)

// agentFlags are the flags of an agent.
type agentFlags struct {
	id, store, direct, listen, state string
	silence                          time.Duration
	tls                              *string
	remote                           *Remote
	lifeline                         *bool
	traces                           *traceFlags

	own *pki.Source // what tls names
}

// agentAddressFile is where an agent writes its address, inside its state directory.
const agentAddressFile = "agent.addr"

// Agent makes the command that runs an agent.
func Agent(s *program.Streams) *program.Server {
	var f agentFlags
	command := &cobra.Command{
		Use: "agent", Short: "Run an agent beside a store",
		Example: "  restripe agent --id n1 --store file:/srv/restripe --listen 127.0.0.1:7481\n" +
			"  restripe agent --id n2 --store redis://127.0.0.1:6379 --state /var/lib/restripe/n2\n" +
			"  restripe agent --config /etc/restripe/agent/n1.yaml",
		Args: cobra.NoArgs,
	}
	flags := command.Flags()
	flags.StringVar(&f.id, "id", "", "name of the node: 1 to 63 of a-z, 0-9 and - (required)")
	flags.StringVar(&f.store, "store", "", "store: file:DIRECTORY, memcached://host:port, redis://host:port, rediss://host:port or ceph:POOL?conf=FILE&keyring=FILE&user=NAME, "+
		"or @FILE with one of them; with a password it is in such a file, or in "+StoreVariable+" (required)")
	flags.StringVar(&f.direct, "direct", "", "where gateways may read the store by themselves, past the agent: memcached://host:port, "+
		"redis://host:port or rediss://host:port, or @FILE with one of them; with a password it is in such a file, or in "+DirectVariable+
		" (default: they may not)")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "address to listen on; port 0: any free one")
	flags.StringVar(&f.state, "state", "", "directory that gets the address, in "+agentAddressFile)
	flags.DurationVar(&f.silence, "gateway-silence", time.Minute,
		"how long the gateways that were obeyed must be silent before another one may delete blocks that none of them names")
	f.tls, f.remote, f.lifeline, f.traces = TLSFlag(command), RemoteFlag(command), lifelineFlag(command), newTraceFlags(command)
	return &program.Server{
		Command: command, Check: f.check, OnlyTyped: []string{launch.LifelineFlag},
		Serve: func(ctx context.Context) error {
			ctx, cancel := withLifeline(ctx, s, *f.lifeline)
			defer cancel()
			return serveAgent(ctx, s, &f)
		},
	}
}

// check looks at the flags and reads the files that they name.
func (f *agentFlags) check(report *program.Report) {
	if err := api.CheckNodeID(f.id); err != nil {
		report.Misuse("id", "--%w", err)
	}
	var err error
	if f.store, err = SecretAddress(report.Command(), "store", f.store, StoreVariable); err != nil {
		report.Add("store", err)
	} else if f.store == "" {
		report.Misuse("store", "say where the blocks go: --store file:DIRECTORY, memcached://host:port, redis://host:port or ceph:POOL")
	} else if err := open.Check(f.store); err != nil {
		report.Add("store", fmt.Errorf("--store: %w", err))
	}
	f.checkDirect(report)
	f.traces.check(report)
	report.Add("listen", f.remote.Check(report.Command(), "listen", f.listen, *f.tls != "", "give it a certificate with --tls"))
	f.own, err = Certificates(*f.tls, pki.RoleAgent)
	report.Add("tls", err)
}

// checkDirect looks at the address that gateways are told.
func (f *agentFlags) checkDirect(report *program.Report) {
	var err error
	if f.direct, err = SecretAddress(report.Command(), "direct", f.direct, DirectVariable); err != nil {
		report.Add("direct", err)
		return
	}
	scheme, _, _ := strings.Cut(f.direct, ":")
	switch {
	case f.direct == "":
	case scheme != "memcached" && scheme != "redis" && scheme != "rediss":
		report.Misuse("direct", "--direct %s: gateways read memcached and Redis by themselves, nothing else", open.Redact(f.direct))
	case strings.Contains(f.direct, "@") && *f.tls == "":
		report.Misuse("direct", "--direct has a password, which gateways are told over TLS alone: give the agent a certificate with --tls")
	default:
		if err := open.Check(f.direct); err != nil {
			report.Add("direct", fmt.Errorf("--direct: %w", err))
		}
	}
}

// agentMemory is what the collector keeps an agent's memory to: requests, messages and runs, each as much as they may hold.
const agentMemory = 512 << 20

// serveAgent runs an agent until ctx ends.
func serveAgent(ctx context.Context, s *program.Streams, f *agentFlags) (err error) {
	limitMemory(agentMemory)
	stop, err := f.traces.start(ctx, s, "restripe-agent", f.id)
	defer stop()
	if err != nil {
		return err
	}
	opened, err := open.Open(ctx, f.store)
	if err != nil {
		return fmt.Errorf("opening the store of %s: %w", f.id, err)
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	log := s.Log()
	n, err := node.New(node.Options{
		ID: block.NodeID(f.id), Store: opened, Logger: log, Silence: f.silence, Certificates: f.own, Release: program.Version(), Direct: f.direct,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	address, ended, err := node.ListenAndServe(serving, f.listen, n, *f.remote != RemoteNobody)
	if err != nil {
		return fmt.Errorf("listening for gateways and agents: %w", err)
	}
	if f.state != "" {
		if err := writeAddress(f.state, address.String()); err != nil {
			cancel()
			return errors.Join(err, <-ended)
		}
	}
	if err := s.Announce("agent", f.id, address.String()); err != nil {
		cancel()
		return errors.Join(err, <-ended)
	}
	program.Lives(serving, log, func(ctx context.Context) error { return answers(ctx, address.String(), f) })
	err = <-ended
	cancel()
	return err
}

// answers reports why the agent does not answer itself. One with certificates shakes hands; what it may be asked is for gateways.
func answers(ctx context.Context, address string, f *agentFlags) (err error) {
	if f.own != nil {
		conn, err := f.own.DialAgent(f.id)(ctx, address)
		if err != nil {
			return fmt.Errorf("the agent does not shake hands with itself: %w", err)
		}
		return conn.Close()
	}
	client := wire.NewClient(address)
	defer func() { err = errors.Join(err, client.Close()) }()
	if _, err := client.Call(ctx, wire.OpHello, wire.HelloRequest{}, nil, nil); errors.Is(err, wire.ErrUnreachable) || ctx.Err() != nil {
		return fmt.Errorf("the agent does not answer itself: %w", err)
	}
	return nil
}

// writeAddress leaves the address of an agent in its state directory, whole or not at all.
func writeAddress(directory, address string) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	return atomicfile.Write(filepath.Join(directory, agentAddressFile), []byte(address+"\n"))
}

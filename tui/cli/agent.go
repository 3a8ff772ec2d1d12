package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/atomicfile"
	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/node"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/store/open"
)

// agentFlags are the flags of `restripe agent`.
type agentFlags struct {
	id, store, listen, state string
	silence                  time.Duration
	tls                      *string
	remote                   *remote
	lifeline                 *bool
}

// agentAddressFile is where an agent writes its address, inside its state directory.
const agentAddressFile = "agent.addr"

func agentCommand(s *session) *cobra.Command {
	var f agentFlags
	command := &cobra.Command{
		Use: "agent", Short: "Run an agent beside a store",
		Example: "  restripe agent --id n1 --store file:/srv/restripe --listen 127.0.0.1:7481\n  restripe agent --id n2 --store redis://127.0.0.1:6379 --state /var/lib/restripe/n2",
		Args:    cobra.NoArgs,
	}
	flags := command.Flags()
	flags.StringVar(&f.id, "id", "", "name of the node: 1 to 63 of a-z, 0-9 and - (required)")
	flags.StringVar(&f.store, "store", "", "store: file:DIRECTORY, memcached://host:port, redis://host:port, rediss://host:port or ceph:POOL?conf=FILE&keyring=FILE&user=NAME, "+
		"or @FILE with one of them; with a password it is in such a file, or in "+storeVariable+" (required)")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "address to listen on; port 0: any free one")
	flags.StringVar(&f.state, "state", "", "directory that gets the address, in "+agentAddressFile)
	flags.DurationVar(&f.silence, "gateway-silence", time.Minute,
		"how long the gateways that were obeyed must be silent before another one may delete blocks that none of them names")
	f.tls, f.remote, f.lifeline = tlsFlag(command), remoteFlag(command), lifelineFlag(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := api.CheckNodeID(f.id); err != nil {
			return misuse(command, "--%w", err)
		}
		var err error
		if f.store, err = secretAddress(command, "store", f.store, storeVariable); err != nil {
			return err
		}
		if f.store == "" {
			return misuse(command, "say where the blocks go: --store file:DIRECTORY, memcached://host:port, redis://host:port or ceph:POOL")
		}
		if err := f.remote.check(command, "listen", f.listen, *f.tls != "", "give it a certificate with --tls"); err != nil {
			return err
		}
		ctx, cancel := s.withLifeline(command.Context(), *f.lifeline)
		defer cancel()
		return s.serveAgent(ctx, f)
	}
	return command
}

// agentMemory is what the collector keeps an agent's memory to: requests, messages and runs, each as much as they may hold.
const agentMemory = 512 << 20

// serveAgent runs an agent until ctx ends.
func (s *session) serveAgent(ctx context.Context, f agentFlags) (err error) {
	limitMemory(agentMemory)
	opened, err := open.Open(ctx, f.store)
	if err != nil {
		return fmt.Errorf("opening the store of %s: %w", f.id, err)
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	own, err := certificates(*f.tls, pki.RoleAgent)
	if err != nil {
		return err
	}
	n, err := node.New(node.Options{
		ID: block.NodeID(f.id), Store: opened, Logger: s.serverLog(), Silence: f.silence, Certificates: own, Release: versionText(),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	address, ended, err := node.ListenAndServe(serving, f.listen, n, *f.remote != remoteNobody)
	if err != nil {
		return fmt.Errorf("listening for gateways and agents: %w", err)
	}
	if f.state != "" {
		if err := writeAddress(f.state, address.String()); err != nil {
			cancel()
			return errors.Join(err, <-ended)
		}
	}
	if err := s.announce("agent", f.id, address.String()); err != nil {
		cancel()
		return errors.Join(err, <-ended)
	}
	return <-ended
}

// writeAddress leaves the address of an agent in its state directory, whole or not at all.
func writeAddress(directory, address string) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	return atomicfile.Write(filepath.Join(directory, agentAddressFile), []byte(address+"\n"))
}

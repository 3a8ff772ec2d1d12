package cli

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/launch"
)

func upCommand(s *session) *cobra.Command {
	options := launch.Options{}
	var kind string
	command := &cobra.Command{
		Use: "up", Short: "Run a whole cluster on this machine until interrupted",
		Long: "Run stores, agents and a gateway on this machine, until Ctrl-C. What dies is started again. The state directory keeps\n" +
			"everything, so that the next `restripe up` with the same directory goes on where this one ended; only memcached\n" +
			"keeps its contents in memory and loses them with its process.",
		Example: "  restripe up\n  restripe up --store redis --agents 15 --dir /var/lib/restripe --classes classes.yaml",
		Args:    cobra.NoArgs,
	}
	flags := command.Flags()
	flags.StringVar(&kind, "store", string(launch.StoreFile), "what each node keeps its blocks in: file, memcached or redis")
	flags.IntVar(&options.Agents, "agents", 14, "number of nodes")
	flags.IntVar(&options.Domains, "domains", 0, "failure domains the nodes are dealt to in turn (default: each node its own)")
	flags.StringVar(&options.Directory, "dir", "", "state directory (default restripe in the user's cache directory)")
	flags.StringVar(&options.ClassFile, "classes", "", "class file (default: one class for every key, ladder rep(3),rs(4,2),rs(12,2))")
	flags.StringVar(&options.Listen, "listen", defaultListen, "address of the gateway; port 0: any free one")
	allowRemote := remoteFlag(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		var err error
		if options.Store, err = launch.ParseStoreKind(kind); err != nil {
			return misuse(command, "--store: %w", err)
		}
		if err := checkListen(command, options.Listen, *allowRemote); err != nil {
			return err
		}
		options.AllowRemote = *allowRemote
		if options.Directory == "" {
			cache, err := os.UserCacheDir()
			if err != nil {
				return fmt.Errorf("choosing a state directory: %w; give one with --dir", err)
			}
			options.Directory = filepath.Join(cache, "restripe")
		}
		options.Logger = slog.New(slog.NewTextHandler(s.messages, nil))
		cluster, err := launch.Start(command.Context(), options)
		if err != nil {
			return fmt.Errorf("starting the cluster: %w", err)
		}
		if err := writeLines(s.out, upLines(cluster, options.Store)); err != nil {
			return joined(err, cluster.Stop())
		}
		<-command.Context().Done()
		fmt.Fprintln(s.messages, "stopping")
		return cluster.Stop()
	}
	return command
}

// upLines says what runs and how to use it.
func upLines(cluster *launch.Cluster, store launch.StoreKind) []string {
	lines := []string{
		fmt.Sprintf("gateway  http://%s", cluster.Gateway()),
		fmt.Sprintf("agents   %d over %s", len(cluster.Members()), store),
		"state    " + cluster.Directory() + " (address in gateway.addr, logs in logs/)",
		"",
		"Use it from another terminal:",
	}
	if cluster.Gateway() != defaultListen {
		lines = append(lines, "  export "+gatewayVariable+"="+cluster.Gateway())
	}
	return append(lines,
		"  restripe put ~/photos photos/",
		"  restripe transition start --to 'rs(4,2)' --class default --wait",
		"  restripe status --watch",
		"Ctrl-C stops everything.")
}

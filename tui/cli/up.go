package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/access"
	"github.com/restripe/restripe/agent/catalog/open"
	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/console"
	"github.com/restripe/restripe/operator/local"
	"github.com/restripe/restripe/tui/cli/daemon"
	"github.com/restripe/restripe/tui/cli/program"
)

func upCommand(s *session) *cobra.Command {
	options := launch.Options{}
	var ceph cephNodes
	var kind string
	var consoleListen string
	var withoutOperator bool
	command := &cobra.Command{
		Use: "up", Short: "Run a whole cluster on this machine until interrupted",
		Long: "Run stores, agents and a gateway on this machine, and a Kubernetes API server with the operator and the console, until Ctrl-C.\n" +
			"What dies is started again. The cluster is declared as the backend `local`, so that policies can name it. The state directory keeps\n" +
			"everything, so that the next `restripe up` with the same directory goes on where this one ended; only memcached\n" +
			"keeps its contents in memory and loses them with its process.\n" +
			"With --store ceph the nodes are pools of a Ceph cluster that runs already, see `restripe ceph init`; Ceph is left as it is.",
		Example: "  restripe up\n  restripe up --store redis --agents 20 --dir /var/lib/restripe --classes classes.yaml\n" +
			"  restripe up --store ceph --ceph-conf /etc/ceph/ceph.conf --keyring /etc/ceph/ceph.client.restripe.keyring",
		Args: cobra.NoArgs,
	}
	flags := command.Flags()
	flags.StringVar(&kind, "store", string(launch.StoreFile), "what each node keeps its blocks in: file, memcached, redis or ceph")
	flags.IntVar(&options.Agents, "agents", launch.DefaultAgents,
		"number of nodes (in a state directory that is there: as many as it has; over Ceph: one for each pool)")
	ceph.flags(flags)
	flags.IntVar(&options.Domains, "domains", 0, "failure domains the nodes are dealt to in turn (default: each node its own, over Ceph what its pool's tag says)")
	flags.StringVar(&options.Directory, "dir", "", "state directory (default restripe in the user's cache directory)")
	flags.StringVar(&options.ClassFile, "classes", "",
		"class file (default: one class for every key, ladder rep(3),rs(4,2),rs(12,2), or a narrower one that fits fewer nodes)")
	flags.BoolVar(&withoutOperator, "no-operator", false, "without API server, operator and console: nothing moves but by 'restripe transition'")
	flags.StringVar(&consoleListen, "console", defaultConsole, "loopback address of the console; port 0: any free one")
	flags.StringVar(&options.Catalog, "catalog", "", "catalog of the gateway: "+open.Addresses+", or @FILE with it (default: as the\n"+
		"directory had it last, and a file in one that is new)")
	flags.StringVar(&options.Listen, "listen", daemon.DefaultListen, "address of the gateway; port 0: any free one")
	flags.StringVar(&options.Redis, "redis", "", "address of the gateway for clients of Redis (default: a free port, the same at every start)")
	flags.StringVar(&options.Memcached, "memcached", "", "address of the gateway for clients of memcached (default: likewise)")
	flags.StringVar(&options.S3, "s3", "", "address of the gateway for clients of S3 (default: likewise)")
	flags.StringVar(&options.Users, "users", "", "file of people and programs: their tokens and access keys, and what they may do at the "+
		"gateway, which serves TLS then, and the console (default: whoever reaches them may do everything)")
	allowed := daemon.RemoteFlag(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		var err error
		if options.Store, err = launch.ParseStoreKind(kind); err != nil {
			return program.Misuse(command, "--store: %w", err)
		}
		if err := ceph.check(command, options.Store); err != nil {
			return err
		}
		for flag, address := range map[string]string{
			"listen": options.Listen, "redis": options.Redis, "memcached": options.Memcached, "s3": options.S3,
		} {
			if address == "" {
				continue
			}
			if err := allowed.Check(command, flag, address, options.Users != "", "name who may with --users"); err != nil {
				return err
			}
		}
		options.AllowRemote = *allowed != daemon.RemoteNobody
		if options.Users != "" {
			if _, err := access.Users(options.Users, nil); err != nil {
				return err
			}
		}
		nodes := options.Agents
		if !flags.Changed("agents") {
			options.Agents = 0
		}
		if options.Directory == "" {
			if options.Directory, err = stateDirectory(); err != nil {
				return err
			}
		}
		options.Logger = slog.New(slog.NewTextHandler(s.Messages, nil))
		if options.Store == launch.StoreCeph {
			if options.Ceph, err = ceph.find(command.Context()); err != nil {
				return err
			}
			nodes = len(options.Ceph.Pools)
		}
		options.Ladder = fittingLadder(nodes)
		var control *local.Options
		if !withoutOperator {
			if err := console.CheckListen(consoleListen, false, false, access.ByLocal); err != nil {
				return program.Misuse(command, "--console: %w", err)
			}
			control = &local.Options{
				Directory: options.Directory, Backend: localBackend, Logger: options.Logger, Listen: consoleListen,
				Console: localConsole(options.Directory, options.Users, options.Logger),
			}
		}
		m, err := startMachine(command.Context(), options, control)
		if err != nil {
			return withoutControl(err)
		}
		if err := program.WriteLines(s.Out, upLines(m, options.Store, options.Users)); err != nil {
			return joined(err, m.stop())
		}
		<-command.Context().Done()
		fmt.Fprintln(s.Messages, "stopping")
		return m.stop()
	}
	return command
}

// fittingLadder is the ladder of the class that a cluster of so many nodes begins with, where the gateway's own does not fit with
// a node to spare; empty where it does.
func fittingLadder(nodes int) string {
	if nodes >= launch.DefaultAgents {
		return ""
	}
	for survive := 2; survive >= 1; survive-- {
		for _, overhead := range []float64{1.5, 2} {
			if ladders, err := stripe.RecommendLadders(nodes, survive, overhead); err == nil {
				return ladders[0].Ladder.String()
			}
		}
	}
	return stripe.Replicas(min(nodes, 2)).String()
}

// withoutControl says which flags help where the control plane does not start.
func withoutControl(err error) error {
	switch {
	case errors.Is(err, local.ErrListen):
		return fmt.Errorf("%w; name another address with --console, 127.0.0.1:0 for any free port, or do without with --no-operator", err)
	case errors.Is(err, errControl):
		return fmt.Errorf("%w; --no-operator does without", err)
	}
	return err
}

// upLines says what runs and how to use it.
func upLines(m *machine, store launch.StoreKind, users string) []string {
	cluster := m.cluster
	lines := []string{
		"gateway  " + cluster.GatewayURL(),
		"         " + forRedis(cluster, users),
		"         " + forMemcached(cluster, users),
		"         " + forS3(cluster, users),
		fmt.Sprintf("agents   %d over %s", len(cluster.Members()), store),
		"state    " + cluster.Directory() + " (address in gateway.addr, logs in logs/)",
		"TLS      between gateway and agents, with certificates in " + filepath.Join(cluster.Directory(), "pki"),
	}
	if m.control != nil {
		lines = append(lines, "API      "+m.control.Kubeconfig()+" (a kubeconfig; kubectl works with it)",
			"console  "+m.consolePage())
	}
	lines = append(lines, "", "Use it from another terminal:")
	switch {
	case users != "":
		lines = append(lines,
			"  export "+gatewayVariable+"="+cluster.GatewayURL(),
			"  export "+tlsVariable+"="+cluster.Certificate(launch.AdminName)+"   # who runs it, and may do everything",
			"or, as one of those in "+users+":",
			"  export "+authoritiesVariable+"="+filepath.Join(cluster.Certificate("ca"), pki.AuthorityFile)+" "+tokenVariable+"=@FILE")
	case cluster.Gateway() != daemon.DefaultListen:
		lines = append(lines, "  export "+gatewayVariable+"="+cluster.Gateway())
	}
	if m.control == nil {
		return append(lines,
			"  restripe put ~/photos photos/",
			"  restripe transition start --to 'rs(4,2)' --class default --wait",
			"  restripe status --watch",
			"Ctrl-C stops everything.")
	}
	if usual, err := stateDirectory(); err != nil || m.control.Kubeconfig() != local.Kubeconfig(usual) {
		lines = append(lines, "  export KUBECONFIG="+m.control.Kubeconfig())
	}
	return append(lines,
		"  restripe apply -f FILE           # declare policies for the backend "+m.control.Backend(),
		"  restripe put ~/photos photos/",
		"  restripe get policies            # what is where, and whether it is where it belongs",
		"  restripe get transitions         # what moves",
		"Ctrl-C stops everything.")
}

// forRedis says how clients of Redis reach the gateway.
func forRedis(cluster *launch.Cluster, users string) string {
	host, port, err := net.SplitHostPort(cluster.Redis())
	if err != nil {
		return "redis://" + cluster.Redis()
	}
	if users != "" {
		return fmt.Sprintf("rediss://%s (redis-cli -h %s -p %s --tls --cacert %s --user ID --pass SECRET)", cluster.Redis(), host, port,
			filepath.Join(cluster.Certificate("ca"), pki.AuthorityFile))
	}
	return fmt.Sprintf("redis://%s (redis-cli -h %s -p %s set greeting hello)", cluster.Redis(), host, port)
}

// forMemcached says how clients of memcached reach the gateway.
func forMemcached(cluster *launch.Cluster, users string) string {
	if users != "" {
		return "memcached over TLS at " + cluster.Memcached() + " (a client sends ID and SECRET as memcached's own authentication has them)"
	}
	return fmt.Sprintf("memcached://%s (memccat --servers=%s greeting)", cluster.Memcached(), cluster.Memcached())
}

// forS3 says how clients of S3 reach the gateway.
func forS3(cluster *launch.Cluster, users string) string {
	if users != "" {
		return fmt.Sprintf("S3 at https://%s (AWS_CA_BUNDLE=%s aws --endpoint-url https://%s s3 ls, with ID and SECRET of an access key)",
			cluster.S3(), filepath.Join(cluster.Certificate("ca"), pki.AuthorityFile), cluster.S3())
	}
	return fmt.Sprintf("S3 at http://%s (aws --endpoint-url http://%s --no-sign-request s3 mb s3://photos)", cluster.S3(), cluster.S3())
}

// joined joins errors; a call that failed keeps its own error first.
func joined(err error, more ...error) error { return errors.Join(append([]error{err}, more...)...) }

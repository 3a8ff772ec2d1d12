package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/restripe/restripe/agent/pki"
	"github.com/restripe/restripe/operator"
	"github.com/restripe/restripe/operator/gateways"
	"github.com/restripe/restripe/tui/cli/daemon"
	"github.com/restripe/restripe/tui/cli/program"
)

func operatorServer(s *session) *program.Server {
	var options operator.Options
	var elect, https bool
	var namespace string
	var callers callerFlags
	command := &cobra.Command{
		Use: "operator", Short: "Run the operator against a Kubernetes cluster",
		Long: "Run the controllers that carry out policies, until interrupted. Without --kubeconfig and KUBECONFIG the operator takes the\n" +
			"API server of the cluster it runs in. `restripe up` runs an operator of its own.",
		Example: "  restripe operator --leader-elect\n  restripe operator --kubeconfig ~/.kube/config --metrics-listen 127.0.0.1:9090\n" +
			"  restripe operator --metrics-listen :9090 --users users.yaml --https --tls operator-tls --allow-remote\n" +
			"  restripe operator --config /etc/restripe/operator.yaml",
		Args: cobra.NoArgs,
	}
	where := s.serverFlags(command)
	flags := command.Flags()
	flags.BoolVar(&elect, "leader-elect", false, "act only while holding a Lease, so that several operators can run")
	flags.StringVar(&namespace, "lease-namespace", "restripe-system", "namespace of the Lease")
	flags.StringVar(&options.MetricsListen, "metrics-listen", "", "address for Prometheus, host:port (default: none)")
	flags.StringVar(&options.HealthListen, "health-listen", "", "address that answers /healthz and /readyz to everybody, host:port (default: none)")
	callers.add(flags)
	flags.BoolVar(&https, "https", false, "serve Prometheus over TLS, with the certificate of --tls")
	directory := servingFlag(command)
	allowed := daemon.RemoteFlag(command)
	check := func(report *program.Report) {
		if !callers.check(report) {
			return
		}
		asks := callers.users != "" || callers.clusterUsers
		if options.MetricsListen != "" {
			const how = "say who may with --users or --cluster-users, and serve --https"
			report.Add("metrics-listen", allowed.Check(command, "metrics-listen", options.MetricsListen, asks && https, how))
		} else if asks || https {
			report.Misuse("metrics-listen", "--users, --cluster-users and --https are for --metrics-listen: give it an address")
		}
		if options.HealthListen != "" { // which tells nothing that anybody is to be asked for
			report.Add("health-listen", allowed.Check(command, "health-listen", options.HealthListen, true, ""))
		}
		var err error
		options.MetricsTLS, err = serving(command, https, *directory, pki.RoleOperator)
		report.Add("tls", err)
		if elect {
			options.Election.LeaseNamespace = namespace
		}
		options.RESTConfig, err = operatorConfig(where)
		report.Add("kubeconfig", err)
		if asks && (err == nil || !callers.clusterUsers) {
			options.MetricsUsers, err = callers.authority(options.RESTConfig)
			report.Add("users", err)
		}
		who, err := credentials()
		report.Add("", err)
		options.Dial = gateways.Dial(who)
	}
	serve := func(ctx context.Context) error {
		options.Logger = s.Log()
		options.Started = func(ctx context.Context, alive func(context.Context) error) {
			program.Lives(ctx, options.Logger, alive)
		}
		return operator.Run(ctx, options)
	}
	return &program.Server{Command: command, Check: check, Serve: serve}
}

// operatorConfig finds the API server: as every command does, but inside a cluster that cluster's rather than none.
func operatorConfig(where *serverFlags) (*rest.Config, error) {
	config, err := where.restConfig()
	if err == nil || !errors.Is(err, errNoServer) {
		return config, err
	}
	inside, failed := rest.InClusterConfig()
	if errors.Is(failed, rest.ErrNotInCluster) {
		return nil, err
	}
	if failed != nil {
		return nil, fmt.Errorf("reaching the API server of this cluster: %w", failed)
	}
	return inside, nil
}

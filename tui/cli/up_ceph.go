package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/restripe/restripe/agent/launch"
	"github.com/restripe/restripe/agent/store/ceph/pools"
	"github.com/restripe/restripe/tui/cli/program"
)

// cephNodes are the flags that say which pools of Ceph are the nodes of a cluster.
type cephNodes struct {
	access pools.Access
	names  []string
}

const (
	cephPoolFlag    = "ceph-pool"
	cephConfFlag    = "ceph-conf"
	cephKeyringFlag = "keyring"
	cephUserFlag    = "ceph-user"
)

func (c *cephNodes) flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.access.Config, cephConfFlag, "/etc/ceph/ceph.conf", "over Ceph: path of ceph.conf")
	flags.StringVar(&c.access.Keyring, cephKeyringFlag, "", "over Ceph: path of the user's keyring (default: what ceph.conf says)")
	flags.StringVar(&c.access.User, cephUserFlag, "restripe", "over Ceph: user of Ceph, without client.")
	flags.StringSliceVar(&c.names, cephPoolFlag, nil, "over Ceph: pools that are the nodes (default: those that 'restripe ceph init' made)")
}

// check refuses flags of Ceph for other stores.
func (c *cephNodes) check(command *cobra.Command, store launch.StoreKind) error {
	for _, name := range []string{cephPoolFlag, cephConfFlag, cephKeyringFlag, cephUserFlag} {
		if store != launch.StoreCeph && command.Flags().Changed(name) {
			return program.Misuse(command, "--%s goes with --store ceph", name)
		}
	}
	if store == launch.StoreCeph && command.Flags().Changed("agents") {
		return program.Misuse(command, "--agents does not go with --store ceph: there is one agent for each pool; name pools with --%s",
			cephPoolFlag)
	}
	return nil
}

// find asks the cluster for the pools that are nodes, and keeps those that are named, if any are.
func (c *cephNodes) find(ctx context.Context) (*launch.Ceph, error) {
	connection, err := pools.Connect(ctx, c.access)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	state, err := pools.Observe(ctx, connection)
	if err != nil {
		return nil, err
	}
	found := &launch.Ceph{Config: c.access.Config, Keyring: c.access.Keyring, User: c.access.User}
	nodes := state.Nodes()
	for _, name := range c.names {
		pool := launch.CephPool{Name: name} // the agent refuses one that cannot be a node
		if i := slices.IndexFunc(nodes, func(node pools.NodePool) bool { return node.Pool == name }); i >= 0 {
			pool.Domain = nodes[i].Domain
		}
		found.Pools = append(found.Pools, pool)
	}
	if len(c.names) == 0 {
		for _, node := range nodes {
			found.Pools = append(found.Pools, launch.CephPool{Name: node.Pool, Domain: node.Domain})
		}
	}
	if len(found.Pools) == 0 {
		return nil, fmt.Errorf("the Ceph cluster of %s has no pools for nodes; make them with `restripe ceph init`, or name some with --%s", c.access.Config, cephPoolFlag)
	}
	return found, nil
}

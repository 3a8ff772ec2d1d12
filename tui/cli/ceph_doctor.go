package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/store/ceph/pools"
)

// agentUser is the user of Ceph that agents connect as unless told otherwise; it may read what a check looks at.
const agentUser = "restripe"

// cephDoctor looks at the cluster of Ceph that nodes are pools of.
type cephDoctor struct {
	command *cobra.Command
	access  *pools.Access
}

func newCephDoctor(command *cobra.Command) *cephDoctor {
	return &cephDoctor{command: command, access: accessFlags(command, agentUser)}
}

// add adds what is found in Ceph, where a node is a pool of it or the flags say to look. That Ceph cannot be looked at is a
// finding, too: what else was found is worth showing.
func (d *cephDoctor) add(ctx context.Context, c *client.Client, findings []api.Finding) ([]api.Finding, error) {
	if !d.command.Flags().Changed("ceph-conf") {
		status, err := c.StatusBrief(ctx)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(status.Nodes, func(n api.NodeStatus) bool { return n.StoreKind == "ceph" }) {
			return findings, nil
		}
	}
	found, err := checkCeph(ctx, d.access)
	if err != nil {
		return append(findings, api.Finding{
			Severity: pools.SeverityWarning, Subject: "ceph", Text: fmt.Sprintf("the cluster of Ceph was not looked at: %v", err),
			Cure: "say how to reach it with --ceph-conf, --keyring and --ceph-user",
		}), nil
	}
	return append(findings, found...), nil
}

func checkCeph(ctx context.Context, access *pools.Access) ([]api.Finding, error) {
	connection, err := pools.Connect(ctx, *access)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	state, err := pools.Observe(ctx, connection)
	if err != nil {
		return nil, err
	}
	return cephFindings(state, connection), nil
}

// cephFindings are the findings about a state of Ceph as the doctor shows them.
func cephFindings(state *pools.State, connection *pools.Connection) []api.Finding {
	var all []api.Finding
	for _, f := range pools.Check(state, connection.Client()) {
		all = append(all, api.Finding{Severity: f.Severity, Subject: "ceph " + f.Subject, Text: f.Text, Cure: f.Cure})
	}
	return all
}

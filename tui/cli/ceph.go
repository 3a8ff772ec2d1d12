package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/store/ceph/pools"
	"github.com/restripe/restripe/tui/cli/program"
)

func cephCommand(s *session) *cobra.Command {
	return program.Family(&cobra.Command{
		Use: "ceph", Short: "Make, check and remove the pools of Ceph that are nodes",
		Long: "Make, check and remove the pools of a Ceph cluster that are Restripe's nodes: one pool of size 1 for each host (or other\n" +
			"CRUSH bucket), whose rule takes that bucket. Only pools with the application tag " + pools.Application + " are ever touched.",
	}, cephInit(s), cephCheck(s), cephRemove(s))
}

// administrator is the user of Ceph who may do everything.
const administrator = "admin"

// accessFlags adds the flags that say how to reach a Ceph cluster.
func accessFlags(command *cobra.Command, user string) *pools.Access {
	var access pools.Access
	flags := command.Flags()
	flags.StringVar(&access.Config, "ceph-conf", "", "path of ceph.conf (default: where Ceph's programs look)")
	flags.StringVar(&access.Keyring, "keyring", "", "path of the user's keyring (default: what ceph.conf says)")
	flags.StringVar(&access.User, "ceph-user", user, "user of Ceph, without client.")
	flags.DurationVar(&access.Timeout, "ceph-timeout", pools.DefaultTimeout, "the longest wait for an answer of Ceph's daemons, unless ceph.conf has one")
	return &access
}

// withCeph runs work with a connection to the cluster and the cluster's state.
func (s *session) withCeph(command *cobra.Command, access *pools.Access, work func(*pools.Connection, *pools.State) error) error {
	if access.Timeout <= 0 {
		return program.Misuse(command, "--ceph-timeout %s: want more than 0", access.Timeout)
	}
	connection, err := pools.Connect(command.Context(), *access)
	if err != nil {
		return err
	}
	defer connection.Close()
	state, err := pools.Observe(command.Context(), connection)
	if err != nil {
		return err
	}
	return work(connection, state)
}

func cephInit(s *session) *cobra.Command {
	var options pools.Options
	var yes bool
	command := &cobra.Command{
		Use: "init [BUCKET...]", Short: "Plan, and with --yes make, a pool of size 1 for every host",
		Long: "Discover the CRUSH hierarchy and plan what is missing: for each host, or each BUCKET named, a rule that takes it and a pool\n" +
			"of size 1 on that rule. The bucket right above, such as its rack, becomes the node's failure domain. Nothing is changed\n" +
			"without --yes; -o wide shows the commands. What is there already stays; what an interrupted run left half made is completed.",
		Example: "  restripe ceph init\n  restripe ceph init --domain-type rack --create-user restripe --yes\n  restripe ceph init host7 --yes",
	}
	access := accessFlags(command, administrator)
	flags := command.Flags()
	flags.StringVar(&options.NodeType, "node-type", "host", "type of the buckets that are nodes")
	flags.StringVar(&options.DomainType, "domain-type", "", "type of the buckets that are failure domains (default: what lies right above a node)")
	flags.StringVar(&options.DeviceClass, "device-class", "", "only OSDs of this class, such as ssd (default: all)")
	flags.StringVar(&options.Prefix, "name-prefix", pools.DefaultPrefix, "goes before the bucket's name in the names of pools and rules")
	flags.IntVar(&options.PlacementGroups, "pg-num", 0, "placement groups of each pool (default: by its OSDs)")
	flags.StringVar(&options.User, "create-user", "", "make this user, who may use the pools and nothing else, too")
	yesFlag(command, &yes)
	format := outputFlag(command, "table", "wide", "json", "yaml")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		if n := options.PlacementGroups; n < 0 || n&(n-1) != 0 {
			return program.Misuse(command, "--pg-num %d: want a power of two", n)
		}
		options.Buckets = arguments
		return s.withCeph(command, access, func(connection *pools.Connection, state *pools.State) error {
			plan, err := pools.Prepare(state, options)
			if err != nil {
				return fmt.Errorf("nothing was changed: %w", err)
			}
			return s.carryOut(command, connection, plan, yes, format)
		})
	}
	return command
}

// yesFlag adds --yes.
func yesFlag(command *cobra.Command, yes *bool) {
	command.Flags().BoolVar(yes, "yes", false, "carry the plan out (default: only show it)")
}

// carryOut shows a plan and, where told to, carries it out.
func (s *session) carryOut(command *cobra.Command, connection *pools.Connection, plan *pools.Plan, yes bool, format *formatValue) error {
	if err := s.showPoolPlan(plan, format); err != nil {
		return err
	}
	switch {
	case len(plan.Steps) == 0:
		fmt.Fprintln(s.Messages, "Everything is as it should be; there is nothing to do.")
		return nil
	case !yes:
		fmt.Fprintln(s.Messages, "Nothing was changed. Say the same with --yes to carry it out.")
		return nil
	}
	err := plan.Apply(command.Context(), connection, func(step pools.Step) { fmt.Fprintln(s.Messages, "done:", step.Text) })
	return pools.ExplainDeletion(err)
}

func (s *session) showPoolPlan(plan *pools.Plan, format *formatValue) error {
	if format.chosen == "json" || format.chosen == "yaml" {
		return s.show(format, listing{value: plan})
	}
	var lines []string
	if len(plan.Nodes) > 0 {
		var rows [][]string
		for _, n := range plan.Nodes {
			rows = append(rows, []string{n.Node, n.Type, orDash(n.Domain), numbersText(n.OSDs), n.Pool, strconv.Itoa(n.PlacementGroups), string(n.Action)})
		}
		lines = tableLines([]column{{title: "NODE"}, {title: "TYPE"}, {title: "DOMAIN"}, {title: "OSDS"}, {title: "POOL"}, {title: "PGS", right: true}, {title: "ACTION"}}, rows, false)
	}
	if len(plan.Steps) > 0 {
		lines = append(lines, "")
	}
	for i, step := range plan.Steps {
		lines = append(lines, fmt.Sprintf("%3d. %s", i+1, step.Text))
		if format.chosen == "wide" {
			lines = append(lines, "     ceph "+step.Command.String())
		}
	}
	if len(plan.Notes) > 0 {
		lines = append(lines, "")
		lines = append(lines, plan.Notes...)
	}
	return program.WriteLines(s.Out, lines)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// numbersText shows numbers as runs: 0-3,7.
func numbersText(numbers []int) string {
	var runs []string
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		run := strconv.Itoa(numbers[i])
		if last > i {
			run += "-" + strconv.Itoa(numbers[last])
		}
		runs, i = append(runs, run), last+1
	}
	return orDash(strings.Join(runs, ","))
}

func cephCheck(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "check", Short: "Compare the pools with what they were made to be, and look at what is in their way",
		Long: "List the pools that are nodes on standard error and, on standard output, what is wrong with them, with their OSDs and with\n" +
			"the cluster. Exit code 1 if there is an error; warnings are no errors. A user with the right to read the maps is enough.",
		Args: cobra.NoArgs,
	}
	access := accessFlags(command, administrator)
	format := outputFlag(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		return s.withCeph(command, access, func(connection *pools.Connection, state *pools.State) error {
			var rows [][]string
			for _, n := range state.Nodes() {
				rows = append(rows, []string{n.Node, orDash(n.Domain), numbersText(n.OSDs), n.Pool})
			}
			lines := []string{"No pool is Restripe's yet: `restripe ceph init` makes them."}
			if len(rows) > 0 {
				lines = append(tableLines([]column{{title: "NODE"}, {title: "DOMAIN"}, {title: "OSDS"}, {title: "POOL"}}, rows, false), "")
			}
			if err := program.WriteLines(s.Messages, lines); err != nil {
				return err
			}
			return s.showDiagnosis(cephFindings(state, connection), format)
		})
	}
	return command
}

func cephRemove(s *session) *cobra.Command {
	var removal pools.Removal
	var yes bool
	command := &cobra.Command{
		Use: "remove [NODE...]", Short: "Plan, and with --yes carry out, the removal of pools that are nodes",
		Long: "Plan the removal of all of Restripe's pools, or of those of the NODEs (CRUSH buckets) named, with their rules. A pool with\n" +
			"objects is refused: drain its node first. Nothing is changed without --yes. Monitors delete pools only while\n" +
			"mon_allow_pool_delete is true; this command does not set it.",
		Example: "  restripe ceph remove host7\n  restripe ceph remove host7 --yes",
	}
	access := accessFlags(command, administrator)
	command.Flags().BoolVar(&removal.DestroyData, "destroy-data", false, "remove pools that are not empty, too: their blocks are lost")
	yesFlag(command, &yes)
	format := outputFlag(command, "table", "wide", "json", "yaml")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		removal.Nodes = arguments
		return s.withCeph(command, access, func(connection *pools.Connection, state *pools.State) error {
			var names []string
			for _, n := range state.Nodes() {
				if len(arguments) == 0 || slices.Contains(arguments, n.Node) {
					names = append(names, n.Pool)
				}
			}
			var err error
			if removal.Objects, err = connection.HasObjects(command.Context(), names); err != nil {
				return err
			}
			plan, err := pools.PrepareRemoval(state, removal)
			if err != nil {
				return fmt.Errorf("nothing was changed: %w", err)
			}
			return s.carryOut(command, connection, plan, yes, format)
		})
	}
	return command
}

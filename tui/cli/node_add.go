package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/tui/progress"
)

func nodeAdd(s *session) *cobra.Command {
	var request api.AddRequest
	var rate string
	var wait bool
	command := &cobra.Command{
		Use: "add NODE", Short: "Make a node a member of the cluster",
		Long: "Make a node a member of the cluster. Its agent must run already, with the name NODE and a store of its own; all gateways\n" +
			"learn of the node at once. It takes new groups; with --use balance, blocks of the other nodes are moved to it besides, until\n" +
			"every node holds about its share by what its store can hold.",
		Example: "  restripe node add n15 --address 10.0.0.15:7400 --domain rack3\n" +
			"  restripe node add n15 --address 10.0.0.15:7400 --use balance --dry-run",
		Args: cobra.ExactArgs(1),
	}
	format := outputFlag(command)
	flags := command.Flags()
	flags.StringVar(&request.Address, "address", "", "host:port of the node's agent (required)")
	flags.StringVar(&request.Domain, "domain", "", "failure domain, such as a rack (default: its own)")
	flags.BoolVar(&request.Spare, "spare", false, "make it a spare: it takes no new groups while others can")
	flags.StringVar(&request.Use, "use", api.UseCapacity, "capacity: it takes new groups; balance: blocks are moved to it besides")
	flags.StringVar(&rate, "rate", "",
		"with --use balance: limit on bytes read, sent and written together, such as 50MiB/s, or unlimited (default 32MiB/s)")
	flags.BoolVar(&wait, "wait", false, "with --use balance: stay and show progress until every node holds about its share")
	flags.BoolVar(&request.DryRun, "dry-run", false, "change nothing; say whether it could be added, and what would be moved")
	command.MarkFlagsMutuallyExclusive("wait", "dry-run")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		switch {
		case request.Address == "":
			return program.Misuse(command, "say at which address the agent of the node is: --address HOST:PORT")
		case request.Use != api.UseCapacity && request.Use != api.UseBalance:
			return program.Misuse(command, "--use %q: want %s or %s", request.Use, api.UseCapacity, api.UseBalance)
		case request.Use == api.UseCapacity && (wait || flags.Changed("rate")):
			return program.Misuse(command, "--rate and --wait are of a balance; say --use %s too", api.UseBalance)
		case request.Use == api.UseBalance && request.Spare:
			return program.Misuse(command, "a spare takes no blocks of other nodes; leave out --spare or --use %s", api.UseBalance)
		}
		var err error
		if request.BytesPerSecond, err = rateFlag(command, rate); err != nil {
			return err
		}
		return s.withClient(func(c *client.Client) error {
			added, err := c.AddNode(command.Context(), arguments[0], request)
			if err != nil {
				return err
			}
			switch {
			case added.Plan != nil:
				return s.showPlan(format, added.Plan)
			case request.DryRun:
				return program.WriteLines(s.Messages, []string{"node " + arguments[0] + " can be added; it would take new groups, nothing more"})
			case added.Node == nil:
				return fmt.Errorf("the gateway does not say how node %s is; see `restripe node list`", arguments[0])
			}
			balance := added.Balance
			if balance != nil && wait {
				if *balance, err = s.followBalance(command.Context(), c, *balance); err != nil {
					return err
				}
				if *added.Node, err = c.Node(command.Context(), arguments[0]); err != nil {
					return err
				}
			}
			if err := s.shownNode(format, *added.Node); err != nil || balance == nil {
				return err
			}
			if wait {
				return balanceEnd(balance)
			}
			return program.WriteLines(s.Messages, []string{"blocks are moved to it; `restripe node balance --status` shows how far that is"})
		})
	}
	return command
}

// rateFlag is the rate that the flag of a command names; nil where it does not.
func rateFlag(command *cobra.Command, rate string) (*int64, error) {
	if !command.Flags().Changed("rate") {
		return nil, nil
	}
	bytesPerSecond, err := parseRate(rate)
	if err != nil {
		return nil, program.Misuse(command, "--rate: %w", err)
	}
	return &bytesPerSecond, nil
}

func nodeBalance(s *session) *cobra.Command {
	var rate string
	var status, dry, pause, resume, cancel, wait bool
	command := &cobra.Command{
		Use: "balance", Short: "Move blocks until every node holds about its share of all bytes",
		Long: "Move blocks until every node holds about its share of all bytes, by what its store can hold: within 5 % of it, or one block.\n" +
			"Blocks are copied as they are, each once, those of groups first that are used least; groups lie in their failure domains no\n" +
			"less evenly than before. Spares, nodes that are leaving, and stores that are 90 % full are given nothing. It goes on when a\n" +
			"gateway is started again, or at another one. Said again with --rate, it gives the balance under way another rate.",
		Example: "  restripe node balance --dry-run\n  restripe node balance --rate 100MiB/s --wait\n  restripe node balance --pause",
		Args:    cobra.NoArgs,
	}
	format := outputFlag(command, "table", "json", "yaml")
	flags := command.Flags()
	flags.StringVar(&rate, "rate", "",
		"limit on bytes read, sent and written together, such as 50MiB/s, or unlimited (default: as before, else 32MiB/s)")
	flags.BoolVar(&wait, "wait", false, "stay and show progress until it ends")
	flags.BoolVar(&status, "status", false, "begin nothing; show the balance under way, or the last")
	flags.BoolVar(&dry, "dry-run", false, "move nothing; show what would be moved, and for how long")
	flags.BoolVar(&pause, "pause", false, "move nothing further until resumed")
	flags.BoolVar(&resume, "resume", false, "go on with a balance that was paused")
	flags.BoolVar(&cancel, "cancel", false, "end it; what was moved stays where it is")
	command.MarkFlagsMutuallyExclusive("status", "dry-run", "pause", "resume", "cancel")
	for _, other := range []string{"status", "dry-run", "pause", "cancel"} {
		command.MarkFlagsMutuallyExclusive("wait", other)
	}
	for _, other := range []string{"status", "pause", "resume", "cancel"} {
		command.MarkFlagsMutuallyExclusive("rate", other)
	}
	command.RunE = func(command *cobra.Command, _ []string) error {
		bytesPerSecond, err := rateFlag(command, rate)
		if err != nil {
			return err
		}
		return s.withClient(func(c *client.Client) error {
			ctx := command.Context()
			var balance api.Balance
			var err error
			switch {
			case dry:
				plan, err := c.PlanBalance(ctx, bytesPerSecond)
				if err != nil {
					return err
				}
				return s.showPlan(format, &plan)
			case status:
				balance, err = c.Balance(ctx)
			case pause:
				balance, err = c.PauseBalance(ctx)
			case resume:
				balance, err = c.ResumeBalance(ctx)
			case cancel:
				balance, err = c.CancelBalance(ctx)
			default:
				balance, err = c.StartBalance(ctx, api.BalanceRequest{BytesPerSecond: bytesPerSecond})
			}
			if err == nil && wait {
				balance, err = s.followBalance(ctx, c, balance)
			}
			if err != nil {
				return err
			}
			if err := s.showBalance(format, &balance); err != nil || !wait {
				return err
			}
			return balanceEnd(&balance)
		})
	}
	return command
}

// balancePoll is how often the progress of a balance is asked for.
const balancePoll = 500 * time.Millisecond

// followBalance shows the progress of a balance until it ends or is paused.
func (s *session) followBalance(ctx context.Context, c *client.Client, balance api.Balance) (api.Balance, error) {
	m := progress.New(s.Messages)
	defer m.Clear()
	err := every(ctx, balancePoll, func() (ended bool, err error) {
		now, err := c.Balance(ctx)
		if err != nil {
			return false, err
		}
		if now.Number != balance.Number {
			return false, fmt.Errorf("balance %d has ended, and balance %d was begun", balance.Number, now.Number)
		}
		if balance = now; balance.State != api.BalanceRunning {
			return true, nil
		}
		m.Show(time.Now(), func() string { return "balance: " + balanceText(&balance) })
		return false, nil
	})
	return balance, err
}

// balanceEnd is what is wrong with how a balance ended that was waited for.
func balanceEnd(balance *api.Balance) error {
	switch balance.State {
	case api.BalancePaused:
		return fmt.Errorf("the balance was paused: %s left to move; go on with `restripe node balance --resume`",
			words.Bytes(balance.BytesLeft()))
	case api.BalanceCancelled:
		return fmt.Errorf("the balance was cancelled: %s left to move", words.Bytes(balance.BytesLeft()))
	}
	return nil
}

// balanceText says in one line how far a balance is.
func balanceText(balance *api.Balance) string {
	switch {
	case balance.Waits != "":
		return "waits: " + balance.Waits
	case !balance.Planned:
		return "looking at what lies where"
	}
	text := fmt.Sprintf("%s %s, %s of %s moved", progress.Bar(balance.BytesMoved, balance.BytesTotal),
		words.Share(balance.BytesMoved, balance.BytesTotal), words.Bytes(balance.BytesMoved), words.Bytes(balance.BytesTotal))
	if balance.State == api.BalancePaused {
		return text + ", paused"
	}
	return text + ", " + words.Left(balance.ETASeconds)
}

func (s *session) showBalance(format *formatValue, balance *api.Balance) error {
	if format.chosen != "table" {
		return s.show(format, listing{value: balance})
	}
	return program.WriteLines(s.Out, balanceLines(balance))
}

func balanceLines(balance *api.Balance) []string {
	if balance.State == api.BalanceNone {
		return []string{"There was no balance yet. `restripe node balance --dry-run` shows what one would move."}
	}
	lines := []string{
		fmt.Sprintf("balance     %d", balance.Number),
		"state       " + string(balance.State),
	}
	if balance.Planned {
		lines = append(lines, fmt.Sprintf("moved       %s %s of %s, %s", progress.Bar(balance.BytesMoved, balance.BytesTotal),
			words.Bytes(balance.BytesMoved), words.Bytes(balance.BytesTotal), words.Count(balance.SlotsMoved, "slot")))
	}
	lines = append(lines, "sent        "+words.Bytes(balance.BytesSent)+" between nodes")
	lines = append(lines, "time        "+words.Span(words.Seconds(balance.ElapsedSeconds)))
	if balance.State == api.BalanceRunning {
		lines = append(lines, "left        "+words.Left(balance.ETASeconds))
	}
	if balance.BytesPerSecond > 0 {
		lines = append(lines, "limit       "+words.Limit(balance.BytesPerSecond)+", read, sent and written together")
	}
	for _, one := range []struct{ title, text string }{
		{"waits       ", balance.Waits}, {"note        ", balance.Note}, {"error       ", balance.Error},
	} {
		if one.text != "" {
			lines = append(lines, one.title+one.text)
		}
	}
	return lines
}

var planColumns = []column{
	{title: "NODE"}, {title: "DOMAIN"}, {title: "CAPACITY", right: true}, {title: "ITS SHARE", right: true}, {title: "HOLDS", right: true},
	{title: "OF SHARE", right: true}, {title: "THEN HOLDS", right: true}, {title: "OF SHARE", right: true}, {title: "NOTE"},
}

// showPlan shows what a balance would do.
func (s *session) showPlan(format *formatValue, plan *api.BalancePlan) error {
	if format.chosen == "json" || format.chosen == "yaml" {
		return s.show(format, listing{value: plan})
	}
	var rows [][]string
	for i := range plan.Nodes {
		n := &plan.Nodes[i]
		capacity := "-"
		if n.CapacityBytes > 0 {
			capacity = words.Bytes(n.CapacityBytes)
		}
		rows = append(rows, []string{
			string(n.ID), n.Domain, capacity, words.Bytes(n.FairBytes), words.Bytes(n.BytesBefore), words.Share(n.BytesBefore, n.FairBytes),
			words.Bytes(n.BytesAfter), words.Share(n.BytesAfter, n.FairBytes), n.Note,
		})
	}
	lines := append(tableLines(planColumns, rows, false), "")
	switch {
	case plan.Even:
		lines = append(lines, "Every node holds about its share; nothing would be moved.")
	default:
		lines = append(lines, fmt.Sprintf("Would move %s, %s of %s; nodes lack %s.", words.Bytes(plan.Bytes), words.Count(plan.Slots, "slot"),
			words.Count(plan.Groups, "group"), words.Bytes(plan.LeastBytes)))
	}
	if !plan.Even && plan.Seconds >= 0 {
		lines = append(lines, fmt.Sprintf("At %s, read, sent and written together, that takes %s.", words.Limit(plan.BytesPerSecond),
			words.Span(words.Seconds(plan.Seconds))))
	}
	if plan.Note != "" {
		lines = append(lines, "Note: "+plan.Note)
	}
	return program.WriteLines(s.Out, lines)
}

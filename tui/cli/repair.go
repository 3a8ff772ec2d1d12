package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
)

func repairCommand(s *session) *cobra.Command {
	var request api.RepairRequest
	command := &cobra.Command{
		Use: "repair", Short: "Rebuild the blocks that are missing",
		Long: "Rebuild the blocks that are missing, and those that a read found corrupt, now. With --deep every block is read first, so that\n" +
			"damage nobody has met yet is found too; that costs a read of everything at the nodes, and nothing on the network.\n\n" +
			"Gateways rebuild what is lost by themselves, groups nearest to loss first and within the limits that `restripe repair limit` sets.",
		Example: "  restripe repair --deep\n  restripe repair status\n  restripe repair limit --node-rate 20MiB/s",
		Args:    cobra.NoArgs,
	}
	flags := command.Flags()
	flags.BoolVar(&request.Deep, "deep", false, "read and check every block first")
	flags.StringVar(&request.Shape, "shape", "", "along which ways blocks are added up: "+shapesText()+" (default: by the most loaded link)")
	format := outputFlag(command, "table", "json", "yaml")
	command.RunE = func(command *cobra.Command, _ []string) error {
		return s.withClient(func(c *client.Client) error {
			r, err := c.RepairAs(command.Context(), request)
			if err != nil {
				return err
			}
			rows := []any{"groups checked", r.GroupsChecked, "groups repaired", r.GroupsRepaired, "slots rebuilt", r.SlotsRebuilt}
			if err := s.show(format, counts(r, rows)); err != nil {
				return err
			}
			if len(r.Failed) > 0 {
				return fmt.Errorf("groups could not be repaired:\n%s", strings.Join(r.Failed, "\n"))
			}
			return nil
		})
	}
	command.AddCommand(
		asking(s, "status", "Show what is being rebuilt and how long it will take", (*client.Client).RepairStatus, s.showRepair),
		asking(s, "pause", "Rebuild nothing that nobody asks for, until resumed", (*client.Client).PauseRepair, s.showRepair),
		repairDeferCommand(s),
		asking(s, "resume", "Go on rebuilding what is lost", (*client.Client).ResumeRepair, s.showRepair),
		repairLimitCommand(s),
	)
	return command
}

func shapesText() string {
	var names []string
	for _, shape := range stripe.RepairShapes() {
		names = append(names, string(shape))
	}
	return strings.Join(names, ", ")
}

func repairDeferCommand(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "defer DURATION", Short: "Have groups wait that survive a further loss",
		Long: "Have groups wait that lost something with a node or a store and survive a further loss, for a while such as 8h; 0s ends it.\n" +
			"Those that survive none are rebuilt nevertheless, and so is what reads meet. The repair windows of a StorageBackend do the\n" +
			"same by the clock.",
		Example: "  restripe repair defer 8h\n  restripe repair resume",
		Args:    cobra.ExactArgs(1),
	}
	format := outputFlag(command, "table", "json", "yaml")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		length, err := time.ParseDuration(arguments[0])
		if err != nil || length < 0 {
			return program.Misuse(command, "%q is not how long repair may wait: say such as 90m or 8h", arguments[0])
		}
		return s.withClient(func(c *client.Client) error {
			status, err := c.DeferRepair(command.Context(), api.DeferRequest{Until: time.Now().Add(length), By: "restripe repair defer"})
			if err != nil {
				return err
			}
			return s.showRepair(format, status)
		})
	}
	return command
}

func repairLimitCommand(s *session) *cobra.Command {
	var total, node, domain string
	command := &cobra.Command{
		Use: "limit", Short: "Change how much repair may read, send and write",
		Long:    "Change how many bytes a second repair may read, send, receive and write. Limits that are not named stay as they are.",
		Example: "  restripe repair limit --node-rate 20MiB/s\n  restripe repair limit --rate unlimited --node-rate unlimited",
		Args:    cobra.NoArgs,
	}
	format := outputFlag(command, "table", "json", "yaml")
	flags := command.Flags()
	flags.StringVar(&total, "rate", "", "limit on all nodes together, such as 100MiB/s; unlimited lifts it")
	flags.StringVar(&node, "node-rate", "", "limit on any one node")
	flags.StringVar(&domain, "domain-rate", "", "limit on the nodes of any one failure domain")
	command.RunE = func(command *cobra.Command, _ []string) error {
		var request api.ThrottleRequest
		named := false
		for _, limit := range []struct {
			flag, text string
			into       **int64
		}{{"rate", total, &request.BytesPerSecond}, {"node-rate", node, &request.NodeBytesPerSecond}, {"domain-rate", domain, &request.DomainBytesPerSecond}} {
			if !flags.Changed(limit.flag) {
				continue
			}
			rate, err := parseRate(limit.text)
			if err != nil {
				return program.Misuse(command, "--%s: %w", limit.flag, err)
			}
			*limit.into, named = &rate, true
		}
		if !named {
			return program.Misuse(command, "say which limit: --rate, --node-rate or --domain-rate")
		}
		return s.withClient(func(c *client.Client) error {
			status, err := c.ThrottleRepair(command.Context(), request)
			if err != nil {
				return err
			}
			return s.showRepair(format, status)
		})
	}
	return command
}

func (s *session) showRepair(format *formatValue, status api.RepairStatus) error {
	if format.chosen != "table" {
		return s.show(format, listing{value: status})
	}
	return program.WriteLines(s.Out, repairLines(status, time.Now()))
}

// repairLines says in sentences how repair stands.
func repairLines(status api.RepairStatus, now time.Time) []string {
	lines := []string{"repair is " + string(status.State)}
	if status.Reported > 0 {
		lines[0] += fmt.Sprintf("; %s reported by reads", words.Count(int64(status.Reported), "group"))
	}
	if until := status.DeferredUntil; until != nil {
		line := fmt.Sprintf("until %s (for %s) groups wait that survive a further loss", until.Local().Format("2006-01-02 15:04"), words.Span(until.Sub(now)))
		if status.DeferredBy != "" {
			line += ", by " + status.DeferredBy
		}
		lines = append(lines, line+"; "+words.Count(int64(status.Waiting), "group")+" now")
	}
	if pass := status.Pass; pass != nil {
		line := fmt.Sprintf("%s of %s checked, %s repaired, %s failed; %s of %s rebuilt",
			words.Number(int64(pass.GroupsChecked)), words.Count(int64(pass.GroupsTotal), "group"),
			words.Number(int64(pass.GroupsRepaired)), words.Number(int64(pass.GroupsFailed)), words.Bytes(pass.BytesDone), words.Bytes(pass.BytesTotal))
		if pass.Finished == nil {
			lines = append(lines, "this pass: "+line+"; left: "+words.Left(pass.ETASeconds))
		} else {
			lines = append(lines, "last pass, "+words.About(now.Sub(*pass.Finished))+" ago: "+line)
		}
		if urgent := pass.BySpare[0]; urgent > 0 {
			lines = append(lines, words.Count(urgent, "group")+" survived no further loss when it began; they come first")
		}
		if pass.Problem != "" {
			lines = append(lines, "problem: "+pass.Problem)
		}
	}
	return append(lines,
		fmt.Sprintf("since the gateway started: %s in %s, %s; %s sent", words.Count(status.SlotsRebuilt, "slot"), words.Count(status.GroupsRepaired, "group"),
			words.Bytes(status.BytesRebuilt), words.Bytes(status.Measured.BytesSent)),
		fmt.Sprintf("limits: %s in all, %s a node, %s a failure domain", words.Limit(status.BytesPerSecond), words.Limit(status.NodeBytesPerSecond),
			words.Limit(status.DomainBytesPerSecond)),
	)
}

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/gateway/api"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/tui/progress"
)

func nodeCommand(s *session) *cobra.Command {
	return program.Family(&cobra.Command{
		Use: "node", Aliases: []string{"nodes"}, Short: "Show the nodes; add, empty, remove and replace them",
		Long: "Show the nodes; add, empty, remove and replace them. A node that does not answer is suspect, then down, then out: given\n" +
			"up, its blocks rebuilt on other nodes. What is declared here goes before what gateways find, and is kept in the catalog.",
	},
		nodeList(s), nodeAdd(s), nodeBalance(s), nodeDrain(s), nodeReplace(s), nodeRemove(s), nodePlace(s), nodePatience(s),
		nodeAction(s, "undrain", "End a drain: what was moved stays where it is, and the node takes blocks again", (*client.Client).UndrainNode),
		nodeAction(s, "down", "Declare that a node is not expected back: its blocks are rebuilt elsewhere at once", (*client.Client).DownNode),
		nodeAction(s, "up", "Take back what was declared of a node; one that was given up takes blocks once its store was swept", (*client.Client).UpNode),
	)
}

func nodeList(s *session) *cobra.Command {
	var watch bool
	command := &cobra.Command{Use: "list [NODE...]", Aliases: []string{"ls", "show"}, Short: "List nodes: their state, what lies on them, how far drains have come"}
	format := outputFlag(command)
	command.Flags().BoolVarP(&watch, "watch", "w", false, "show it again and again until interrupted")
	command.RunE = func(command *cobra.Command, names []string) error {
		return s.withClient(func(c *client.Client) error {
			return watched(command.Context(), watch, watchInterval, func() error {
				list, err := c.Nodes(command.Context())
				if err != nil {
					return err
				}
				if list.Nodes, err = namedNodes(list.Nodes, names); err != nil {
					return err
				}
				if err := s.show(format, nodeListing(list.Nodes, list.Nodes)); err != nil || list.Balance == nil {
					return err
				}
				return program.WriteLines(s.Messages, []string{"balance under way: " + balanceText(list.Balance)})
			})
		})
	}
	return command
}

// namedNodes returns the nodes of the given names in order of name; all where none is given.
func namedNodes(nodes []api.NodeInfo, names []string) ([]api.NodeInfo, error) {
	slices.SortFunc(nodes, func(a, b api.NodeInfo) int { return byName(a.NodeStatus, b.NodeStatus) })
	if len(names) == 0 {
		return nodes, nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(nodes, func(n api.NodeInfo) bool { return string(n.ID) == name }) {
			return nil, fmt.Errorf("there is no node %q; `restripe node list` shows their names", name)
		}
	}
	return slices.DeleteFunc(nodes, func(n api.NodeInfo) bool { return !slices.Contains(names, string(n.ID)) }), nil
}

var nodeColumns = []column{
	{title: "NODE"}, {title: "STATE"}, {title: "SLOTS", right: true}, {title: "USED", right: true}, {title: "FULL", right: true},
	{title: "SHARE", right: true}, {title: "DOMAIN"}, {title: "DRAIN"},
	{title: "DECLARED", wide: true}, {title: "SINCE", wide: true, right: true}, {title: "CAPACITY", wide: true, right: true}, {title: "ADDRESS", wide: true},
	{title: "STORE", wide: true}, {title: "NOTES", wide: true},
}

func nodeListing(nodes []api.NodeInfo, value any) listing {
	l := listing{value: value, columns: nodeColumns, empty: "There are no nodes. Start agents and add them with `restripe node add`."}
	now := time.Now()
	for _, n := range nodes {
		since, capacity, full, share := "-", "-", "-", "-"
		if n.Since != nil {
			since = words.About(now.Sub(*n.Since))
		}
		if n.CapacityBytes > 0 {
			capacity, full = words.Bytes(n.CapacityBytes), words.Share(n.UsedBytes, n.CapacityBytes)
		}
		if n.FairBytes > 0 {
			share = words.Share(n.SlotBytes, n.FairBytes)
		}
		l.names = append(l.names, string(n.ID))
		l.rows = append(l.rows, []string{
			string(n.ID), n.State, words.Known(n.Slots), words.Bytes(n.UsedBytes), full, share, n.Domain, drainText(n.Drain),
			n.Declared, since, capacity, n.Address, n.Store, strings.Join(nodeNotes(n), "; "),
		})
	}
	return l
}

// countText is how many there are of something, as far as that is known.
func countText(count int64, noun string) string {
	if count < 0 {
		return "an unknown number of " + noun + "s"
	}
	return words.Count(count, noun)
}

// nodeNotes is what is special about a node.
func nodeNotes(n api.NodeInfo) []string {
	var notes []string
	if n.Spare {
		notes = append(notes, "spare")
	}
	if n.OutBy != "" {
		notes = append(notes, "given up by "+n.OutBy)
	}
	if n.Fenced && n.OutBy == "" {
		notes = append(notes, "waits for a sweep of its store")
	}
	if n.Replaces != "" {
		notes = append(notes, "in place of "+string(n.Replaces))
	}
	return append(notes, n.Warnings...)
}

// drainText is how far a drain has come, in a few words.
func drainText(d *api.DrainInfo) string {
	switch {
	case d == nil:
		return "-"
	case d.SlotsLeft < 0:
		return "being counted"
	case d.SlotsLeft == 0:
		return "done, remove it"
	}
	text := words.Share(d.SlotsTotal-d.SlotsLeft, d.SlotsTotal) + ", " + words.Number(d.SlotsLeft) + " left"
	if d.Paused {
		return text + ", paused"
	}
	if d.ETASeconds >= 0 {
		text += ", " + words.Left(d.ETASeconds)
	}
	return text
}

// shownNode says how a node is after something was done to it.
func (s *session) shownNode(format *formatValue, node api.NodeInfo) error {
	return s.show(format, nodeListing([]api.NodeInfo{node}, node))
}

func nodeAction(s *session, name, short string, act func(*client.Client, context.Context, string) (api.NodeInfo, error)) *cobra.Command {
	command := &cobra.Command{Use: name + " NODE", Short: short, Args: cobra.ExactArgs(1)}
	format := outputFlag(command)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		return s.withClient(func(c *client.Client) error {
			node, err := act(c, command.Context(), arguments[0])
			if err != nil {
				return err
			}
			return s.shownNode(format, node)
		})
	}
	return command
}

func nodeDrain(s *session) *cobra.Command {
	var rate string
	var pause, resume, wait bool
	command := &cobra.Command{
		Use: "drain NODE", Short: "Move every block of a node to other nodes, so that it can be removed",
		Long: "Move every block of a node to other nodes, so that it can be removed. The node serves meanwhile and takes nothing new. The\n" +
			"drain goes on when a gateway is started again; `restripe node undrain` ends it.",
		Example: "  restripe node drain n3 --rate 50MiB/s --wait\n  restripe node drain n3 --pause",
		Args:    cobra.ExactArgs(1),
	}
	format := outputFlag(command)
	flags := command.Flags()
	flags.StringVar(&rate, "rate", "", "limit on bytes read, sent and written together, such as 50MiB/s, or unlimited (default: as before)")
	flags.BoolVar(&pause, "pause", false, "move nothing further until resumed")
	flags.BoolVar(&resume, "resume", false, "go on with a drain that was paused")
	flags.BoolVar(&wait, "wait", false, "stay and show progress until nothing is left on the node")
	command.MarkFlagsMutuallyExclusive("pause", "resume")
	command.MarkFlagsMutuallyExclusive("pause", "wait")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		var request api.DrainRequest
		if flags.Changed("rate") {
			bytesPerSecond, err := parseRate(rate)
			if err != nil {
				return program.Misuse(command, "--rate: %w", err)
			}
			request.BytesPerSecond = &bytesPerSecond
		}
		if pause || resume {
			request.Paused = &pause
		}
		return s.withClient(func(c *client.Client) error {
			node, err := c.DrainNode(command.Context(), arguments[0], request)
			if err != nil {
				return err
			}
			if wait {
				if node, err = s.followDrain(command.Context(), c, node); err != nil {
					return err
				}
			}
			if err := s.shownNode(format, node); err != nil {
				return err
			}
			switch {
			case !wait:
				return nil
			case node.Drain == nil:
				return fmt.Errorf("the drain of %s was ended before it was done: %s left on it", node.ID, countText(node.Slots, "block"))
			case node.Drain.SlotsLeft > 0:
				return fmt.Errorf("the drain of %s was paused: %s left on it; go on with `restripe node drain %s --resume`", node.ID, words.Count(node.Drain.SlotsLeft, "block"), node.ID)
			}
			return nil
		})
	}
	return command
}

// followDrain shows the progress of a drain until nothing is left or it ends otherwise.
func (s *session) followDrain(ctx context.Context, c *client.Client, node api.NodeInfo) (api.NodeInfo, error) {
	m := progress.New(s.Messages)
	defer m.Clear()
	err := every(ctx, time.Second, func() (ended bool, err error) {
		if node, err = c.Node(ctx, string(node.ID)); err != nil {
			return false, err
		}
		if node.Drain == nil || node.Drain.SlotsLeft == 0 || node.Drain.Paused {
			return true, nil
		}
		m.Show(time.Now(), func() string {
			moved := int64(0)
			if node.Drain.SlotsLeft >= 0 {
				moved = node.Drain.SlotsTotal - node.Drain.SlotsLeft
			}
			return fmt.Sprintf("draining %s %s %s", node.ID, progress.Bar(moved, node.Drain.SlotsTotal), drainText(node.Drain))
		})
		return false, nil
	})
	return node, err
}

func nodeRemove(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "remove NODE", Aliases: []string{"rm"}, Short: "Make a node no member any more; refused while anything lies on it",
		Args: cobra.ExactArgs(1),
	}
	command.RunE = func(command *cobra.Command, arguments []string) error {
		return s.withClient(func(c *client.Client) error {
			err := every(command.Context(), time.Second, func() (ended bool, err error) {
				return c.RemoveNode(command.Context(), arguments[0]) // not done: the records of all groups are looked through
			})
			if err != nil {
				return err
			}
			return program.WriteLines(s.Out, []string{"node " + arguments[0] + " is no member any more; its agent can be stopped"})
		})
	}
	return command
}

func nodeReplace(s *session) *cobra.Command {
	var request api.ReplaceRequest
	var with string
	command := &cobra.Command{
		Use: "replace NODE", Short: "Have a node come back elsewhere or empty, or another node take its place",
		Long: "Have a node come back at another address or with an empty store, or, with --with, another node take its place. The replacement\n" +
			"takes new blocks at once. What lay on the node is rebuilt meanwhile or, where the node still answers, moved.",
		Example: "  restripe node replace n3 --address 10.0.0.33:7400\n  restripe node replace n3 --with n15 --address 10.0.0.15:7400",
		Args:    cobra.ExactArgs(1),
	}
	format := outputFlag(command)
	flags := command.Flags()
	flags.StringVar(&request.Address, "address", "", "host:port of the replacement's agent (default: as it is)")
	flags.StringVar(&with, "with", "", "name of the node that takes the place")
	flags.StringVar(&request.Domain, "domain", "", "failure domain of the replacement (default: that of the node)")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		request.With = block.NodeID(with)
		return s.withClient(func(c *client.Client) error {
			node, err := c.ReplaceNode(command.Context(), arguments[0], request)
			if err != nil {
				return err
			}
			return s.shownNode(format, node)
		})
	}
	return command
}

func nodePlace(s *session) *cobra.Command {
	var domain string
	var spare bool
	command := &cobra.Command{
		Use: "place NODE", Short: "Change the failure domain of a node, or make it a spare",
		Long: "Change the failure domain of a node, or make it a spare: one that takes no new groups while others can, and is the first to\n" +
			"take over blocks. Groups that lie unevenly in their domains then are spread again.",
		Example: "  restripe node place n3 --domain rack2\n  restripe node place n14 --spare",
		Args:    cobra.ExactArgs(1),
	}
	format := outputFlag(command)
	flags := command.Flags()
	flags.StringVar(&domain, "domain", "", "failure domain, such as a rack; empty: its own")
	flags.BoolVar(&spare, "spare", false, "make it a spare; --spare=false makes it an ordinary node again")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		var request api.PlaceRequest
		if flags.Changed("domain") {
			request.Domain = &domain
		}
		if flags.Changed("spare") {
			request.Spare = &spare
		}
		if request == (api.PlaceRequest{}) {
			return program.Misuse(command, "say what to change: --domain DOMAIN or --spare")
		}
		return s.withClient(func(c *client.Client) error {
			node, err := c.PlaceNode(command.Context(), arguments[0], request)
			if err != nil {
				return err
			}
			return s.shownNode(format, node)
		})
	}
	return command
}

func nodePatience(s *session) *cobra.Command {
	var down, out time.Duration
	var never bool
	command := &cobra.Command{
		Use: "patience", Short: "Show or set after how long a silent node is down, and out",
		Long: "Show or set, for all gateways, after how long without an answer a node is down, and after how long it is out: given up, its\n" +
			"blocks rebuilt on other nodes.",
		Example: "  restripe node patience --out-after 30m",
		Args:    cobra.NoArgs,
	}
	format := outputFlag(command, "table", "json", "yaml")
	flags := command.Flags()
	flags.DurationVar(&down, "down-after", 0, "silence after which a node is down (default: as it is)")
	flags.DurationVar(&out, "out-after", 0, "silence after which it is out (default: as it is)")
	flags.BoolVar(&never, "never-out", false, "give up no node unless somebody declares it down")
	command.MarkFlagsMutuallyExclusive("out-after", "never-out")
	command.RunE = func(command *cobra.Command, _ []string) error {
		return s.withClient(func(c *client.Client) error {
			list, err := c.Nodes(command.Context())
			if err != nil {
				return err
			}
			patience := list.Patience
			if flags.Changed("down-after") {
				patience.DownAfterSeconds = down.Seconds()
			}
			if flags.Changed("out-after") {
				patience.OutAfterSeconds = out.Seconds()
			}
			if never {
				patience.OutAfterSeconds = -1
			}
			if patience != list.Patience {
				if patience, err = c.SetPatience(command.Context(), patience); err != nil {
					return err
				}
			}
			return s.show(format, patienceListing(patience))
		})
	}
	return command
}

func patienceListing(p api.Patience) listing {
	text := func(seconds float64) string {
		if seconds < 0 {
			return "never"
		}
		return words.Span(words.Seconds(seconds))
	}
	return listing{
		value: p, columns: []column{{title: "STATE"}, {title: "AFTER A SILENCE OF", right: true}},
		rows: [][]string{{"down", text(p.DownAfterSeconds)}, {"out", text(p.OutAfterSeconds)}},
	}
}

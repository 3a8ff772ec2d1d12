package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/tui/cli/program"
)

// planFlags are the flags of plan and explain.
type planFlags struct {
	ladder, from, to, planner, mode, objective string
	columns                                    int
}

func (f *planFlags) register(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.ladder, "ladder", "", "schemes the objects may ever take, such as 'rep(3),rs(4,2),rs(12,2)' (default: --from and --to)")
	flags.StringVar(&f.from, "from", "", "scheme now (required)")
	flags.StringVar(&f.to, "to", "", "scheme to reach (required)")
	flags.IntVar(&f.columns, "columns", 0, "data nodes of a group (default: the widest scheme of the ladder)")
	flags.StringVar(&f.planner, "planner", "", "planner: "+strings.Join(stripe.Planners(), ", "))
	flags.StringVar(&f.mode, "mode", "", "layout mode: "+joinWords(stripe.Modes())+" (default free; a baseline planner: its own)")
	flags.StringVar(&f.objective, "objective", "", "what to keep least: "+joinWords(stripe.Objectives())+" (default network)")
	completePlans(command)
	completeWords(command, "mode", stripe.Modes())
}

// make plans what the flags ask for.
func (f *planFlags) make(command *cobra.Command) (*stripe.PlanReport, *stripe.Plan, error) {
	if f.from == "" || f.to == "" {
		return nil, nil, program.Misuse(command, "say from where to where: --from SCHEME --to SCHEME")
	}
	from, err := stripe.ParseScheme(f.from)
	if err != nil {
		return nil, nil, program.Misuse(command, "--from: %w", err)
	}
	to, err := stripe.ParseScheme(f.to)
	if err != nil {
		return nil, nil, program.Misuse(command, "--to: %w", err)
	}
	text := f.ladder
	if text == "" {
		text = from.String()
		if from != to {
			text += "," + to.String()
		}
	}
	ladder, err := stripe.ParseLadder(text)
	if err != nil {
		return nil, nil, program.Misuse(command, "--ladder: %w", err)
	}
	report, plan, err := stripe.NewPlanReport(ladder, f.columns, from, to, f.planner, stripe.Mode(f.mode), stripe.Objective(f.objective))
	if err != nil {
		return nil, nil, fmt.Errorf("planning %s to %s: %w", from, to, err)
	}
	return report, plan, nil
}

// joinWords lists the values of a word type.
func joinWords[W ~string](words []W) string { return strings.Join(texts(words), ", ") }

func texts[W ~string](words []W) []string {
	list := make([]string, len(words))
	for i, word := range words {
		list[i] = string(word)
	}
	return list
}

// completeWords completes a flag with a few words.
func completeWords[W ~string](command *cobra.Command, flag string, words []W) {
	if err := command.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(texts(words), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("completing --" + flag + ": " + err.Error()) // invariant: the command has the flag
	}
}

// completePlans completes --planner and --objective.
func completePlans(command *cobra.Command) {
	completeWords(command, "planner", stripe.Planners())
	completeWords(command, "objective", stripe.Objectives())
}

func planCommand(s *session) *cobra.Command {
	var f planFlags
	command := &cobra.Command{
		Use: "plan -f FILE | plan --from SCHEME --to SCHEME", Short: "Show what policies or a transition would cost, before anything moves",
		Long: "With -f: show for each policy of the files what it would move now and what that would cost, asking the gateways of its\n" +
			"backend. Nothing is written.\n\n" +
			"With --from and --to: plan the transition of one group, prove the plan, and show its cost in blocks next to the lower bound\n" +
			"and to other ways of doing it. Needs no cluster.",
		Example: "  restripe plan -f policies/\n  restripe plan --ladder 'rs(4,3),rs(5,3)' --from 'rs(4,3)' --to 'rs(5,3)'\n  restripe plan --from 'rep(3)' --to 'rs(12,2)' -o json",
		Args:    cobra.NoArgs,
	}
	f.register(command)
	format := outputFlag(command, "table", "json", "yaml")
	paths, where := filesFlag(command), s.serverFlags(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if len(*paths) > 0 {
			if f != (planFlags{}) {
				return program.Misuse(command, "-f plans the policies of files: the flags of a single transition do not go with it")
			}
			return s.planPolicies(command, where, *paths, format)
		}
		report, plan, err := f.make(command)
		if err != nil {
			return err
		}
		if format.chosen != "table" {
			return s.show(format, listing{value: report})
		}
		return program.WriteLines(s.Out, planLines(report, plan))
	}
	return command
}

// planLines shows a plan's cost per group next to its bounds and the baselines.
func planLines(r *stripe.PlanReport, plan *stripe.Plan) []string {
	proved := "not proved"
	if r.Proved {
		proved = "proved"
	}
	lines := []string{
		fmt.Sprintf("%s -> %s, planner %s, least %s, layout mode %s; %s", r.From, r.To, r.Planner, r.Objective, r.Mode, proved),
		fmt.Sprintf("group of %d cells: %d rows of %d columns", r.Cells, r.Rows, r.Columns), "",
	}
	number := strconv.Itoa
	rows := [][]string{
		{"this plan", number(r.BlocksRead), number(r.BlocksSent), number(r.BlocksWritten), perCell(r.BlocksSent, r.Cells)},
		{"lower bound", number(r.Bounds.BlocksRead), number(r.Bounds.BlocksSent), "", perCell(r.Bounds.BlocksSent, r.Cells)},
	}
	for _, name := range sortedKeys(r.Baselines) {
		if cost := r.Baselines[name]; cost != nil {
			rows = append(rows, []string{name, number(cost.BlocksRead), number(cost.BlocksSent), "", perCell(cost.BlocksSent, r.Cells)})
		} else {
			rows = append(rows, []string{name, "-", "-", "", "does not apply"})
		}
	}
	lines = append(lines, tableLines([]column{
		{title: "BLOCKS PER GROUP"}, {title: "READ", right: true}, {title: "SENT", right: true}, {title: "WRITTEN", right: true}, {title: "SENT PER DATA BLOCK", right: true},
	}, rows, true)...)
	return append(lines, "", fmt.Sprintf("data blocks moved: %d; most sent by one node: %d; most received by one node: %d",
		r.DataBlocksMoved, plan.Cost.MaxNodeBlocksSent, plan.Cost.MaxNodeBlocksReceived))
}

func perCell(blocks, cells int) string {
	return strconv.FormatFloat(float64(blocks)/float64(cells), 'f', 3, 64)
}

func explainCommand(s *session) *cobra.Command {
	var f planFlags
	command := &cobra.Command{
		Use: "explain --from SCHEME --to SCHEME", Short: "Say in words what a transition would do",
		Example: "  restripe explain --from 'rep(3)' --to 'rs(4,2)'",
		Args:    cobra.NoArgs,
	}
	f.register(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		_, plan, err := f.make(command)
		if err != nil {
			return err
		}
		return program.WriteLines(s.Out, []string{strings.TrimRight(stripe.Explain(plan), "\n")})
	}
	return command
}

func layoutCommand(s *session) *cobra.Command {
	var text, mode string
	var columns int
	command := &cobra.Command{
		Use: "layout --ladder LADDER", Short: "Draw how a group's cells fall into stripes under each scheme",
		Example: "  restripe layout --ladder 'rs(4,3),rs(5,3)'\n  restripe layout --ladder 'rep(3),rs(4,2),rs(12,2)' -o json",
		Args:    cobra.NoArgs,
	}
	flags := command.Flags()
	flags.StringVar(&text, "ladder", "", "schemes of the ladder (required)")
	flags.IntVar(&columns, "columns", 0, "data nodes of a group (default: the widest scheme of the ladder)")
	flags.StringVar(&mode, "mode", string(stripe.ModeFree), "layout mode: "+joinWords(stripe.Modes()))
	completeWords(command, "mode", stripe.Modes())
	format := outputFlag(command, "table", "json", "yaml")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if text == "" {
			return program.Misuse(command, "say which ladder: --ladder 'rs(4,3),rs(5,3)'")
		}
		ladder, err := stripe.ParseLadder(text)
		if err != nil {
			return program.Misuse(command, "--ladder: %w", err)
		}
		layout, err := stripe.NewLayout(ladder, columns, stripe.Mode(mode))
		if err != nil {
			return err
		}
		if format.chosen != "table" {
			return s.show(format, listing{value: stripe.NewLayoutReport(layout)})
		}
		lines, err := layoutLines(layout)
		if err != nil {
			return err
		}
		return program.WriteLines(s.Out, lines)
	}
	return command
}

// layoutLines draws the stripe picture of every partition: the group as its array of cells, each cell marked with the
// letters of its stripe; under it what the parity nodes hold.
func layoutLines(l *stripe.Layout) ([]string, error) {
	lines := []string{fmt.Sprintf("%s, mode %s: groups of %d rows x %d columns = %d cells", l.Ladder, l.Mode, l.Rows, l.Columns, l.Cells())}
	var drawn []int
	for _, scheme := range l.Ladder {
		if slices.Contains(drawn, scheme.K) {
			continue
		}
		drawn = append(drawn, scheme.K)
		partition, err := l.Partition(scheme.K)
		if err != nil {
			return nil, err
		}
		width := max(len(stripeLetters(len(partition.Stripes)-1)), len(strconv.Itoa(l.Columns)))
		head := "       "
		for column := range l.Columns {
			head += fmt.Sprintf(" %*d", width, column)
		}
		lines = append(lines, "", fmt.Sprintf("%s: %d stripes of %d", schemesOf(l.Ladder, scheme.K), len(partition.Stripes), scheme.K), head)
		for row := range l.Rows {
			line := fmt.Sprintf("row %3d", row)
			for column := range l.Columns {
				line += fmt.Sprintf(" %*s", width, stripeLetters(int(partition.StripeOf[l.CellIndex(row, column)])))
			}
			lines = append(lines, line)
		}
		last := stripeLetters(len(partition.Stripes) - 1)
		span := "stripe a"
		if last != "a" {
			span = "each of the stripes a to " + last
		}
		lines = append(lines, "every parity node holds one block of "+span)
	}
	return lines, nil
}

// schemesOf names the schemes of a ladder that share a partition.
func schemesOf(ladder stripe.Ladder, k int) string {
	var names []string
	for _, scheme := range ladder {
		if scheme.K == k {
			names = append(names, scheme.String())
		}
	}
	return strings.Join(names, ", ")
}

// stripeLetters names a stripe: a to z, then aa, ab, ...
func stripeLetters(stripe int) string {
	letters := string(rune('a' + stripe%26))
	for stripe = stripe/26 - 1; stripe >= 0; stripe = stripe/26 - 1 {
		letters = string(rune('a'+stripe%26)) + letters
	}
	return letters
}

func laddersCommand(s *session) *cobra.Command {
	var nodes, survive int
	var overhead float64
	command := &cobra.Command{
		Use: "ladders --nodes N --survive M --overhead X", Short: "Recommend ladders for a number of nodes",
		Example: "  restripe ladders --nodes 15 --survive 2 --overhead 1.2",
		Args:    cobra.NoArgs,
	}
	flags := command.Flags()
	flags.IntVar(&nodes, "nodes", 0, "nodes there are (required)")
	flags.IntVar(&survive, "survive", 2, "nodes that may be lost at once")
	flags.Float64Var(&overhead, "overhead", 1.5, "bytes stored per byte of data, at most, on the coldest step")
	format := outputFlag(command)
	command.RunE = func(command *cobra.Command, _ []string) error {
		if nodes == 0 {
			return program.Misuse(command, "say how many nodes there are: --nodes N")
		}
		recommended, err := stripe.RecommendLadders(nodes, survive, overhead)
		if err != nil {
			return err
		}
		l := listing{value: recommended, empty: "No ladder fits.", columns: []column{
			{title: "LADDER"}, {title: "NODES", right: true}, {title: "OVERHEAD", right: true}, {title: "SENT GOING DOWN"}, {title: "SENT GOING UP"},
			{title: "ROWS", right: true, wide: true}, {title: "WHY", wide: true},
		}}
		for _, r := range recommended {
			var down, up []string
			for _, step := range r.Steps[:len(r.Steps)-1] {
				down = append(down, strconv.FormatFloat(step.NetworkDown, 'f', 2, 64))
				up = append(up, strconv.FormatFloat(step.NetworkUp, 'f', 2, 64))
			}
			l.names = append(l.names, r.Ladder.String())
			l.rows = append(l.rows, []string{
				r.Ladder.String(), strconv.Itoa(r.NodesUsed), strconv.FormatFloat(r.Overhead, 'f', 2, 64) + "x",
				strings.Join(down, " "), strings.Join(up, " "), strconv.Itoa(r.Rows), r.Why,
			})
		}
		if err := s.show(format, l); err != nil || (format.chosen != "table" && format.chosen != "wide") {
			return err
		}
		return program.WriteLines(s.Messages, []string{"SENT: blocks over the network per data block, for each step of the ladder in turn. " +
			"-o wide says why."})
	}
	return command
}

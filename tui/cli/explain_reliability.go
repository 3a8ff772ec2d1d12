package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/restripe/restripe/operator/reliability"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
)

// reliabilityFlags are the flags of explain that ask for a ladder instead of a plan.
type reliabilityFlags struct {
	nines, failures, overhead float64
	nodes                     int
	repair, nodeBytes         string
}

// explainReliability adds to the command that explains plans what explains targets: with --nines it says which ladder
// reaches them and why.
func explainReliability(s *session, explain *cobra.Command) *cobra.Command {
	var f reliabilityFlags
	defaults := reliability.DefaultEnvironment()
	flags := explain.Flags()
	flags.Float64Var(&f.nines, "nines", 0, "explain which ladder has so many nines of durability a year, instead of a transition")
	flags.IntVar(&f.nodes, "nodes", 0, "with --nines: nodes there are, or failure domains if they are fewer")
	flags.Float64Var(&f.failures, "failures", defaults.FailurePercent, "with --nines: how many of a hundred nodes fail for good in a year")
	flags.StringVar(&f.repair, "repair", words.Bytes(int64(defaults.RepairBandwidth)), "with --nines: bytes per second that reach what rebuilds a lost node")
	flags.StringVar(&f.nodeBytes, "node-bytes", words.Bytes(int64(defaults.NodeBytes)), "with --nines: bytes on a node")
	flags.Float64Var(&f.overhead, "overhead", reliability.DefaultOverhead, "with --nines: bytes stored per byte of data, at most, on the coldest step")
	explain.Use = "explain (--from SCHEME --to SCHEME | --nines N --nodes N)"
	explain.Short = "Say in words what a transition would do, or which ladder is safe enough"
	explain.Example += "\n  restripe explain --nines 9 --nodes 14 --failures 4 --repair 100MiB"
	plans := explain.RunE
	explain.RunE = func(command *cobra.Command, arguments []string) error {
		if !flags.Changed("nines") {
			for _, name := range []string{"nodes", "failures", "repair", "node-bytes", "overhead"} {
				if flags.Changed(name) {
					return program.Misuse(command, "--%s goes with --nines; say how many nines you want, or leave it out", name)
				}
			}
			return plans(command, arguments)
		}
		target, err := f.target(command)
		if err != nil {
			return err
		}
		choice, err := reliability.Choose(target)
		if errors.Is(err, reliability.ErrModel) {
			return program.Misuse(command, "%w", err)
		}
		if err != nil {
			return err
		}
		return program.WriteLines(s.Out, choiceLines(choice))
	}
	return explain
}

// target reads the flags.
func (f *reliabilityFlags) target(command *cobra.Command) (reliability.Target, error) {
	for _, name := range []string{"ladder", "from", "to", "columns", "planner", "mode", "objective"} {
		if command.Flags().Changed(name) {
			return reliability.Target{}, program.Misuse(command, "--%s is about a transition and --nines about a ladder; ask for one of them", name)
		}
	}
	if f.nodes == 0 {
		return reliability.Target{}, program.Misuse(command, "say how many nodes there are: --nodes N")
	}
	repair, err := parseRate(f.repair)
	if err != nil {
		return reliability.Target{}, program.Misuse(command, "--repair: %w", err)
	}
	nodeBytes, err := humanize.ParseBytes(f.nodeBytes)
	if err != nil {
		return reliability.Target{}, program.Misuse(command, "--node-bytes %q: want a number of bytes such as 4TiB", f.nodeBytes)
	}
	environment := reliability.DefaultEnvironment()
	environment.FailurePercent, environment.RepairBandwidth, environment.NodeBytes = f.failures, float64(repair), float64(nodeBytes)
	return reliability.Target{Nines: f.nines, Nodes: f.nodes, MaxOverhead: f.overhead, Environment: environment}, nil
}

// choiceLines shows a ladder, its steps, and why it is this one.
func choiceLines(c reliability.Choice) []string {
	lines := []string{fmt.Sprintf("%s nines on %s at up to %.2fx: %s",
		strconv.FormatFloat(c.Target.Nines, 'f', -1, 64), words.Count(int64(c.Target.Nodes), "node"), c.Target.MaxOverhead, c.Ladder), ""}
	var rows [][]string
	for _, step := range c.Steps {
		rows = append(rows, []string{
			step.Temperature, step.Scheme.String(), strconv.FormatFloat(step.Overhead, 'f', 2, 64) + "x",
			words.About(words.Seconds(step.RepairSeconds)),
			reliability.NinesText(step.Group.Nines), reliability.NinesText(step.Cluster.Nines),
			strconv.FormatFloat(100*step.Group.DegradedShare, 'g', 2, 64) + " %",
		})
	}
	lines = append(lines, tableLines([]column{
		{title: "STEP"}, {title: "CODE"}, {title: "STORED", right: true}, {title: "REPAIR", right: true},
		{title: "NINES", right: true}, {title: "OF ALL", right: true}, {title: "DEGRADED", right: true},
	}, rows, true)...)
	return append(append(lines, ""), reliability.Explain(c)...)
}

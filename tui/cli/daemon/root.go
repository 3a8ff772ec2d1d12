package daemon

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/tui/cli/program"
)

// Servers are the commands of this package that run until they are told to leave, by their names.
func Servers(s *program.Streams) map[string]func() *program.Server {
	return map[string]func() *program.Server{
		"agent":   func() *program.Server { return Agent(s) },
		"gateway": func() *program.Server { return Gateway(s) },
	}
}

// Execute runs one command line of a program with the commands of this package alone, and returns the exit code. SIGINT and SIGTERM
// end the command in order.
func Execute(arguments []string, in io.Reader, out, messages io.Writer) int {
	ctx, cancel := program.UntilSignal()
	defer cancel()
	s := program.Streams{In: in, Out: out, Messages: messages}
	return program.Run(ctx, Root(&s), arguments, s, nil)
}

// Root makes the command line of a program with the commands of this package alone.
func Root(s *program.Streams) *cobra.Command {
	root := program.Family(&cobra.Command{
		Use:   "restripe-agent",
		Short: "Run an agent or a gateway of Restripe",
		Long: "Run an agent or a gateway of Restripe, as the program restripe does: this one has nothing else in it, and needs less of a\n" +
			"machine.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}, Agent(s).Complete(), Gateway(s).Complete(), program.CheckConfig(s, Servers(s)), program.VersionCommand(s))
	for _, command := range root.Commands() {
		command.Example = strings.ReplaceAll(command.Example, "  restripe ", "  "+root.Name()+" ")
	}
	program.MarkUsage(root)
	return root
}

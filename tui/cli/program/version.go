package program

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set at link time: -ldflags "-X github.com/restripe/restripe/tui/cli/program.version=...".
var version = ""

// VersionCommand makes the command that shows the version of a program.
func VersionCommand(s *Streams) *cobra.Command {
	command := &cobra.Command{Use: "version", Short: "Show the version of this program", Args: cobra.NoArgs}
	command.RunE = func(command *cobra.Command, _ []string) error {
		line := fmt.Sprintf("%s %s, %s, %s/%s", command.Root().Name(), Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return WriteLines(s.Out, []string{line})
	}
	return command
}

// Version is the version given at link time, else the revision the program was built from.
func Version() string {
	if version != "" {
		return version
	}
	info, there := debug.ReadBuildInfo()
	if !there {
		return "unknown"
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return info.Main.Version
}

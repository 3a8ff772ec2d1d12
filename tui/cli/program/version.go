package program

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is what CHANGELOG.md begins with. What is packed has its own set at link time:
// -ldflags "-X github.com/restripe/restripe/tui/cli/program.release=...".
var release = "v0.1.0"

// VersionCommand makes the command that shows the version of a program.
func VersionCommand(s *Streams) *cobra.Command {
	command := &cobra.Command{Use: "version", Short: "Show the version of this program", Args: cobra.NoArgs}
	command.RunE = func(command *cobra.Command, _ []string) error {
		line := fmt.Sprintf("%s %s, %s, %s/%s", command.Root().Name(), Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return WriteLines(s.Out, []string{line})
	}
	return command
}

// Version is the release, with the revision that it was built from where that is known, as semantic versioning writes builds.
func Version() string {
	info, there := debug.ReadBuildInfo()
	if !there {
		return release
	}
	build := ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			build = "+" + setting.Value[:min(12, len(setting.Value))]
		case setting.Key == "vcs.modified" && setting.Value == "true":
			build += ".modified"
		}
	}
	return release + build
}
